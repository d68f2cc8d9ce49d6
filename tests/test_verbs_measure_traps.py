"""Scripts that fool a stop-watch, and measurements of whole scripts: the report names what is the matter."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path

import pytest

from outpace.records import Comparison, Measurement, read
from tests.loops import KERAS_LOOP, loop

EXAMPLES = Path(__file__).parent / "examples"
BRIEFLY = ("--seconds", "1")

Measured = Callable[..., Measurement]
Cli = Callable[..., "subprocess.CompletedProcess[str]"]


def said(found: Measurement) -> dict[str, str]:
    return {finding.what: finding.sentence for finding in found.findings}


def test_missing_sync(measured: Measured) -> None:
    found = measured("traps/missing_sync.py", options=BRIEFLY)
    assert "a clock in the script that does not wait" in said(found)["ahead"]
    assert found.method.clock == "waited"
    products = sum(one.flops for one in found.operators if one.kind == "matmul")
    assert products == 8 * 2 * 512 * 1024 * 1024, "three products forward, five in the gradients"


def test_a_compiled_step_is_no_training_step(measured: Measured) -> None:
    found = measured("traps/compile_step.py", options=BRIEFLY)
    assert "compilation" in said(found)["compilation"]
    assert found.first_step_seconds is not None
    assert found.first_step_seconds > 5 * found.step_seconds.most
    assert any("before compilation" in note for note in found.notes)
    assert "launches" not in said(found), (
        "the calls of the uncompiled model are not those of the compiled one"
    )


def test_partial_batches_are_not_counted_as_full(measured: Measured) -> None:
    found = measured("traps/partial_batch.py", options=BRIEFLY)
    assert "(4 instead of 32 samples)" in said(found)["partial batches"]
    assert found.samples_per_step == 32
    assert found.samples_per_second is not None
    full = 32 / found.samples_per_second
    assert full == pytest.approx(sum(found.window_seconds) / len(found.window_seconds), rel=0.2)
    assert found.trace is not None
    assert any(one.inputs[:1] == ((512,),) and (32, 512) in one.inputs for one in found.trace.operators), (
        "a full batch was traced"
    )


def test_slow_data(measured: Measured) -> None:
    found = measured("traps/slow_data.py", options=BRIEFLY)
    assert found.bound_by == "data"
    assert "the data loading is the limit" in said(found)["data"]
    assert found.data_seconds is not None
    assert found.data_seconds > 0.016


def test_an_rnn_bound_by_launches(measured: Measured) -> None:
    found = measured("traps/rnn_launches.py", options=BRIEFLY)
    assert found.bound_by == "host"
    assert "operator calls" in said(found)["launches"]
    assert found.calls is not None
    assert found.calls > 2000


def test_slow_python_between_the_operators(measured: Measured) -> None:
    found = measured("traps/slow_python.py", options=BRIEFLY)
    assert found.bound_by == "host"
    assert "passes outside of operators" in said(found)["script"]
    shares = [one.share_of_step or 0.0 for one in found.operators]
    assert sum(shares) < 0.5


def test_where_nothing_is_wrong_nothing_is_blamed(measured: Measured) -> None:
    found = measured("traps/heavy_products.py", options=BRIEFLY)
    assert found.bound_by == "device"
    assert not {"data", "launches", "ahead", "partial batches"} & said(found).keys()
    assert found.share_of_limit is not None
    assert 0.2 < found.share_of_limit <= 1
    assert found.flops_per_sample == pytest.approx(5 * 2 * 1024 * 1024, rel=0.01)


def test_the_script_is_stopped_and_cleans_up(cli: Cli, tmp_path: Path) -> None:
    script = tmp_path / "train.py"
    script.write_text(loop())
    done = cli("measure", "--steps", "50", script)
    assert done.returncode == 0, done.stderr
    assert "CLEANED UP" in done.stdout
    assert "THE END" not in done.stdout
    assert "Traceback" not in done.stdout + done.stderr


def test_so_many_steps_as_asked_for(measured: Measured) -> None:
    found = measured(loop(), options=("--steps", "50"))
    assert found.method.steps in (49, 50, 51)
    assert found.memory is not None
    assert found.memory.parameters_bytes == 4 * (256 * 256 + 256 + 2560 + 10)
    assert found.memory.optimizer_state_bytes == pytest.approx(2 * found.memory.parameters_bytes, rel=0.01)


def test_a_script_that_swallows_everything_is_stopped(cli: Cli, tmp_path: Path) -> None:
    script = tmp_path / "train.py"
    script.write_text(
        loop().replace("        optimizer.step()\n", "        try: optimizer.step()\n        except: pass\n")
    )
    done = cli("measure", "--json", "--steps", "20", script)
    assert done.returncode == 0, done.stderr
    assert json.loads(done.stdout)["record"] == "measurement"


def test_a_script_that_never_ends_after_it_is_stopped_is_killed(cli: Cli, tmp_path: Path) -> None:
    script = tmp_path / "train.py"
    script.write_text(
        "import threading, time\nthreading.Thread(target=time.sleep, args=(3600,)).start()\n" + loop()
    )
    began = time.monotonic()
    done = cli("measure", "--json", "--steps", "20", script)
    assert done.returncode == 0, done.stderr
    assert time.monotonic() - began < 120


def test_a_script_too_short_to_be_steady_says_so(measured: Measured) -> None:
    found = measured(loop(steps=40))
    assert "unsteady" in said(found)
    assert found.trace is not None, "traced in a run of its own"


def test_evaluations_stand_apart(measured: Measured) -> None:
    evaluate = "\n        ".join(
        [
            "if step % 20 == 19:",
            "    model.eval()",
            "    with torch.no_grad(): import time; model(rows); time.sleep(0.1)",
            "    model.train()",
        ]
    )
    found = measured(loop(body=evaluate), options=BRIEFLY)
    assert found.step_seconds.median < 0.05
    assert found.step_seconds.most < 0.1, "no window holds an evaluation"


def test_a_teacher_in_each_step_belongs_to_the_step(measured: Measured) -> None:
    script = loop().replace(
        "        optimizer.zero_grad()\n",
        "        optimizer.zero_grad()\n        with torch.no_grad(): teacher(rows)\n",
    )
    script = script.replace(
        "try:\n    for", "import copy; teacher = copy.deepcopy(model).eval()\ntry:\n    for"
    )
    found = measured(script, options=BRIEFLY)
    assert found.method.settled
    assert found.trace is not None
    assert sum(one.count for one in found.trace.operators if one.name == "aten.addmm") == 4


def test_a_loss_that_is_not_finite_is_told(measured: Measured) -> None:
    found = measured(
        loop(body="model[0].weight.data[0, 0] = float('nan') if step > 200 else 0"), options=BRIEFLY
    )
    assert "not finite" in said(found)["loss"]
    assert found.nonfinite_losses > 0


def test_failing_scripts_fail_the_measurement_and_write_nothing(cli: Cli, tmp_path: Path) -> None:
    script = tmp_path / "train.py"
    script.write_text(loop(body="1 / 0 if step == 30 else 0"))
    done = cli("measure", "--save", tmp_path / "m.json", script)
    assert done.returncode == 1
    assert "error: train.py: ZeroDivisionError" in done.stderr
    assert not (tmp_path / "m.json").exists()


@pytest.mark.parametrize(
    ("options", "what"),
    [
        (["--steps", "0"], "at least one step"),
        (["--seconds", "-1"], "above zero"),
        (["--seconds", "nan"], "above zero"),
        (["--steps", "5", "--seconds", "5"], "give one of them"),
        (["--ceilings", "guessed"], "one of datasheet, measured"),
        (["--versus", ""], "names nothing else"),
        (["--versus", "--device"], "not understood"),
        (["--versus", "'"], "cannot be read"),
        (["--versus", "cnn", "--repeat", "1"], "--repeat 3, or more"),
        (["--device", "tpu"], "unknown device"),
    ],
)
def test_wrong_requests_are_refused_before_anything_runs(cli: Cli, options: list[str], what: str) -> None:
    done = cli("measure", *options, "cnn")
    assert done.returncode == 2, done.stderr
    assert what in done.stderr
    assert "Traceback" not in done.stderr


def test_ctrl_c_ends_it_without_a_record(tmp_path: Path) -> None:
    script = tmp_path / "train.py"
    script.write_text(loop(body="print('step', flush=True)"))
    process = subprocess.Popen(
        [
            sys.executable,
            "-m",
            "outpace",
            "measure",
            "--seconds",
            "60",
            "--save",
            tmp_path / "m.json",
            script,
        ],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        env=os.environ | {},
    )
    assert process.stdout is not None
    process.stdout.readline()
    process.send_signal(signal.SIGINT)
    _, told = process.communicate(timeout=60)
    assert process.returncode == 130
    assert "interrupted" in told
    assert not (tmp_path / "m.json").exists()


def test_versus_measures_in_turns(cli: Cli, tmp_path: Path) -> None:
    small, large = tmp_path / "small.py", tmp_path / "large.py"
    small.write_text(loop())
    large.write_text(loop().replace("nn.Linear(256, 256)", "nn.Linear(256, 256), nn.Linear(256, 256)"))
    large.write_text(large.read_text().replace("nn.ReLU()", "*[nn.Linear(256, 256) for _ in range(20)]"))
    saved = tmp_path / "c.json"
    done = cli("measure", "--steps", "30", "--repeat", "3", "--save", saved, "--versus", large, small)
    assert done.returncode == 0, done.stderr
    found = read(saved, Comparison)
    assert found.verdict == "slower"
    assert found.ratio.high < 1
    assert found.pairs == 3
    assert len(found.measurements) == 6
    assert "B is slower" in done.stdout


@pytest.mark.parametrize("backend", ["tensorflow", "jax", "torch"])
def test_keras_on_each_back_end(measured: Measured, backend: str) -> None:
    found = measured(KERAS_LOOP, options=BRIEFLY, KERAS_BACKEND=backend)
    assert found.trace is not None
    assert found.trace.framework.endswith(backend)
    assert found.flops_per_sample
