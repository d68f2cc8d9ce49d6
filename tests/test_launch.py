"""The parent side: what the worker's environment says, and which signals reach it."""

from __future__ import annotations

import os
import signal
import time
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from outpace import launch, protocol
from outpace.errors import OutpaceError, UsageError


def test_auto_changes_only_how_memory_is_taken() -> None:
    env = launch.environment("auto", {"A": "1", "CUDA_VISIBLE_DEVICES": "3"})
    assert env["A"] == "1"
    assert env["CUDA_VISIBLE_DEVICES"] == "3"
    assert env["XLA_PYTHON_CLIENT_PREALLOCATE"] == "false"
    assert env["TF_FORCE_GPU_ALLOW_GROWTH"] == "true"


def test_the_users_own_memory_settings_win() -> None:
    assert (
        launch.environment("auto", {"XLA_PYTHON_CLIENT_PREALLOCATE": "true"})["XLA_PYTHON_CLIENT_PREALLOCATE"]
        == "true"
    )


def test_cpu_hides_the_cards() -> None:
    env = launch.environment("cpu", {"CUDA_VISIBLE_DEVICES": "0,1"})
    assert env["CUDA_VISIBLE_DEVICES"] == "-1"
    assert env["JAX_PLATFORMS"] == "cpu"


@pytest.mark.parametrize(
    ("device", "before", "variable", "after"),
    [
        ("cuda:1", {}, "CUDA_VISIBLE_DEVICES", "1"),
        ("cuda:1", {"CUDA_VISIBLE_DEVICES": "4,6"}, "CUDA_VISIBLE_DEVICES", "6"),
        ("cuda:0", {"CUDA_VISIBLE_DEVICES": "GPU-aa, GPU-bb"}, "CUDA_VISIBLE_DEVICES", "GPU-aa"),
        ("cuda:1", {"CUDA_VISIBLE_DEVICES": "MIG-a,MIG-b"}, "CUDA_VISIBLE_DEVICES", "MIG-b"),
        ("cuda:1", {"HIP_VISIBLE_DEVICES": "2,3"}, "HIP_VISIBLE_DEVICES", "3"),
        ("xpu:1", {}, "ZE_AFFINITY_MASK", "1"),
        ("xpu:1", {"ZE_AFFINITY_MASK": "0.0,0.1"}, "ZE_AFFINITY_MASK", "0.1"),
    ],
)
def test_one_device_of_those_that_are_visible(
    device: str, before: dict[str, str], variable: str, after: str
) -> None:
    assert launch.environment(device, before)[variable] == after


def test_hip_devices_are_chosen_once() -> None:
    env = launch.environment("cuda:1", {"HIP_VISIBLE_DEVICES": "2,3"})
    assert "CUDA_VISIBLE_DEVICES" not in env, "both lists would be applied one after the other"


def test_a_device_beyond_the_visible_ones_is_refused() -> None:
    with pytest.raises(OutpaceError, match="only 2 are visible"):
        launch.environment("cuda:2", {"CUDA_VISIBLE_DEVICES": "4,6"})


@pytest.mark.parametrize(
    "device", ["", "gpu", "cuda:", "cuda:x", "cuda:-1", "cpu:0", "mps:1", "auto:1", "CUDA"]
)
def test_no_such_device(device: str) -> None:
    if device == "cuda:":
        assert launch.environment(device, {})
        return
    with pytest.raises(UsageError, match="unknown device"):
        launch.environment(device, {})


@given(st.text(max_size=12))
def test_any_text_is_a_device_or_a_clear_error(device: str) -> None:
    try:
        launch.environment(device, {})
    except OutpaceError as error:
        assert error.what


class Worker:
    pid = 4242


@pytest.fixture
def killed(monkeypatch: pytest.MonkeyPatch) -> list[tuple[int, int]]:
    found: list[tuple[int, int]] = []
    monkeypatch.setattr(os, "killpg", lambda pid, number: found.append((pid, number)))
    return found


def test_a_worker_that_was_stopped_and_stays_is_killed(
    killed: list[tuple[int, int]], monkeypatch: pytest.MonkeyPatch
) -> None:
    now = 100.0
    monkeypatch.setattr(time, "monotonic", lambda: now)
    worker: Any = Worker()
    deadline = launch._Deadline(worker)
    heard: list[protocol.AnyEvent] = []
    ticks: list[float] = []
    hear, tick = deadline.hearing(heard.append), deadline.ticking(lambda: ticks.append(now))
    hear(protocol.Began(at=1.0))
    now += 1000
    tick()
    assert killed == [], "a training may take as long as it likes"
    hear(protocol.Phase(at=1.5, name="over"))
    now += launch.CLEAN_UP_SECONDS - 0.1
    tick()
    assert killed == []
    hear(protocol.Ended(at=2.0, state="stopped"))
    now += launch.STOP_SECONDS - 0.1
    tick()
    assert killed == []
    now += 0.2
    tick()
    assert killed == [(4242, signal.SIGKILL)]
    assert [type(event) for event in heard] == [protocol.Began, protocol.Phase, protocol.Ended]
    assert len(ticks) == 4


def test_a_script_that_hangs_in_its_own_clean_up_is_killed(
    killed: list[tuple[int, int]], monkeypatch: pytest.MonkeyPatch
) -> None:
    now = 0.0
    monkeypatch.setattr(time, "monotonic", lambda: now)
    worker: Any = Worker()
    deadline = launch._Deadline(worker)
    deadline.hearing(lambda _event: None)(protocol.Phase(at=1.0, name="over"))
    now = launch.CLEAN_UP_SECONDS + 0.1
    deadline.ticking(lambda: None)()
    assert killed == [(4242, signal.SIGKILL)]


def test_a_worker_that_is_gone_need_not_be_killed(monkeypatch: pytest.MonkeyPatch) -> None:
    def gone(_pid: int, _number: int) -> None:
        raise ProcessLookupError

    monkeypatch.setattr(os, "killpg", gone)
    now = 0.0
    monkeypatch.setattr(time, "monotonic", lambda: now)
    worker: Any = Worker()
    deadline = launch._Deadline(worker)
    deadline.hearing(lambda _event: None)(protocol.Ended(at=2.0, state="stopped"))
    now = 1e6
    ticks: list[int] = []
    deadline.ticking(lambda: ticks.append(1))()
    assert ticks == [1]
