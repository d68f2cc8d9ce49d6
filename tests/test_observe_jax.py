"""JAX and NumPy loops that tell their steps; devices as fakes shaped like JAX'."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Callable
from types import SimpleNamespace
from typing import Any

import pytest

from outpace.errors import OutpaceError
from outpace.observe import jax as observer
from outpace.records import Run

Observed = Callable[..., tuple[Run, "subprocess.CompletedProcess[str]"]]


class Gpu:
    """A GPU as JAX shows it."""

    platform = "gpu"
    device_kind = "NVIDIA A100-SXM4-40GB"
    local_hardware_id = 1
    client = SimpleNamespace(platform_version="PJRT C API\ncuda 12090")

    def memory_stats(self) -> dict[str, int]:
        return {"bytes_limit": 1000, "bytes_in_use": 300, "peak_bytes_in_use": 700}


class Cpu:
    platform = "cpu"
    device_kind = "cpu"

    def memory_stats(self) -> None:
        return None


def test_a_plain_loop(observed: Observed) -> None:
    run, done = observed("jax_loop.py")
    assert done.returncode == 0, done.stderr
    assert run.step_samples == [(24, 2), (16, 1)] * 5
    told = next(line for line in done.stdout.splitlines() if line.startswith("LOSSES")).split()[2:]
    assert run.losses == pytest.approx([float(loss) for loss in told], abs=1e-7)
    assert run.metrics["error"] == pytest.approx(run.losses[-1])
    assert run.device == "cpu"


def test_numpy_alone(observed: Observed) -> None:
    run, _ = observed("numpy_loop.py")
    assert run.step_samples == [(16, 2), (8, 1)]
    assert len(run.losses) == 3


def fake(monkeypatch: pytest.MonkeyPatch, *devices: Any) -> None:
    bridge = SimpleNamespace(_backends={"cpu": object()})
    jax = SimpleNamespace(
        __version__="0.10",
        local_devices=lambda: list(devices),
        config=SimpleNamespace(jax_default_device=None),
    )
    monkeypatch.setitem(sys.modules, "jax", jax)
    monkeypatch.setitem(sys.modules, "jax._src.xla_bridge", bridge)


def test_devices_and_peak(monkeypatch: pytest.MonkeyPatch) -> None:
    fake(monkeypatch, Gpu())
    gpu, cpu = observer.devices()
    assert (gpu.id, gpu.name, gpu.driver) == ("cuda:1", "NVIDIA A100-SXM4-40GB", "PJRT C API")
    assert (gpu.memory_total_bytes, gpu.memory_free_bytes) == (1000, 700)
    assert cpu.id == "cpu"
    assert observer.peak() == (700, "jax")


def test_no_peak_on_the_cpu(monkeypatch: pytest.MonkeyPatch) -> None:
    fake(monkeypatch, Cpu())
    assert observer.peak() is None


def test_a_device_that_is_asked_for(monkeypatch: pytest.MonkeyPatch) -> None:
    fake(monkeypatch, Gpu())
    observer.check_asked("cuda:0")
    with pytest.raises(OutpaceError, match="sees no xpu device"):
        observer.check_asked("xpu")


def test_the_note_of_an_idle_accelerator(monkeypatch: pytest.MonkeyPatch) -> None:
    fake(monkeypatch, Cpu(), Gpu())
    monkeypatch.setattr(observer, "told_by_script", lambda _watch: True)
    told: list[Any] = []
    watch: Any = SimpleNamespace(
        job=SimpleNamespace(device="auto"), place=lambda *place: told.append(place), note=told.append
    )
    observer.tell_place(watch)
    assert told[0][0] == "cpu"
    assert told[1] == "this script trains on the CPU although cuda:1 is here"
