"""Devices as PyTorch tells them, with fakes in the shape of its device properties."""

from __future__ import annotations

import time
from types import SimpleNamespace
from typing import Any

import pytest
import torch

from outpace import protocol
from outpace.errors import OutpaceError
from outpace.observe.torch import places
from outpace.watcher import Watch

A100 = SimpleNamespace(
    name="NVIDIA A100-SXM4-40GB",
    total_memory=42405855232,
    uuid="d0f1a2b3-0000-1111-2222-333344445555",
    pci_domain_id=0,
    pci_bus_id=7,
    pci_device_id=0,
    multi_processor_count=108,
    major=8,
    minor=0,
)


@pytest.fixture
def cuda(monkeypatch: pytest.MonkeyPatch) -> None:
    """Two A100 under CUDA 12.8."""
    monkeypatch.setattr(torch.cuda, "is_available", lambda: True)
    monkeypatch.setattr(torch.cuda, "is_initialized", lambda: True)
    monkeypatch.setattr(torch.cuda, "device_count", lambda: 2)
    monkeypatch.setattr(torch.cuda, "get_device_properties", lambda _index: A100)
    monkeypatch.setattr(torch.cuda, "mem_get_info", lambda _index: (40 * 2**30, A100.total_memory))
    monkeypatch.setattr(torch.cuda, "max_memory_allocated", lambda index: [3 * 2**30, 0][index])
    monkeypatch.setattr(torch.version, "cuda", "12.8")


def watching(device: str = "auto") -> tuple[Watch, list[Any]]:
    sent: list[Any] = []
    job = protocol.Job(script="train.py", device=device, events_fd=-1, spawned_at=time.time())
    return Watch(sent.append, job), sent


@pytest.mark.usefixtures("cuda")
def test_cards_come_before_the_cpu() -> None:
    found = places.all_devices()
    assert [device.id for device in found] == ["cuda:0", "cuda:1", "cpu"]
    assert found[0].name == "NVIDIA A100-SXM4-40GB"
    assert found[0].driver == "CUDA 12.8"
    assert found[0].pci_address == "00000000:07:00.0"
    assert found[0].memory_free_bytes == 40 * 2**30
    assert found[0].dtypes == {"fp16": True, "tf32": True, "bf16": True, "fp8": False}


@pytest.mark.usefixtures("cuda")
def test_training_on_the_cpu_beside_a_card_is_said() -> None:
    watch, sent = watching()
    places.tell_place(watch, torch.device("cpu"))
    notes = [event.text for event in sent if isinstance(event, protocol.Note)]
    assert len(notes) == 1
    assert notes[0].startswith("this script trains on the CPU although cuda:0 is here")


@pytest.mark.usefixtures("cuda")
def test_training_on_the_card_or_on_request_on_the_cpu_needs_no_note() -> None:
    for asked, device in (("auto", "cuda:1"), ("cpu", "cpu")):
        watch, sent = watching(asked)
        places.tell_place(watch, torch.device(device))
        assert [type(event) for event in sent] == [protocol.Place]
        assert sent[0].device == device


@pytest.mark.usefixtures("cuda")
def test_peak_is_the_allocators_own() -> None:
    assert places.peak() == (3 * 2**30, "torch.cuda")


@pytest.mark.usefixtures("cuda")
def test_rocm_is_called_rocm(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(torch.version, "hip", "6.4.1")
    assert places.all_devices()[0].driver == "ROCm 6.4.1"


def test_missing_device_and_missing_build_are_told_apart(monkeypatch: pytest.MonkeyPatch) -> None:
    places.check_asked("auto")
    places.check_asked("cpu")
    with pytest.raises(OutpaceError, match="is built without cuda"):
        places.check_asked("cuda")
    monkeypatch.setattr(torch.version, "cuda", "12.8")
    with pytest.raises(OutpaceError, match="no cuda device is here"):
        places.check_asked("cuda")
