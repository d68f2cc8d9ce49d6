"""Recipes as TOML files."""

from __future__ import annotations

import math
from pathlib import Path

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from outpace.errors import OutpaceError, UsageError
from outpace.records import VERDICTS, Proof, Recipe, Score, Span, Trial
from outpace.report import recipe as report
from outpace.verbs import recipes

SPAN = Span(median=1.5, low=1.4, high=1.6)


def recipe(**known: object) -> Recipe:
    found = Recipe(
        outpace="0",
        target="train.py",
        device="cpu",
        device_name="a CPU",
        versions={"msgspec": "0.1"},
        script_sha256="abc",
        made_at="2026-01-01T00:00:00Z",
        speedups=["bf16", "channels-last"],
        trials=[
            Trial(names=["bf16"], verdict="kept", gain=SPAN, startup_seconds=0.5),
            Trial(names=["compile"], base=["bf16"], verdict="crashed", reason="a line\nand 'another'"),
        ],
        proof=Proof(
            seeds=[0, 1],
            steps=10,
            whole=True,
            held=True,
            gain=SPAN,
            scores=[
                Score(
                    name="loss",
                    better="lower",
                    baseline=[1.0, 2.0],
                    recipe=[1.0, 2.5],
                    margin=1.0,
                    worse_by=0.25,
                    bound=0.5,
                    held=True,
                )
            ],
        ),
    )
    return msgspec.structs.replace(found, **known)


def test_what_is_saved_is_read(tmp_path: Path) -> None:
    recipes.save(recipe(), tmp_path / "r.toml")
    assert recipes.read(tmp_path / "r.toml") == recipe()
    assert [file.name for file in tmp_path.glob("*r.toml*")] == ["r.toml"]


@given(
    st.lists(
        st.builds(
            Trial,
            names=st.just(["bf16"]),
            verdict=st.sampled_from(VERDICTS),
            drop=st.booleans(),
            reason=st.none() | st.text(st.characters(codec="utf-8", exclude_characters="\r")),
            startup_seconds=st.none() | st.floats(0, 1e6),
        ),
        max_size=3,
    )
)
def test_any_trials_are_read_as_they_were(
    tmp_path_factory: pytest.TempPathFactory, trials: list[Trial]
) -> None:
    path = tmp_path_factory.mktemp("recipe") / "r.toml"
    recipes.save(recipe(trials=trials), path)
    assert recipes.read(path).trials == trials


def test_a_value_that_was_not_finite_is_nan(tmp_path: Path) -> None:
    score = Score(name="loss", better="lower", baseline=[None, 1.0], recipe=[None, 1.0], held=True)
    proof = Proof(seeds=[0, 1], steps=1, whole=False, scores=[score], held=True)
    recipes.save(recipe(proof=proof), tmp_path / "r.toml")
    found = recipes.read(tmp_path / "r.toml").proof
    assert found is not None
    assert "loss: not finite" in report.recipe(recipes.read(tmp_path / "r.toml"))
    first = found.scores[0].baseline[0]
    assert first is not None
    assert math.isnan(first)


@pytest.mark.parametrize(
    ("text", "told"),
    [
        ("[[[", "is not a recipe"),
        ("a = 1", "is not a recipe"),
        ('record = "run"', "is not a recipe"),
        ('record = "recipe"\nspeedups = 3', "is not a recipe"),
    ],
)
def test_what_is_no_recipe_is_said(tmp_path: Path, text: str, told: str) -> None:
    path = tmp_path / "r.toml"
    path.write_text(text)
    with pytest.raises(OutpaceError, match=told):
        recipes.read(path)
    path.write_bytes(b"\xff\xfe")
    with pytest.raises(OutpaceError, match="is not a recipe"):
        recipes.read(path)


def test_a_missing_a_newer_and_an_unknown_one(tmp_path: Path) -> None:
    with pytest.raises(OutpaceError, match="could not read"):
        recipes.read(tmp_path / "none.toml")
    recipes.save(recipe(version=99), tmp_path / "new.toml")
    with pytest.raises(OutpaceError, match="version 99"):
        recipes.read(tmp_path / "new.toml")
    (tmp_path / "new.toml").write_text('record = "recipe"\nversion = 2\nspeedups = "other"')
    with pytest.raises(OutpaceError, match="version 2"):
        recipes.read(tmp_path / "new.toml")
    recipes.save(recipe(speedups=["bf17"]), tmp_path / "other.toml")
    with pytest.raises(UsageError, match="bf17"):
        recipes.read(tmp_path / "other.toml")


def test_what_with_takes(tmp_path: Path) -> None:
    path = tmp_path / "r.toml"
    recipes.save(recipe(), path)
    assert recipes.asked("bf16") == (["bf16"], None)
    names, found = recipes.asked(str(path))
    assert names == ["bf16", "channels-last"]
    assert found == recipe()
    with pytest.raises(UsageError) as error:
        recipes.asked("bf17")
    assert "which ends in .toml" in str(error.value.hint)


def test_where_it_was_not_proven_is_told() -> None:
    assert recipes.differences(recipe(versions={"outpace-none": "1"})) == []
    found = recipes.differences(recipe(), device_name="another", script_sha256="def")
    assert found[0].startswith("msgspec 0.1 (here ")
    assert found[1:] == ["a CPU (here another)", "another script, or another state of it"]
    same = recipe(versions={"msgspec": msgspec.__version__})
    assert recipes.differences(same, device_name="a CPU", script_sha256="abc") == []
    assert recipes.warning([]) is None
    assert "may not hold here" in str(recipes.warning(found))


def test_by_default_it_is_kept_beside_the_records(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("OUTPACE_DATA_DIR", str(tmp_path))
    assert recipes.default_path(recipe()) == tmp_path / "recipes" / "20260101T000000Z-train.toml"
