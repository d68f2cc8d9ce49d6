"""What is known of the devices that are here."""

from __future__ import annotations

import subprocess
from typing import Any

import pytest

from outpace import observe
from outpace.records import Device, Host
from outpace.report import text
from outpace.verbs import devices as verb
from outpace.visible import Physical

A100 = Device(
    framework="torch",
    id="cuda:0",
    name="NVIDIA A100-SXM4-40GB",
    driver="CUDA 12.8",
    uuid="GPU-aa",
    pci_address="00000000:07:00.0",
    memory_total_bytes=42405855232,
    memory_free_bytes=40 * 2**30,
    dtypes={"tf32": True, "bf16": True, "fp8": False},
)
HOST = Host(name="here", system="Linux", cpu="a CPU", cores=3.5, matrix_extensions=("AMX-BF16", "AVX2"))


def test_the_card_is_found() -> None:
    assert verb.known(A100).card == "a100-sxm-40gb"


def test_an_unknown_card_stays_unknown() -> None:
    stranger = Device(framework="torch", id="cuda:0", name="NVIDIA A100-SXM4-41GB", memory_total_bytes=1)
    assert verb.known(stranger).card is None


def test_a_slice_is_a_slice_of_its_card() -> None:
    part = verb.known(Device(framework="torch", id="cuda:0", name="NVIDIA A100-SXM4-40GB MIG 1g.5gb"))
    assert part.card == "a100-sxm-40gb"
    assert part.part == "MIG slice 1g.5gb"
    virtual = verb.known(Device(framework="torch", id="cuda:0", name="GRID A100-10C"))
    assert virtual.part is not None
    assert "virtual GPU" in virtual.part


def test_a_framework_that_tells_only_an_index_is_mapped_by_the_visible_list() -> None:
    physical = [
        Physical(uuid=f"GPU-{index}", pci_address=f"00000000:0{index}:00.0", name="NVIDIA L4")
        for index in range(3)
    ]
    second = Device(framework="jax", id="cuda:1", name="NVIDIA L4")
    assert verb.identified(second, physical, {}).uuid == "GPU-1"
    assert verb.identified(second, physical, {"CUDA_VISIBLE_DEVICES": "2,0"}).uuid == "GPU-0"
    assert (
        verb.identified(second, physical, {"CUDA_VISIBLE_DEVICES": "GPU-1,GPU-2"}).pci_address
        == "00000000:02:00.0"
    )
    assert verb.identified(second, physical, {"CUDA_VISIBLE_DEVICES": "2"}).uuid is None
    mixed = [*physical, Physical(uuid="GPU-9", pci_address="00000000:09:00.0", name="NVIDIA T4")]
    assert verb.identified(second, mixed, {}).uuid is None, "CUDA may sort by speed"
    assert verb.identified(second, mixed, {"CUDA_DEVICE_ORDER": "PCI_BUS_ID"}).uuid == "GPU-1"


def test_every_device_has_an_energy_source_or_a_reason() -> None:
    device = verb.known(A100)
    assert (device.energy_source is None) != (device.energy_missing_because is None)


def test_as_text() -> None:
    answers = [
        verb.Answer(framework="jax", why_not="JAX is not installed"),
        verb.Answer(
            framework="torch", devices=[verb.known(A100), Device(framework="torch", id="cpu", name="a CPU")]
        ),
    ]
    shown = text.devices(verb.Found(host=HOST, frameworks=answers))
    assert "jax: JAX is not installed" in shown
    assert "cuda:0  NVIDIA A100-SXM4-40GB, CUDA 12.8" in shown
    assert "card    a100-sxm-40gb" in shown
    assert "memory  40.0 GiB of 39.5 GiB free" in shown
    assert "types   tf32, bf16, no fp8" in shown
    assert "cores   3.5" in shown
    assert "units   AMX-BF16, AVX2" in shown
    assert "GPU-aa at 00000000:07:00.0" in shown


def answering(monkeypatch: pytest.MonkeyPatch, result: Any) -> verb.Answer:
    name = observe.names()[0]
    monkeypatch.setattr(observe.load(name), "why_not", lambda: None)

    def run(*_args: Any, **_kwargs: Any) -> Any:
        if isinstance(result, Exception):
            raise result
        return result

    monkeypatch.setattr(subprocess, "run", run)
    return verb._ask(name)


def test_a_framework_that_hangs_or_crashes_is_said(monkeypatch: pytest.MonkeyPatch) -> None:
    hanging = answering(monkeypatch, subprocess.TimeoutExpired("python", 1))
    assert "gave no answer" in str(hanging.why_not)
    crashed = answering(
        monkeypatch,
        subprocess.CompletedProcess([], 1, stdout=b"", stderr=b"Traceback\nImportError: libcudart\n"),
    )
    assert "ImportError: libcudart" in str(crashed.why_not)
    silent = answering(monkeypatch, subprocess.CompletedProcess([], -11, stdout=b"", stderr=b""))
    assert "without a word" in str(silent.why_not)
