"""The search and the proof, end to end: planted speed-ups of known worth in real trainings."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from outpace.errors import OutpaceError, UsageError
from outpace.records import Recipe
from outpace.verbs import recipes
from outpace.verbs.speedup import INTERRUPTED, Limits, speedup
from tests.planted import SCRIPT, plant, uproot


@pytest.fixture
def folder(tmp_path: Path) -> Iterator[Path]:
    found = tmp_path / "planted"
    found.mkdir()
    plant(found)
    yield found
    uproot(found)


def search(folder: Path, *names: str, steps: int = 1500, patience: float = 60.0, seeds: int = 2) -> Recipe:
    script = folder.parent / "train.py"
    script.write_text(SCRIPT.format(folder=str(folder), steps=steps))
    limits = Limits(seeds=seeds, proof_steps=60, names=names, patience=patience, budget=200.0)
    return speedup(str(script), limits=limits)


def verdicts(recipe: Recipe) -> dict[str, str]:
    return {" ".join(trial.names): trial.verdict for trial in recipe.trials if not trial.drop}


@pytest.mark.slow
def test_what_is_faster_is_kept_and_proven_and_what_is_not_is_not(folder: Path) -> None:
    found = search(folder, "planted-fast", "planted-slow", "planted-useless", "planted-absent")
    assert found.speedups == ["planted-fast"]
    assert verdicts(found) == {
        "planted-fast": "kept",
        "planted-slow": "slower",
        "planted-useless": "no gain",
        "planted-absent": "not applicable",
    }
    by_name = {trial.names[0]: trial for trial in found.trials}
    assert by_name["planted-absent"].reason == "not for this one"
    gain = by_name["planted-fast"].gain
    assert gain is not None
    assert gain.low > 1.2
    assert found.proof is not None
    assert found.proof.held
    assert found.proof.seeds == [0, 1]
    losses = next(one for one in found.proof.scores if one.name == "mean loss")
    assert losses.baseline == losses.recipe  # it only waits less
    assert losses.baseline[0] != losses.baseline[1]  # the script's own seed was shifted


@pytest.mark.slow
def test_who_breaks_the_training_is_known_and_the_search_goes_on(folder: Path) -> None:
    found = search(
        folder,
        *("planted-nan", "planted-crash", "planted-memory", "planted-hang", "planted-fast"),
        patience=8.0,
    )
    assert found.speedups == ["planted-fast"]
    assert verdicts(found) == {
        "planted-fast": "kept",
        "planted-memory": "out of memory",
        "planted-nan": "not finite",
        "planted-crash": "crashed",
        "planted-hang": "hung",
    }
    reasons = {trial.names[0]: trial.reason or "" for trial in found.trials}
    assert "planted failure" in reasons["planted-crash"]
    assert "for 8 s" in reasons["planted-hang"]


@pytest.mark.slow
def test_a_process_that_is_killed_ran_out_of_memory(folder: Path) -> None:
    found = search(folder, "planted-killed")
    assert verdicts(found) == {"planted-killed": "out of memory"}
    assert found.speedups == []
    assert found.proof is None


@pytest.mark.slow
def test_a_wrong_result_fails_the_proof_and_the_guilty_one_is_removed(folder: Path) -> None:
    found = search(folder, "planted-fast", "planted-wrong", "planted-liar")
    assert found.speedups == ["planted-fast"]
    ends = [(trial.names, trial.reason) for trial in found.trials if trial.verdict == "not the same"]
    assert ends[0] == (["planted-liar"], "its first losses are not the script's")
    names, reason = ends[1]
    assert names == ["planted-wrong"]
    assert "may be worse by" in str(reason)
    assert found.proof is not None
    assert found.proof.held


@pytest.mark.slow
def test_a_script_that_ends_soon_is_started_again(folder: Path) -> None:
    found = search(folder, "planted-fast", "planted-slow", steps=150)
    assert found.speedups == ["planted-fast"]
    assert found.proof is not None


def test_a_script_that_fails_as_it_is_is_an_error(tmp_path: Path) -> None:
    script = tmp_path / "train.py"
    script.write_text("raise ValueError('no data')")
    with pytest.raises(OutpaceError, match="no data"):
        speedup(str(script))


@pytest.mark.parametrize(
    ("wrong", "told"),
    [
        ({"allow": "all"}, "unknown effect 'all'"),
        ({"seeds": 1}, "one seed shows no spread"),
        ({"budget": 0.0}, "a time above zero"),
        ({"budget": float("nan")}, "a time above zero"),
        ({"planned_steps": 0}, "--planned-steps 0"),
        ({"proof_steps": -1}, "--proof-steps -1"),
        ({"names": ("bf17",)}, "unknown speed-up 'bf17'"),
    ],
)
def test_limits_that_cannot_be(wrong: dict[str, object], told: str) -> None:
    with pytest.raises(UsageError, match=told):
        Limits(**wrong)  # type: ignore[arg-type]


@pytest.mark.slow
def test_interrupted_it_gives_the_best_so_far(folder: Path, tmp_path: Path) -> None:
    script, save = tmp_path / "train.py", tmp_path / "recipe.toml"
    script.write_text(SCRIPT.format(folder=str(folder), steps=100_000))
    command = [
        *(sys.executable, "-c", f"import outpace.speedups as s; s.__path__.append({str(folder)!r})\n"),
        *("speedup", "--proof-steps", "50", "--try", "planted-fast,planted-hang"),
        *("--save", str(save), str(script)),
    ]
    command[2] += "from outpace.cli import main; main()"
    process = subprocess.Popen(
        command, stderr=subprocess.PIPE, stdout=subprocess.PIPE, text=True, start_new_session=True
    )
    assert process.stderr is not None
    for line in process.stderr:
        if "planted-fast" in line and "kept" in line:
            break
    time.sleep(1.0)
    os.kill(process.pid, signal.SIGINT)
    out, _ = process.communicate(timeout=60)
    assert process.returncode == 130, out
    found = recipes.read(save) if save.exists() else None
    assert found is None or INTERRUPTED in found.notes
    assert "planted-fast: not proven" in out
