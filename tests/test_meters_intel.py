"""Intel: the kernel's counters first, then Sysman; counters that drop back, stand at zero or are missing."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from outpace.errors import OutpaceError
from outpace.meters import Gauge, intel
from outpace.meters.intel import sysman
from outpace.meters.intel.clocks import conditions
from outpace.records import Device
from tests.fakes import Microjoules, Power, Time, ZeLoader, hwmon, simulated

MAX = Device(framework="torch", id="xpu:0", name="Intel Max 1100", pci_address="00000000:29:00.0")


@pytest.fixture
def time(monkeypatch: pytest.MonkeyPatch) -> Time:
    monkeypatch.setattr(sysman, "LIBRARY", "libze_loader_of_no_test.so.1")
    return simulated(monkeypatch)


def counter(
    time: Time, folder: Path, power: Power, number: int = 1, label: str = "", shows: Any = None
) -> Path:
    """``energy<number>_input`` of *folder*, counting."""
    file = folder / f"energy{number}_input"
    Microjoules(time, file, shows or (lambda joules: joules), power)
    if label:
        (folder / f"energy{number}_label").write_text(f"{label}\n")
    return file


def opened(root: Path, device: Device = MAX) -> Gauge:
    assert intel.why_not(device, root) is None
    return intel.open(device, root)


def refused(root: Path, device: Device = MAX) -> str:
    reason = intel.why_not(device, root)
    assert reason is not None
    with pytest.raises(OutpaceError) as error:
        intel.open(device, root)
    assert reason in error.value.what
    assert error.value.hint
    return reason


@pytest.mark.parametrize("name", ["xe", "i915"])
def test_the_counter_of_the_kernel_is_read(name: str, time: Time, tmp_path: Path) -> None:
    counter(time, hwmon(tmp_path, name=name), Power(time))
    gauge = opened(tmp_path)
    assert (gauge.source, gauge.scope) == ("hwmon energy counter", "card")
    time.sleep(10)
    assert gauge.read().joules == pytest.approx(3000, rel=1e-3)


def test_the_counter_of_the_card_is_preferred_to_that_of_the_package(time: Time, tmp_path: Path) -> None:
    folder = hwmon(tmp_path)
    counter(time, folder, Power(time, watts=200), number=1, label="pkg")
    counter(time, folder, Power(time, watts=300), number=2, label="card")
    gauge = opened(tmp_path)
    time.sleep(1)
    assert gauge.scope == "card"
    assert gauge.read().joules == pytest.approx(300, rel=0.01)


def test_the_further_counters_of_i915_for_tiles_are_left_out(time: Time, tmp_path: Path) -> None:
    counter(time, hwmon(tmp_path, name="i915_gt0", number=1), Power(time, watts=120))
    counter(time, hwmon(tmp_path, name="i915", number=2), Power(time))
    gauge = opened(tmp_path)
    time.sleep(1)
    assert gauge.read().joules == pytest.approx(300, rel=0.01)


def test_a_package_counter_is_named_as_such(time: Time, tmp_path: Path) -> None:
    folder = hwmon(tmp_path)
    counter(time, folder, Power(time), number=1, label="card", shows=lambda _: 0)
    counter(time, folder, Power(time, watts=200), number=2, label="pkg")
    gauge = opened(tmp_path)
    assert gauge.scope == "package"


def test_a_counter_that_drops_back_makes_no_spike_of_terawatts(time: Time, tmp_path: Path) -> None:
    power = Power(time, joules=22_543_283)
    stumbling: list[float] = []
    counter(time, hwmon(tmp_path), power, shows=lambda joules: stumbling.pop() if stumbling else joules)
    gauge = opened(tmp_path)
    sums = []
    for second in range(20):
        if second == 7:
            stumbling.append(203.0)
        time.sleep(1)
        sums.append(gauge.read().joules or 0.0)
    assert sums == sorted(sums)
    assert sums[7] == sums[6], "the last good value stands"
    assert sums[-1] == pytest.approx(20 * 300, rel=1e-3), "nothing is lost"
    assert "dropped back" in str(gauge.caveat)


def test_a_counter_that_begins_again_at_zero_counts_on(time: Time, tmp_path: Path) -> None:
    power = Power(time, joules=262_000)
    counter(time, hwmon(tmp_path), power, shows=lambda joules: joules % 262_144)
    gauge = opened(tmp_path)
    for _ in range(20):
        time.sleep(0.1)
        reading = gauge.read()
    assert reading.joules == pytest.approx(2 * 300, rel=0.2)


@pytest.mark.parametrize("shows", [lambda _: 0, lambda _: 5000.0], ids=["zero", "frozen"])
def test_a_counter_of_dg1_that_stands_is_not_believed(shows: Any, time: Time, tmp_path: Path) -> None:
    counter(time, hwmon(tmp_path), Power(time), shows=shows)
    assert "stands" in refused(tmp_path)


def test_cards_are_told_apart_by_pci_address(time: Time, tmp_path: Path) -> None:
    counter(time, hwmon(tmp_path, address="0000:3a:00.0", number=1), Power(time, watts=99))
    assert "PCI address" in refused(tmp_path)
    counter(time, hwmon(tmp_path, number=2), Power(time))
    gauge = opened(tmp_path)
    time.sleep(1)
    assert gauge.read().joules == pytest.approx(300, rel=0.01)
    unnamed = Device(framework="torch", id="xpu:0", name="Intel")
    assert "several Intel cards" in refused(tmp_path, unnamed)


def test_a_stack_has_the_energy_of_its_whole_card_and_says_so(time: Time, tmp_path: Path) -> None:
    counter(time, hwmon(tmp_path), Power(time))
    stack = Device(
        framework="torch", id="xpu:1", name="Intel", pci_address="0000:29:00.0", card="max-1550-stack"
    )
    assert opened(tmp_path, stack).scope == "card (of which this is a part)"


def loader(monkeypatch: pytest.MonkeyPatch, *domains: tuple[bool, Any], **how: Any) -> ZeLoader:
    """Level Zero with another card, and the card 29 with energy *domains*."""
    zes = ZeLoader({0x3A: [(False, lambda: 7.0)], 0x29: list(domains)}, **how)
    monkeypatch.setattr(sysman, "_library", lambda: zes)
    return zes


def test_where_hwmon_is_hidden_sysman_is_read(
    time: Time, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    power = Power(time)
    loader(monkeypatch, (False, lambda: power.joules * 1e6))
    gauge = opened(tmp_path)
    assert (gauge.source, gauge.scope) == ("Level Zero Sysman energy counter", "card")
    time.sleep(10)
    assert gauge.read().joules == pytest.approx(3000, rel=1e-3)


def test_hwmon_is_read_first_even_where_sysman_is_there(
    time: Time, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    loader(monkeypatch, (False, lambda: 203e6))
    file = counter(time, hwmon(tmp_path), Power(time))
    assert opened(tmp_path).source == "hwmon energy counter"
    file.write_text("0\n")
    time.passing.clear()
    assert "stands at zero" in refused(tmp_path)


def test_sysman_without_a_counter_of_the_card_tells_that_of_the_package(
    time: Time, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    power = Power(time)
    tile = (True, lambda: 1.0)
    loader(monkeypatch, tile, (False, lambda: power.joules * 1e6), whole=False)
    assert opened(tmp_path).scope == "package"


def test_a_counter_of_sysman_that_drops_back_keeps_the_last_good_value(
    time: Time, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    power = Power(time, joules=22_543_283)
    stumbles = [False]
    loader(monkeypatch, (False, lambda: 203e6 if stumbles[0] else power.joules * 1e6))
    gauge = opened(tmp_path)
    time.sleep(1)
    before = gauge.read().joules
    stumbles[0] = True
    assert gauge.read().joules == before
    stumbles[0] = False
    time.sleep(1)
    assert gauge.read().joules == pytest.approx(600, rel=1e-3)
    assert "dropped back" in str(gauge.caveat)


@pytest.mark.parametrize(
    ("domains", "said"),
    [
        ([], "none of integrated GPUs"),
        ([(False, lambda: 0.0)], "always zero on DG1"),
        ([(False, lambda: -1.0)], "tells no energy"),
        ([(False, lambda: 5e9)], "stands still"),
    ],
    ids=["iGPU", "DG1", "not permitted", "frozen"],
)
@pytest.mark.usefixtures("time")
def test_sysman_without_energy_has_a_reason(
    domains: Any, said: str, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    loader(monkeypatch, *domains)
    reason = refused(tmp_path)
    assert "no hwmon" in reason
    assert said in reason


@pytest.mark.usefixtures("time")
def test_sysman_that_does_not_start_has_a_reason(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    loader(monkeypatch).init = 0x78000001
    assert "zesInit fails with 0x78000001" in refused(tmp_path)


@pytest.mark.usefixtures("time")
def test_without_hwmon_and_level_zero_both_are_named(tmp_path: Path) -> None:
    reason = refused(tmp_path)
    assert "no hwmon" in reason
    assert ".so.1 is missing" in reason


def write(folder: Path, **files: object) -> None:
    folder.mkdir(parents=True, exist_ok=True)
    for name, value in files.items():
        (folder / name).write_text(f"{value}\n")


def test_clock_throttling_and_temperature_of_xe(tmp_path: Path) -> None:
    write(tmp_path / "tile0/gt0/freq0", act_freq=1450, rp0_freq=1550)
    write(tmp_path / "tile0/gt0/freq0/throttle", status=1, reason_pl1=1, reason_pl2=1, reason_thermal=0)
    write(tmp_path / "hwmon/hwmon4", temp2_input=61000, temp2_label="pkg", temp1_input=9, temp1_label="vram")
    reading = conditions(tmp_path)
    assert reading == (None, None, 1450e6, 1550e6, ("power limit",), 61.0)


def test_clock_and_throttling_of_i915(tmp_path: Path) -> None:
    write(tmp_path / "drm/card1/gt/gt0", rps_act_freq_mhz=0, rps_RP0_freq_mhz=2050)
    write(tmp_path / "drm/card1/gt/gt0", throttle_reason_thermal=1, throttle_reason_pl1=0)
    reading = conditions(tmp_path)
    assert reading.clock_hertz is None, "switched off, not at 0 Hz"
    assert (reading.clock_limit_hertz, reading.throttled) == (2050e6, ("temperature",))


def test_a_card_that_tells_nothing_more(tmp_path: Path) -> None:
    assert conditions(tmp_path) == (None, None, None, None, (), None)


def test_a_gauge_has_the_clock_of_its_card(time: Time, tmp_path: Path) -> None:
    folder = hwmon(tmp_path)
    counter(time, folder, Power(time))
    write(folder.parent.parent / "tile0/gt0/freq0", act_freq=1450, rp0_freq=1550)
    assert opened(tmp_path).read().clock_hertz == 1450e6


def test_a_card_that_goes_away_ends_in_an_error(time: Time, tmp_path: Path) -> None:
    file = counter(time, hwmon(tmp_path), Power(time))
    gauge = opened(tmp_path)
    file.unlink()
    with pytest.raises(OutpaceError, match="hwmon energy counter failed"):
        gauge.read()
