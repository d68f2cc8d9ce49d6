"""The verb as a Python function."""

from __future__ import annotations

from pathlib import Path

import pytest

import outpace
from outpace.errors import UsageError
from outpace.records import Run, read


def test_from_python(tmp_path: Path) -> None:
    script = tmp_path / "train.py"
    script.write_text("import outpace\nfor _ in range(9): outpace.step(samples=3)\n")
    run, path = outpace.train(str(script), save=tmp_path / "record.json")
    assert (run.state, run.steps, run.samples) == ("done", 9, 27)
    assert read(path, Run) == run
    assert run.script_sha256 is not None


def test_unknown_targets_are_refused_before_anything_runs() -> None:
    with pytest.raises(UsageError):
        outpace.train("no-such-thing")
