"""Every meter keeps the contract of the folder: a named source, or a reason. Never a silent zero."""

from __future__ import annotations

import pytest

from outpace import meters
from outpace.records import Device

DEVICES = [
    Device(framework="torch", id="cuda:0", name="NVIDIA A100-SXM4-40GB", driver="CUDA 12.8", uuid="aa11"),
    Device(framework="torch", id="cuda:0", name="AMD Instinct MI300X", driver="ROCm 6.4"),
    Device(
        framework="torch", id="xpu:0", name="Intel(R) Data Center GPU Max 1100", pci_address="0000:29:00.0"
    ),
    Device(framework="torch", id="mps", name="Apple M2 Max"),
    Device(framework="torch", id="cpu", name="AMD EPYC"),
    Device(framework="torch", id="cpu", name="Apple M2 Max"),
]


@pytest.mark.parametrize("name", meters.names())
def test_meter(name: str) -> None:
    meter = meters.load(name)
    assert meter.SOURCE
    assert "," in meter.SOURCE, "says what it covers"
    covered = [device for device in DEVICES if meter.covers(device)]
    assert covered
    for device in covered:
        reason = meter.why_not(device)
        assert reason is None or len(reason) > 10


@pytest.mark.parametrize("device", DEVICES, ids=lambda device: f"{device.id} {device.name}")
def test_each_device_has_one_meter_and_a_source_or_a_reason(device: Device) -> None:
    assert sum(meters.load(name).covers(device) for name in meters.names()) == 1
    source, reason = meters.source_of(device)
    assert (source is None) != (reason is None)


def test_an_unknown_kind_of_device_has_a_reason() -> None:
    source, reason = meters.source_of(Device(framework="jax", id="tpu:0", name="TPU v4"))
    assert source is None
    assert reason
