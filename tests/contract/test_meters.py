"""Every meter keeps the contract of the folder: a named source, or a reason. Never a silent zero."""

from __future__ import annotations

import sys
from collections.abc import Callable
from pathlib import Path
from types import ModuleType, SimpleNamespace
from typing import Any

import pytest

from outpace import meters
from outpace.errors import OutpaceError
from outpace.meters import amd, cpu, intel
from outpace.records import Device
from tests.fakes import AmdCard, Microjoules, NvidiaCard, Power, Time, amdsmi, hwmon, pynvml, simulated

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


@pytest.mark.parametrize("device", DEVICES, ids=lambda device: f"{device.id} {device.name}")
def test_opens_exactly_where_nothing_is_in_the_way(device: Device) -> None:
    reason = meters.source_of(device)[1]
    gauge, missing = meters.open_for(device)
    assert (gauge is None) != (missing is None)
    assert (missing is None) == (reason is None)
    meter = next(meter for meter in map(meters.load, meters.names()) if meter.covers(device))
    if reason is None:
        assert gauge is not None
        gauge.close()
    else:
        assert reason in str(missing)
        with pytest.raises(OutpaceError) as error:
            meter.open(device)
        assert reason in error.value.what
        assert error.value.hint


def test_an_unknown_kind_of_device_is_not_opened() -> None:
    gauge, reason = meters.open_for(Device(framework="jax", id="tpu:0", name="TPU v4"))
    assert gauge is None
    assert reason


def nvidia_here(time: Time, patch: pytest.MonkeyPatch, _root: Path) -> Device:
    patch.setitem(sys.modules, "pynvml", pynvml([NvidiaCard(Power(time), uuid="GPU-aa11")]))
    return DEVICES[0]


def nvidia_without_counter_here(time: Time, patch: pytest.MonkeyPatch, _root: Path) -> Device:
    card = NvidiaCard(Power(time), uuid="GPU-aa11", counter=None)
    patch.setitem(sys.modules, "pynvml", pynvml([card]))
    return DEVICES[0]


def amd_here(time: Time, patch: pytest.MonkeyPatch, _root: Path) -> Device:
    patch.setattr(amd, "_users", 0)
    patch.setitem(sys.modules, "amdsmi", amdsmi([AmdCard(Power(time))]))
    return Device(framework="torch", id="cuda:0", name="MI300X", driver="ROCm 6", pci_address="0000:c1:00.0")


def intel_here(time: Time, patch: pytest.MonkeyPatch, root: Path) -> Device:
    patch.setattr(intel.open, "__defaults__", (root,))
    patch.setattr(intel.why_not, "__defaults__", (root,))
    Microjoules(time, hwmon(root) / "energy1_input", lambda joules: joules, Power(time))
    return DEVICES[2]


def cpu_here(time: Time, patch: pytest.MonkeyPatch, root: Path) -> Device:
    patch.setattr(cpu.open, "__defaults__", (root,))
    patch.setattr(cpu.why_not, "__defaults__", (root,))
    (root / "intel-rapl:0").mkdir()
    Microjoules(time, root / "intel-rapl:0" / "energy_uj", lambda joules: joules, Power(time))
    return DEVICES[4]


def apple_here(time: Time, patch: pytest.MonkeyPatch, _root: Path) -> Device:
    power, module = Power(time), ModuleType("zeus_apple_silicon")
    told = SimpleNamespace(get_cumulative_energy=lambda: SimpleNamespace(gpu_mj=int(power.joules * 1e3)))
    patch.setattr(module, "AppleEnergyMonitor", lambda: told, raising=False)
    patch.setitem(sys.modules, "zeus_apple_silicon", module)
    return DEVICES[3]


#: For each meter a machine on which it works: a new one is missed by the first test below.
HERE: dict[str, list[Callable[[Time, pytest.MonkeyPatch, Path], Device]]] = {
    "amd": [amd_here],
    "apple": [apple_here],
    "cpu": [cpu_here],
    "intel": [intel_here],
    "nvidia": [nvidia_here, nvidia_without_counter_here],
}


def test_no_reading_tells_utilisation_which_is_time_with_any_kernel_and_not_use_of_the_card() -> None:
    assert not [name for name in meters.Reading._fields if "util" in name]


def test_every_meter_is_held_to_what_a_gauge_does() -> None:
    assert set(HERE) == set(meters.names())


@pytest.mark.parametrize("here", [here for each in HERE.values() for here in each], ids=lambda f: f.__name__)
def test_a_gauge(here: Any, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    time = simulated(monkeypatch)
    device = here(time, monkeypatch, tmp_path)
    assert meters.source_of(device)[1] is None
    begun = time.now
    gauge, missing = meters.open_for(device)
    assert gauge is not None, missing
    assert time.now - begun <= 0.3
    assert gauge.source
    assert gauge.scope.split(" ")[0] in ("card", "module", "package", "chip")
    assert gauge.caveat is None or len(gauge.caveat) > 10
    sums = []
    for _ in range(20):
        time.sleep(0.1)
        reading = gauge.read()
        assert reading.joules is not None
        assert reading.watts is None or reading.watts > 0
        sums.append(reading.joules)
    assert sums == sorted(sums)
    assert sums[-1] == pytest.approx(600, rel=0.01), "2 s of 300 W, from the opening on"
    gauge.close()
    gauge.close()
    with pytest.raises(OutpaceError):
        gauge.read()
