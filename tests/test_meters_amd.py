"""AMD: frozen and absurd counters, dies without power, partitions, releases that answer otherwise."""

from __future__ import annotations

import sys
from typing import Any

import pytest

from outpace.errors import OutpaceError
from outpace.meters import Gauge, amd
from outpace.records import Device
from tests.fakes import AmdCard, Power, Time, amdsmi, simulated


def device(name: str = "AMD Instinct MI300X") -> Device:
    return Device(
        framework="torch", id="cuda:0", name=name, driver="ROCm 6.4", pci_address="00000000:c1:00.0"
    )


@pytest.fixture
def time(monkeypatch: pytest.MonkeyPatch) -> Time:
    monkeypatch.setattr(amd, "_users", 0)
    return simulated(monkeypatch)


def opened(monkeypatch: pytest.MonkeyPatch, *cards: AmdCard, name: str = "AMD Instinct MI300X") -> Gauge:
    monkeypatch.setitem(sys.modules, "amdsmi", amdsmi(list(cards)))
    assert amd.why_not(device(name)) is None
    return amd.open(device(name))


def refused(monkeypatch: pytest.MonkeyPatch, *cards: AmdCard, name: str = "AMD Instinct MI300X") -> str:
    module = amdsmi(list(cards))
    monkeypatch.setitem(sys.modules, "amdsmi", module)
    reason = amd.why_not(device(name))
    assert reason is not None
    with pytest.raises(OutpaceError) as error:
        amd.open(device(name))
    assert reason in error.value.what
    assert error.value.hint
    assert not module.started, "amdsmi is let go of"
    return reason


def old_count(joules: float) -> dict[str, Any]:
    """As before ROCm 6.2."""
    return {"power": int(joules * 1e6 / 15.3), "counter_resolution": 15.3}


@pytest.mark.parametrize("count", [AmdCard.count, old_count], ids=["new", "old"])
def test_a_sound_counter_is_read(count: Any, time: Time, monkeypatch: pytest.MonkeyPatch) -> None:
    metrics = {"current_gfxclk": 1900, "temperature_hotspot": 55, "ppt_residency_acc": 10}
    card = AmdCard(Power(time), count=count, metrics=metrics)
    gauge = opened(monkeypatch, card)
    assert (gauge.source, gauge.scope) == ("amdsmi energy counter", "card")
    time.sleep(10)
    reading = gauge.read()
    assert reading.joules == pytest.approx(3000, rel=1e-3)
    assert reading[1:] == (300.0, 1900e6, 2100e6, (), 55)
    card.metrics["ppt_residency_acc"] = 25
    assert gauge.read().throttled == ("power limit",)
    assert gauge.read().throttled == (), "only what grew since the reading before"


@pytest.mark.parametrize(
    ("count", "said"),
    [
        (lambda _: {"power": 8152136, "counter_resolution": 15.3}, "stands still"),
        (lambda joules: {"energy_accumulator": int(joules * 1e9), "counter_resolution": 15.3}, "absurd"),
        (lambda _: {"energy_accumulator": 0, "counter_resolution": 15.3}, "stands at zero"),
        (None, "NOT_SUPPORTED"),
    ],
    ids=["frozen", "absurd", "zero", "missing"],
)
def test_a_frozen_or_absurd_counter_of_a_mi100_falls_back_to_power(
    count: Any, said: str, time: Time, monkeypatch: pytest.MonkeyPatch
) -> None:
    gauge = opened(monkeypatch, AmdCard(Power(time), count=count))
    assert gauge.source == "amdsmi power, integrated"
    assert said in str(gauge.caveat)
    for _ in range(10):
        time.sleep(1)
        reading = gauge.read()
    assert reading.joules == pytest.approx(3000)


def test_frozen_and_without_power_energy_is_not_measured(time: Time, monkeypatch: pytest.MonkeyPatch) -> None:
    frozen = AmdCard(Power(time), count=lambda _: {"power": 9}, power_info=lambda _: {"socket_power": "N/A"})
    assert "stands still, and it tells no power" in refused(monkeypatch, frozen)


@pytest.mark.parametrize(
    "info",
    [
        lambda watts: {"current_socket_power": "N/A", "average_socket_power": watts},
        lambda watts: {"current_socket_power": 0, "average_socket_power": 0, "socket_power": watts},
    ],
    ids=["MI210", "socket power"],
)
def test_power_has_several_names(info: Any, time: Time, monkeypatch: pytest.MonkeyPatch) -> None:
    assert opened(monkeypatch, AmdCard(Power(time), power_info=info)).read().watts == 300


def test_the_second_die_of_a_mi250_tells_nothing_and_never_zero(
    time: Time, monkeypatch: pytest.MonkeyPatch
) -> None:
    second = AmdCard(
        Power(time),
        count=lambda _: {"energy_accumulator": 0, "counter_resolution": 15.3},
        power_info=lambda _: {"current_socket_power": "N/A", "average_socket_power": 0},
    )
    assert "second die" in refused(monkeypatch, second, name="AMD Instinct MI250X")
    first = opened(monkeypatch, AmdCard(Power(time)), name="AMD Instinct MI250X")
    assert first.scope == "card (of which this is a part)"


def test_a_partition_has_the_energy_of_its_whole_card_and_says_so(
    time: Time, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert "of which" in opened(monkeypatch, AmdCard(Power(time), partition="CPX")).scope


def test_the_order_of_hip_is_not_that_of_amdsmi(time: Time, monkeypatch: pytest.MonkeyPatch) -> None:
    other = AmdCard(Power(time, watts=90), bdf="0000:01:00.0")
    gauge = opened(monkeypatch, other, AmdCard(Power(time)))
    assert gauge.read().watts == 300
    gauge.close()
    assert "PCI address" in refused(monkeypatch, other)


def test_two_gauges_share_a_library_that_does_not_count_its_starts(
    time: Time, monkeypatch: pytest.MonkeyPatch
) -> None:
    first = opened(monkeypatch, AmdCard(Power(time)))
    second = amd.open(device())
    first.close()
    assert amd.why_not(device()) is None
    assert second.read().watts == 300
    second.close()
    assert not sys.modules["amdsmi"].started


@pytest.mark.parametrize(
    ("before", "now", "words"),
    [
        ({}, {"ppt_residency_acc": 5}, ()),
        ({"ppt_residency_acc": "N/A"}, {"ppt_residency_acc": "N/A"}, ()),
        ({"socket_thm_residency_acc": 1}, {"socket_thm_residency_acc": 2}, ("temperature",)),
        (
            {"hbm_thm_residency_acc": 1, "vr_thm_residency_acc": 1},
            {"hbm_thm_residency_acc": 2, "vr_thm_residency_acc": 2},
            ("temperature",),
        ),
        ({}, {"indep_throttle_status": True}, ("the driver does not say why",)),
        ({}, {"indep_throttle_status": False}, ()),
    ],
)
def test_throttling_in_plain_words(
    before: dict[str, Any], now: dict[str, Any], words: tuple[str, ...]
) -> None:
    assert amd.throttled(before, now) == words


def test_without_the_library_the_error_says_how_to_get_it(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "amdsmi", None)
    with pytest.raises(OutpaceError, match="comes with ROCm"):
        amd.open(device())
