"""Measurements compared by their files or as they are."""

from __future__ import annotations

import json
import subprocess
from collections.abc import Callable
from pathlib import Path

import pytest

from outpace.errors import OutpaceError
from outpace.records import to_json
from outpace.verbs.compare import compare
from tests.loops import loop
from tests.measurements import CEILINGS, measurement


def test_of_files_and_of_records(tmp_path: Path) -> None:
    file = tmp_path / "a.json"
    file.write_bytes(to_json(measurement(0.020, args=["--lr", "1"])))
    for a in (file, str(file)):
        found = compare(a, measurement(0.010))
        assert found.ratio.median == pytest.approx(2)
        assert found.verdict == "faster"
        assert found.a == f"cnn --lr 1 on NVIDIA H100 80GB HBM3 ({file})"
        assert found.b == "cnn on NVIDIA H100 80GB HBM3"
    assert compare(measurement(0.010), file).verdict == "slower"
    assert compare(file, file).verdict == "not different"


def test_a_device_that_was_not_seen() -> None:
    unseen = measurement(device=None, device_name=None)
    assert compare(unseen, unseen).a == "cnn on a device that was not seen"


def test_files_that_hold_something_else(tmp_path: Path) -> None:
    file = tmp_path / "a.json"
    file.write_bytes(to_json(CEILINGS))
    with pytest.raises(OutpaceError, match="is not a measurement record"):
        compare(file, measurement())
    with pytest.raises(OutpaceError, match="No such file"):
        compare(measurement(), tmp_path / "none.json")


Cli = Callable[..., "subprocess.CompletedProcess[str]"]


def test_compare_reads_two_measurements(cli: Cli, tmp_path: Path) -> None:
    script = tmp_path / "train.py"
    script.write_text(loop())
    for name in ("a.json", "b.json"):
        assert cli("measure", "--steps", "60", "--save", tmp_path / name, script).returncode == 0
    done = cli("compare", tmp_path / "a.json", tmp_path / "b.json", "--json")
    assert done.returncode == 0, done.stderr
    found = json.loads(done.stdout)
    assert found["ratio"]["low"] <= found["ratio"]["median"] <= found["ratio"]["high"]
    assert "spread between processes" in found["notes"][0]
    (tmp_path / "b.json").write_text("{")
    done = cli("compare", tmp_path / "a.json", tmp_path / "b.json")
    assert done.returncode == 1
    assert "is not a measurement record" in done.stderr
