"""RAPL of one and several packages, root only, wrapping, doubled; and the energy model of Apple's chips."""

from __future__ import annotations

import sys
from pathlib import Path
from types import ModuleType, SimpleNamespace
from typing import Any

import pytest

from outpace.errors import OutpaceError
from outpace.meters import Gauge, apple, cpu
from outpace.records import Device
from tests.fakes import Microjoules, Power, Time, simulated

CPU = Device(framework="torch", id="cpu", name="AMD EPYC")
MAC = Device(framework="torch", id="mps", name="Apple M2 Max")


@pytest.fixture
def time(monkeypatch: pytest.MonkeyPatch) -> Time:
    return simulated(monkeypatch)


def domain(time: Time, root: Path, zone: str, name: str, power: Power, wraps_at: float = 262_143.0) -> Path:
    """A RAPL domain of the kernel below *root*."""
    folder = root / zone
    folder.mkdir()
    (folder / "name").write_text(f"{name}\n")
    (folder / "max_energy_range_uj").write_text(f"{int(wraps_at * 1e6)}\n")
    Microjoules(time, folder / "energy_uj", lambda joules: joules % wraps_at, power)
    return folder


def opened(root: Path) -> Gauge:
    assert cpu.why_not(CPU, root) is None
    return cpu.open(CPU, root)


def refused(root: Path) -> str:
    reason = cpu.why_not(CPU, root)
    assert reason is not None
    with pytest.raises(OutpaceError) as error:
        cpu.open(CPU, root)
    assert reason in error.value.what
    assert "chmod" in str(error.value.hint)
    return reason


def test_one_package(time: Time, tmp_path: Path) -> None:
    domain(time, tmp_path, "intel-rapl:0", "package-0", Power(time, watts=120))
    gauge = opened(tmp_path)
    assert (gauge.source, gauge.scope) == ("RAPL", "package")
    time.sleep(10)
    assert gauge.read().joules == pytest.approx(1200, rel=1e-3)


def test_several_packages_are_summed_and_their_parts_are_not(time: Time, tmp_path: Path) -> None:
    first, second = Power(time, watts=100), Power(time, watts=150, joules=77)
    domain(time, tmp_path, "intel-rapl:0", "package-0", first)
    domain(time, tmp_path, "intel-rapl:1", "package-1", second)
    domain(time, tmp_path, "intel-rapl:0:0", "core", Power(time, watts=80))
    domain(time, tmp_path, "intel-rapl:0:1", "dram", Power(time, watts=30))
    domain(time, tmp_path, "intel-rapl:2", "psys", Power(time, watts=400))
    domain(time, tmp_path, "intel-rapl-mmio:0", "package-0", first)
    gauge = opened(tmp_path)
    assert gauge.scope == "package (all 2 of them)"
    time.sleep(10)
    assert gauge.read().joules == pytest.approx(2500, rel=1e-3)


def test_a_threadripper_is_not_doubled_by_dies_that_mirror_one_counter(time: Time, tmp_path: Path) -> None:
    socket = Power(time, watts=68)
    domain(time, tmp_path, "intel-rapl:0", "package-0-die-0", socket)
    domain(time, tmp_path, "intel-rapl:1", "package-0-die-1", socket)
    gauge = opened(tmp_path)
    time.sleep(10)
    assert gauge.scope == "package"
    assert gauge.read().joules == pytest.approx(680, rel=1e-3)


def test_dies_with_counters_of_their_own_are_summed(time: Time, tmp_path: Path) -> None:
    domain(time, tmp_path, "intel-rapl:0", "package-0-die-0", Power(time, watts=100, joules=5000))
    domain(time, tmp_path, "intel-rapl:1", "package-0-die-1", Power(time, watts=100, joules=9000))
    gauge = opened(tmp_path)
    time.sleep(10)
    assert gauge.read().joules == pytest.approx(2000, rel=1e-3)


def test_a_counter_that_wraps_loses_nothing(time: Time, tmp_path: Path) -> None:
    domain(time, tmp_path, "intel-rapl:0", "package-0", Power(time, watts=200, joules=9990), wraps_at=1e4)
    gauge = opened(tmp_path)
    for _ in range(600):
        time.sleep(0.1)
        reading = gauge.read()
    assert reading.joules == pytest.approx(200 * 60, rel=1e-3)
    assert gauge.caveat == cpu.CAVEAT, "nothing went wrong"


@pytest.mark.usefixtures("time")
def test_in_a_virtual_machine_cpu_energy_is_not_measured(tmp_path: Path) -> None:
    assert "virtual machines" in refused(tmp_path)


def test_a_counter_for_root_only_names_the_one_line_fix(
    time: Time, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    domain(time, tmp_path, "intel-rapl:0", "package-0", Power(time))
    read = Path.read_text

    def forbidden(path: Path, *args: Any, **kwargs: Any) -> str:
        if path.name == "energy_uj":
            raise PermissionError
        return read(path, *args, **kwargs)

    monkeypatch.setattr(Path, "read_text", forbidden)
    assert "sudo chmod -R a+r" in refused(tmp_path)


def test_a_counter_that_stands_is_not_believed(time: Time, tmp_path: Path) -> None:
    domain(time, tmp_path, "intel-rapl:0", "package-0", Power(time, watts=0))
    assert "stands still" in refused(tmp_path)


def energy_model(power: Power, **parts: int | None) -> Any:
    """The module ``zeus_apple_silicon``: a chip of which the GPU draws *power*."""
    module: Any = ModuleType("zeus_apple_silicon")

    class AppleEnergyMonitor:
        def get_cumulative_energy(self) -> Any:
            return SimpleNamespace(gpu_mj=int(power.joules * 1e3), dram_mj=None, **parts)

    module.AppleEnergyMonitor = AppleEnergyMonitor
    return module


def test_apple_without_the_package_is_not_measured(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "zeus_apple_silicon", None)
    assert "powermetrics" in str(apple.why_not(MAC))
    with pytest.raises(OutpaceError, match="root only") as error:
        apple.open(MAC)
    assert error.value.hint == "pip install zeus-apple-silicon"


def test_apple_with_the_package_sums_the_parts_of_the_chip(
    time: Time, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(
        sys.modules, "zeus_apple_silicon", energy_model(Power(time, watts=20), cpu_total_mj=7)
    )
    assert apple.why_not(MAC) is None
    gauge = apple.open(MAC)
    time.sleep(10)
    assert gauge.read().joules == pytest.approx(200, rel=1e-3)
    assert gauge.scope == "chip"
    assert "estimates" in str(gauge.caveat)


def test_apple_whose_model_tells_nothing_is_not_measured(time: Time, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "zeus_apple_silicon", energy_model(Power(time, watts=0, joules=0)))
    assert "stands still" in str(apple.why_not(MAC))
    with pytest.raises(OutpaceError, match="stands still"):
        apple.open(MAC)
