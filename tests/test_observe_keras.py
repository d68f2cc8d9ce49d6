"""Unmodified Keras scripts on every back-end: each step with its samples and its own loss."""

from __future__ import annotations

import math
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from types import SimpleNamespace

import pytest

from outpace.errors import OutpaceError
from outpace.observe.keras import losses, places, sizes
from outpace.records import Run

Observed = Callable[..., tuple[Run, "subprocess.CompletedProcess[str]"]]
EXAMPLES = Path(__file__).parent / "examples"
BACKENDS = ("tensorflow", "jax", "torch")

FULL = [(50, 2), (30, 1)]
ARRAYS = [(50, 2), (4, 1)] * 2 + [(64, 2), (2, 1)] * 2
FIT = {
    "tensorflow": [
        *ARRAYS,
        *FULL * 2,
        (40, 3),
        (10, 1),
        (40, 2),
        *FULL,
        (50, 4),
        (30, 1),
        *FULL,
        (65, 2),
        *FULL,
        (7, 1),
    ],
    "torch": [*ARRAYS, *FULL * 2, (40, 3), (10, 1), (40, 2), *FULL * 2, (65, 2), *FULL, (7, 1)],
}
FIT["jax"] = FIT["tensorflow"]
PART = [(32, 2), (6, 1)]

#: (script, back-end): run lengths, interrupted steps, epochs
SEEN = {
    **{
        ("keras_fit.py", backend): (
            FIT[backend],
            [3, 6, 35 if backend == "torch" else 40],
            1,
        )
        for backend in BACKENDS
    },
    ("keras_custom_step.py", "tensorflow"): (PART * 6, [], 2),
    ("keras_custom_step.py", "jax"): (PART * 4, [], 2),
    ("keras_custom_step.py", "torch"): ([*PART * 5, (25, 2)], [12], 2),
    ("tf_loops.py", "tensorflow"): (
        [*PART * 5, (32, 14), (6, 1), *PART, (20, 3)],
        [3, 6, 9, 12, 15],
        None,
    ),
}


@pytest.mark.slow
@pytest.mark.parametrize(("script", "backend"), SEEN)
def test_every_step_and_the_same_training(script: str, backend: str, observed: Observed) -> None:
    run, done = observed(script, KERAS_BACKEND=backend)
    assert done.returncode == 0, done.stderr
    step_samples, interrupted, epochs = SEEN[script, backend]
    assert run.step_samples == step_samples
    assert run.interrupted_steps == interrupted
    assert run.epochs == epochs
    assert run.samples == sum(size * steps for size, steps in step_samples)
    assert run.steps == len(run.step_seconds) == len(run.losses)
    assert all(seconds > 0 for seconds in run.step_seconds)
    assert run.device == "cpu"
    assert run.notes == []
    lines = [line.split() for line in done.stdout.splitlines()]
    told = [float(value) for line in lines if line[:1] == ["LOSSES"] for value in line[2:]]
    assert len(told) == run.steps
    pairs = [
        (loss, wanted)
        for loss, wanted in zip(run.losses, told, strict=True)
        if loss is not None and not math.isnan(wanted)
    ]
    assert len(pairs) >= run.steps // 2
    assert [loss for loss, _ in pairs] == pytest.approx([wanted for _, wanted in pairs], abs=2e-6)
    weights = next(line for line in done.stdout.splitlines() if line.startswith("WEIGHTS"))
    assert weights == _alone(script, backend)


def _alone(script: str, backend: str) -> str:
    import os

    done = subprocess.run(
        [sys.executable, str(EXAMPLES / script)],
        capture_output=True,
        text=True,
        check=True,
        env=os.environ | {"KERAS_BACKEND": backend},
    )
    return next(line for line in done.stdout.splitlines() if line.startswith("WEIGHTS"))


@pytest.mark.slow
def test_a_compiled_loop_says_what_to_add(observed: Observed) -> None:
    run, done = observed("jax_stateless.py", KERAS_BACKEND="jax")
    assert done.returncode == 1
    assert "add outpace.step(samples=" in (run.error or "")


@pytest.mark.slow
@pytest.mark.parametrize("backend", BACKENDS)
def test_a_missing_device_is_said_before_training(backend: str, observed: Observed) -> None:
    run, done = observed("keras_fit.py", options=("--device", "cuda"), KERAS_BACKEND=backend)
    assert done.returncode == 1
    assert run.steps == 0
    assert "hint: " in done.stderr
    assert "Traceback" not in done.stderr


def test_sizes_of_several_steps() -> None:
    assert sizes.split(180, 4, 50) == [50, 50, 50, 30]
    assert sizes.split(30, 1, 50) == [30]
    assert sizes.split(100, 2, 50) == [50, 50]
    assert sizes.split(70, 3, 50) == [24, 23, 23]
    assert sizes.split(0, 0, 50) == []


def test_sizes_of_batches() -> None:
    array = SimpleNamespace(shape=(7, 2))
    assert sizes.leading_size(({"a": array}, None)) == 7
    assert sizes.leading_size((SimpleNamespace(shape=()), [array])) == 7
    assert sizes.leading_size(SimpleNamespace(shape=(None, 3))) is None
    assert sizes.leading_size("text") is None
    replicas = type("PerReplica", (), {"values": (array, array)})()
    assert sizes.leading_size((replicas,)) == 14


def test_loss_out_of_a_mean() -> None:
    mean = losses.EpochMean()
    assert mean.own(2.0, 10) == 2.0
    assert mean.own(3.0, 10) == pytest.approx(4.0)
    assert mean.own(3.0, 0) is None


@pytest.mark.parametrize(
    ("name", "id_"),
    [
        ("/physical_device:GPU:1", "cuda:1"),
        ("/job:localhost/replica:0/task:0/device:GPU:0", "cuda:0"),
        ("/job:localhost/replica:0/task:0/device:CPU:0", "cpu"),
        ("/physical_device:XPU:0", "xpu:0"),
        ("cuda:2", "cuda:2"),
        ("mps:0", "mps"),
        ("cpu", "cpu"),
    ],
)
def test_names_of_devices(name: str, id_: str) -> None:
    assert places.common_id(name) == id_


def test_the_note_of_an_idle_accelerator(monkeypatch: pytest.MonkeyPatch) -> None:
    told: list[object] = []
    watch = SimpleNamespace(
        job=SimpleNamespace(device="auto"), place=lambda *place, **_: told.append(place), note=told.append
    )
    monkeypatch.setattr(places, "accelerators", lambda: {"cuda:0": "NVIDIA A100"})
    places.tell_place(watch, SimpleNamespace(device="/device:GPU:0"))  # type: ignore[arg-type]
    assert told == [("cuda:0", "NVIDIA A100")]
    places.tell_place(watch, SimpleNamespace(device="/device:CPU:0"))  # type: ignore[arg-type]
    assert told[-1] == "this script trains on the CPU although cuda:0 is here"


def test_a_device_that_is_asked_for_and_missing(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "keras", SimpleNamespace(backend=SimpleNamespace(backend=lambda: "jax")))
    monkeypatch.setattr(places, "accelerators", lambda: {"cuda:0": "NVIDIA A100"})
    places.check_asked("cuda")
    places.check_asked("auto")
    with pytest.raises(OutpaceError, match="sees no xpu device"):
        places.check_asked("xpu")
