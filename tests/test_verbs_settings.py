"""What is measured and how, of the words of a command line."""

from __future__ import annotations

import shlex

import pytest
from hypothesis import given
from hypothesis import strategies as st

from outpace.errors import UsageError
from outpace.verbs.settings import Effort, Setting, effort, setting

A = Setting("train.py", ["--epochs", "3"], "cuda:0")


@pytest.mark.parametrize(
    ("text", "meant"),
    [
        ("--device cpu", Setting("train.py", ["--epochs", "3"], "cpu")),
        ("--device=cpu", Setting("train.py", ["--epochs", "3"], "cpu")),
        ("other.py", Setting("other.py", [], "cuda:0")),
        ("other.py --lr 0.1", Setting("other.py", ["--lr", "0.1"], "cuda:0")),
        ("--device cuda:1 other.py --device-map x", Setting("other.py", ["--device-map", "x"], "cuda:1")),
        ("other.py --device cpu", Setting("other.py", ["--device", "cpu"], "cuda:0")),
        ("'my script.py' 'a b'", Setting("my script.py", ["a b"], "cuda:0")),
    ],
)
def test_what_versus_names(text: str, meant: Setting) -> None:
    assert setting(text, A) == meant


@pytest.mark.parametrize("text", ["", "   ", "--amp", "--device", "--device=", "'open", "--device cpu --amp"])
def test_what_versus_cannot_be(text: str) -> None:
    with pytest.raises(UsageError, match="--versus") as refused:
        setting(text, A)
    assert refused.value.hint is None or "--versus takes" in refused.value.hint


words = st.text(st.characters(codec="ascii", categories=["L", "N", "P", "Zs"]), min_size=1, max_size=8)


@given(
    words.filter(lambda word: word[0] != "-"), st.lists(words, max_size=4), st.sampled_from(["cpu", "cuda:1"])
)
def test_any_target_and_arguments_are_read_as_given(target: str, args: list[str], device: str) -> None:
    text = shlex.join(["--device", device, target, *args])
    assert setting(text, A) == Setting(target, args, device)


@given(st.text(max_size=40))
def test_any_text_is_a_setting_or_a_clear_error(text: str) -> None:
    try:
        found = setting(text, A)
    except UsageError as error:
        assert "--versus" in error.what
    else:
        assert found.target


def test_a_setting_as_text() -> None:
    assert str(Setting("cnn")) == "cnn"
    assert str(A) == "--device cuda:0 train.py --epochs 3"


@pytest.mark.parametrize(
    "how",
    [
        {"steps": 0},
        {"steps": -1},
        {"seconds": 0.0},
        {"seconds": -1.0},
        {"seconds": float("nan")},
        {"seconds": float("inf")},
        {"steps": 3, "seconds": 1.0},
        {"repeat": 0},
        {"ceilings": "guessed"},
    ],
)
def test_lengths_that_cannot_be(how: dict[str, float]) -> None:
    with pytest.raises(UsageError):
        effort(**how)  # type: ignore[arg-type]


def test_efforts() -> None:
    assert effort(steps=3, repeat=2) == Effort(steps=3, repeat=2)
    assert not effort().measured_ceilings
    assert effort(ceilings="measured").measured_ceilings


def test_the_environment_may_be_what_differs() -> None:
    default = Setting("cnn", ["--lr", "1"])
    found = setting("KERAS_BACKEND=jax OMP_NUM_THREADS='1'", default)
    variables = {"KERAS_BACKEND": "jax", "OMP_NUM_THREADS": "1"}
    assert found == Setting("cnn", ["--lr", "1"], "auto", variables)
    assert str(found) == "KERAS_BACKEND=jax OMP_NUM_THREADS=1 cnn --lr 1"
    assert setting("A=b=c --device cpu rnn", default).variables == {"A": "b=c"}
    assert setting("rnn A=b", default).variables == {}, "of the script, as its argument"
