"""What a TARGET means."""

from __future__ import annotations

from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from outpace import scripts, targets
from outpace.errors import UsageError


@pytest.mark.parametrize("name", scripts.names())
def test_built_in_names(name: str) -> None:
    assert targets.find(name).is_file()
    assert "_" not in name


def test_paths(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    script = tmp_path / "train.py"
    script.write_text("pass\n")
    assert targets.find(str(script)) == script
    monkeypatch.chdir(tmp_path)
    assert targets.find("train.py") == script.resolve()


def test_a_package_with_a_main(tmp_path: Path) -> None:
    (tmp_path / "__main__.py").write_text("pass\n")
    assert targets.find(str(tmp_path)) == tmp_path


@pytest.mark.parametrize(
    ("asked", "offered"), [("cn", "cnn"), ("mnist_keras", "mnist-keras"), ("resnet-50", "resnet50")]
)
def test_did_you_mean_a_built_in(asked: str, offered: str) -> None:
    with pytest.raises(UsageError) as caught:
        targets.find(asked)
    assert caught.value.hint == f"did you mean {offered}?"


def test_did_you_mean_a_file(tmp_path: Path) -> None:
    (tmp_path / "train.py").write_text("pass\n")
    with pytest.raises(UsageError) as caught:
        targets.find(str(tmp_path / "trian.py"))
    assert caught.value.hint == f"did you mean {tmp_path / 'train.py'}?"


@pytest.mark.parametrize("nothing", ["", "  "])
def test_nothing_is_no_target(nothing: str) -> None:
    with pytest.raises(UsageError, match="an empty target"):
        targets.find(nothing)


def test_a_folder_is_not_a_script(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="is a folder without"):
        targets.find(str(tmp_path))


@given(st.text(max_size=40))
def test_any_text_is_found_or_refused(text: str) -> None:
    try:
        assert targets.find(text).exists()
    except UsageError as error:
        assert error.hint
