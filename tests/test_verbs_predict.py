"""`outpace predict` from saved records and scripts."""

from __future__ import annotations

import json
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import msgspec
import pytest

from outpace.errors import OutpaceError, UsageError
from outpace.records import Prediction, to_json
from outpace.verbs.predict import predict
from tests.loops import loop
from tests.measurements import measurement
from tests.predictions import trace

Cli = Callable[..., "subprocess.CompletedProcess[str]"]


@pytest.fixture
def saved(tmp_path: Path) -> Path:
    path = tmp_path / "trace.json"
    path.write_bytes(to_json(trace()))
    return path


def test_one_card_or_several(saved: Path) -> None:
    one = predict(saved, on="a100-sxm-80gb")
    assert isinstance(one, Prediction)
    several = predict(trace(), on=["t4", "8xh100-sxm-80gb"], price=["t4=0.35"], samples=1000)
    assert isinstance(several, list)
    assert [(found.card, found.cards) for found in several] == [("t4", 1), ("h100-sxm-80gb", 8)]
    assert several[0].price_source is not None
    assert several[0].price_source.startswith("own")
    assert several[1].samples == 8 * 32


def test_a_measurement_on_the_card_is_told_as_it_is_and_calibrates_it() -> None:
    measured = msgspec.structs.replace(
        measurement(), card="a100-sxm-80gb", trace=trace(), bound_by="device", launch_seconds=None
    )
    same = predict(measured, on="a100-sxm-80gb")
    assert isinstance(same, Prediction)
    assert same.basis == "measured"
    assert same.step_seconds is not None
    assert same.step_seconds.mid == measured.step_seconds.median
    other = predict(trace(), on="a100-sxm-80gb", measured=[measured])
    assert isinstance(other, Prediction)
    assert other.basis == "calibrated"


def test_what_cannot_be_predicted_is_an_error() -> None:
    wrongs: tuple[dict[str, Any], ...] = (
        {"on": "nonsense-9000"},
        {"on": []},
        {"on": "t4", "precision": "tf32"},
        {"on": "t4", "nonsense": 1},
        {"on": "t4", "stack": "pytorch 0.1"},
        {"on": "t4", "power_limit_watts": 1.0},
    )
    for wrong in wrongs:
        with pytest.raises(UsageError):
            predict(trace(), **wrong)
    with pytest.raises(UsageError, match="batch"):
        predict(trace(samples=-3), on="t4")
    with pytest.raises(OutpaceError, match="no trace"):
        predict(msgspec.structs.replace(measurement(), trace=None), on="t4")


def test_a_card_that_lacks_the_precision_does_not_hide_the_others() -> None:
    found = predict(trace(), on=["t4", "a100-sxm-80gb"], precision="bf16-amp")
    assert isinstance(found, list)
    assert found[0].missing_because is not None
    assert found[1].step_seconds is not None


def test_the_command_line(cli: Cli, saved: Path, tmp_path: Path) -> None:
    out = tmp_path / "predictions.json"
    done = cli("predict", "--on", "t4,h100-sxm-80gb", "--max-batch", "--save", out, saved)
    assert done.returncode == 0, done.stderr
    assert "times as fast as t4" in done.stdout
    assert len(out.read_bytes().splitlines()) == 2
    told = json.loads(cli("predict", "--json", "--on", "t4", saved).stdout)
    assert told[0]["card"] == "t4"
    assert told[0]["step_seconds"]["low"] < told[0]["step_seconds"]["high"]
    for wrong in (
        ("--on", "unheard"),
        ("--precision", "fp3"),
        ("--samples", "-1"),
        ("--on", "t4", "--precision", "tf32"),
    ):
        failed = cli("predict", *wrong, saved)
        assert failed.returncode == 2, wrong
        assert failed.stderr.startswith("error: ")


def test_from_a_saved_trace_no_framework_is_needed(saved: Path) -> None:
    code = (
        "import sys; sys.argv = ['outpace', 'predict', '--on', 'a100-sxm-80gb', sys.argv[1]]\n"
        "from outpace.cli import main\n"
        "try: main()\n"
        "except SystemExit as end: assert not end.code\n"
        "assert not {'torch', 'numpy', 'scipy', 'tensorflow', 'jax'} & set(sys.modules)"
    )
    best = 9.0
    for _ in range(3):
        began = time.perf_counter()
        subprocess.run([sys.executable, "-c", code, saved], check=True, capture_output=True)
        best = min(best, time.perf_counter() - began)
    assert best < 1.5  # half a second where nothing else runs


def test_a_script_is_traced_first(cli: Cli, tmp_path: Path) -> None:
    script = tmp_path / "train.py"
    script.write_text(loop())
    done = cli("predict", "--json", "--on", "t4", script)
    assert done.returncode == 0, done.stderr
    assert json.loads(done.stdout)[0]["samples"] > 0
