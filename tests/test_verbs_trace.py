"""Traces of real scripts on the command line, real and on shapes alone."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from outpace.records import Trace, read
from tests.loops import loop

EXAMPLES = Path(__file__).parent / "examples"
Cli = Callable[..., "subprocess.CompletedProcess[str]"]


def test_a_trace_needs_no_framework_to_be_read(cli: Cli, tmp_path: Path) -> None:
    script = tmp_path / "train.py"
    script.write_text(loop())
    real, fake = tmp_path / "real.json", tmp_path / "fake.json"
    assert cli("trace", "--save", real, script).returncode == 0
    done = cli("trace", "--fake", "--save", fake, script)
    assert done.returncode == 0, done.stderr
    code = (
        "import sys, pathlib; from outpace.records import Trace, read\n"
        "found = read(pathlib.Path(sys.argv[1]), Trace); print(len(found.operators))\n"
        "assert not {'torch', 'numpy', 'jax', 'tensorflow'} & set(sys.modules)"
    )
    read_back = subprocess.run([sys.executable, "-c", code, real], capture_output=True, text=True, check=True)
    assert int(read_back.stdout) > 10
    on_cpu, on_shapes = read(real, Trace), read(fake, Trace)
    assert on_shapes.device == "meta"
    assert totals(on_cpu) == totals(on_shapes)


def totals(trace: Trace) -> dict[tuple[str, str], int]:
    found: dict[tuple[str, str], int] = {}
    for one in trace.operators:
        if one.kind in ("matmul", "convolution", "attention", "rnn"):
            found[one.kind, one.phase] = found.get((one.kind, one.phase), 0) + one.flops * one.count
    return found


def test_where_shapes_are_not_enough_a_real_step_is_traced(cli: Cli, tmp_path: Path) -> None:
    script = tmp_path / "train.py"
    script.write_text(loop(body="rows[rows[:, 0] > 0].sum()"))
    done = cli("trace", "--fake", "--json", script)
    assert done.returncode == 0, done.stderr
    found = json.loads(done.stdout)
    assert found["device"] == "cpu"
    assert any("a real step was traced" in note for note in found["notes"])


@pytest.mark.parametrize("name", ["lenet.py", "gan.py", "scaler.py", "lightning_script.py", "jax_loop.py"])
def test_example_scripts_can_be_traced(cli: Cli, name: str) -> None:
    done = cli("trace", "--json", EXAMPLES / name)
    assert done.returncode == 0, done.stderr
    found = json.loads(done.stdout)
    assert {one["phase"] for one in found["operators"]} >= {"forward", "backward"}


@pytest.mark.parametrize("options", [[], ["--device", "cuda"], ["--device", "cpu"], ["--fake"]], ids=str)
def test_an_accelerator_that_is_not_here_is_not_needed(cli: Cli, options: list[str]) -> None:
    import torch

    if torch.cuda.is_available():
        pytest.skip("a card is here")
    done = cli("trace", "--json", *options, EXAMPLES / "cuda_hard_coded.py")
    assert done.returncode == 0, done.stderr
    found = json.loads(done.stdout)
    assert "the script names cuda; it runs on the CPU" in found["notes"]
    assert found["device"] == ("meta" if options == ["--fake"] else "cpu")
