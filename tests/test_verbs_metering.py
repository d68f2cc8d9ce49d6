"""The energy of a run of a gauge that goes by a clock of ours."""

from __future__ import annotations

import time
from typing import Any

import msgspec
import pytest

from outpace import cards, measured, meters, protocol
from outpace.collect import Collector
from outpace.errors import OutpaceError
from outpace.measured import Span
from outpace.meters import Reading
from outpace.records import Device
from outpace.sampling import Sampler
from outpace.verbs import metering as verb
from outpace.verbs.metering import Metering, with_estimated_energy
from tests.measurements import measurement
from tests.simulated import BLANK, Tracing, World, product

PLACE = protocol.Place(device="cuda:0", name="NVIDIA A100-SXM4-40GB", uuid="GPU-aa")
SPAWNED = 1000.0


class Clock:
    """Each look at it takes a thousandth of a second."""

    def __init__(self) -> None:
        self.now = SPAWNED

    def time(self) -> float:
        self.now += 0.001
        return self.now

    def sleep(self, seconds: float) -> None:
        self.now += seconds


class Gauge:
    """Of a device that draws *busy* watts until it is idle. Breaks, if it does, at *breaks_at* seconds."""

    source, scope, caveat = "NVML energy counter", "card", "5 % off"

    def __init__(self, clock: Clock, *, counts: bool = True, breaks_at: float | None = None) -> None:
        self.clock, self.counts, self.breaks_at = clock, counts, breaks_at
        self.busy, self.idle = 300.0, 60.0
        self.idle_from = float("inf")
        self.throttled: tuple[str, ...] = ()
        self.closed = 0

    def joules(self, at: float) -> float:
        busy = min(at, self.idle_from) - SPAWNED
        return self.busy * busy + self.idle * max(at - self.idle_from, 0.0)

    def read(self) -> Reading:
        at = self.clock.now
        if self.breaks_at is not None and at > SPAWNED + self.breaks_at:
            raise OutpaceError("the card fell off the bus")
        return Reading(
            joules=self.joules(at) if self.counts else None,
            watts=self.busy if at < self.idle_from else self.idle,
            clock_hertz=1.2e9,
            clock_limit_hertz=1.4e9,
            throttled=self.throttled,
            celsius=70.0,
        )

    def close(self) -> None:
        self.closed += 1


@pytest.fixture
def clock(monkeypatch: pytest.MonkeyPatch) -> Clock:
    found = Clock()
    monkeypatch.setattr(time, "time", found.time)
    monkeypatch.setattr(time, "sleep", found.sleep)
    # the thread of the sampler would go by the real clock: readings are taken by `pass_`
    monkeypatch.setattr(Sampler, "_run", lambda _sampler: None)
    return found


def opened(monkeypatch: pytest.MonkeyPatch, gauge: Gauge | None, missing: str | None = None) -> Metering:
    monkeypatch.setattr(meters, "open_for", lambda _device: (gauge, missing))
    found = Metering()
    found.take(protocol.Framework(name="torch", version="2.9"))
    found.take(PLACE)
    return found


def pass_(metering: Metering, clock: Clock, seconds: float) -> None:
    """Time goes by, and the sampler reads ten times a second."""
    end = clock.now + seconds
    while clock.now < end:
        clock.now += 0.1
        if metering._sampler is not None and metering._sampler.failed_because is None:
            metering._sampler._sample()


def collector() -> Collector:
    found = Collector(BLANK)
    found.spawned_at = SPAWNED
    return found


SPAN = Span(start=2.0, end=8.0, settled=True)


@pytest.mark.parametrize("counts", [True, False], ids=["a counter", "power only"])
def test_joules_per_sample_are_those_of_the_span(
    counts: bool, clock: Clock, monkeypatch: pytest.MonkeyPatch
) -> None:
    gauge = Gauge(clock, counts=counts)
    with opened(monkeypatch, gauge) as metering:
        pass_(metering, clock, 10.0)
        gauge.idle_from = clock.now
        monkeypatch.setattr(time, "sleep", lambda seconds: pass_(metering, clock, seconds))
        metering.idle()
        found = metering.between(collector(), SPAN, samples=900)
    assert found["joules_per_sample"] == pytest.approx(300 * 6 / 900, rel=0.01)
    assert found["mean_watts"] == pytest.approx(300, rel=0.01)
    assert found["idle_watts"] == pytest.approx(60, rel=0.01)
    assert (found["energy_source"], found["energy_scope"]) == ("NVML energy counter", "card")
    assert found["energy_caveat"] == "5 % off"
    assert found["energy_missing_because"] is None
    assert (found["clock_hertz"], found["clock_limit_hertz"]) == (pytest.approx(1.2e9), 1.4e9)
    assert found["celsius_max"] == 70.0
    assert gauge.closed == 1


def test_idle_power_is_not_asked_of_a_cpu_that_we_use_ourselves(
    clock: Clock, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(meters, "open_for", lambda _device: (Gauge(clock), None))
    with Metering() as metering:
        metering.take(protocol.Place(device="cpu", synchronous=True))
        pass_(metering, clock, 10.0)
        before = clock.now
        metering.idle()
        assert clock.now == before
        assert metering.between(collector(), SPAN, 10)["idle_watts"] is None


def test_a_meter_that_dies_midway_gives_a_reason_not_a_part(
    clock: Clock, monkeypatch: pytest.MonkeyPatch
) -> None:
    gauge = Gauge(clock, breaks_at=5.0)
    with opened(monkeypatch, gauge) as metering:
        pass_(metering, clock, 10.0)
        found = metering.between(collector(), SPAN, 900)
    assert found == {"energy_missing_because": "the card fell off the bus"}
    assert gauge.closed == 1


def test_a_meter_that_dies_after_the_span_has_measured_it(
    clock: Clock, monkeypatch: pytest.MonkeyPatch
) -> None:
    with opened(monkeypatch, Gauge(clock, breaks_at=8.5)) as metering:
        pass_(metering, clock, 10.0)
        assert metering.between(collector(), SPAN, 900)["joules_per_sample"] == pytest.approx(2.0, rel=0.01)


def test_a_counter_that_stands_still_is_not_zero_joules(
    clock: Clock, monkeypatch: pytest.MonkeyPatch
) -> None:
    gauge = Gauge(clock)
    gauge.busy = 0.0
    with opened(monkeypatch, gauge) as metering:
        pass_(metering, clock, 10.0)
        found = metering.between(collector(), SPAN, 900)
    assert found == {"energy_missing_because": "the meter gave no reading over the measured time"}


def test_without_a_meter_the_reason_is_told(clock: Clock, monkeypatch: pytest.MonkeyPatch) -> None:
    with opened(monkeypatch, None, "RAPL is readable by root only") as metering:
        pass_(metering, clock, 10.0)
        metering.idle()
        found = metering.between(collector(), SPAN, 900)
    assert found == {"energy_missing_because": "RAPL is readable by root only"}
    with Metering() as unseen:
        found = unseen.between(collector(), SPAN, 900)
    assert found == {"energy_missing_because": "the device that trains could not be seen"}


def test_a_part_of_a_card_has_the_scope_that_its_gauge_tells(
    clock: Clock, monkeypatch: pytest.MonkeyPatch
) -> None:
    gauge = Gauge(clock)
    gauge.scope = "card (of which this is a part)"
    asked: list[Device] = []

    def open_for(device: Device) -> tuple[Gauge, None]:
        asked.append(device)
        return gauge, None

    monkeypatch.setattr(meters, "open_for", open_for)
    with Metering() as metering:
        metering.take(msgspec.structs.replace(PLACE, name="NVIDIA A100-SXM4-40GB MIG 1g.5gb"))
        pass_(metering, clock, 10.0)
        found = metering.between(collector(), SPAN, 900)
    assert found["energy_scope"] == "card (of which this is a part)"
    assert [(device.part, device.uuid) for device in asked] == [("MIG slice 1g.5gb", "GPU-aa")]
    assert metering.device is not None
    assert metering.device.card == "a100-sxm-40gb"


def test_the_first_place_counts(clock: Clock, monkeypatch: pytest.MonkeyPatch) -> None:
    with opened(monkeypatch, Gauge(clock)) as metering:
        metering.take(protocol.Place(device="cpu"))
        assert metering.device is not None
        assert metering.device.id == "cuda:0"


def test_watts_without_samples_are_no_joules_per_sample(
    clock: Clock, monkeypatch: pytest.MonkeyPatch
) -> None:
    with opened(monkeypatch, Gauge(clock)) as metering:
        pass_(metering, clock, 10.0)
        found = metering.between(collector(), SPAN, None)
    assert found["joules_per_sample"] is None
    assert "samples" in found["energy_missing_because"]
    assert found["mean_watts"] == pytest.approx(300, rel=0.01)


def test_throttling_reaches_the_findings(clock: Clock, monkeypatch: pytest.MonkeyPatch) -> None:
    gauge = Gauge(clock)
    world = World(protocol.Plan(seconds=5.0), lag=0.010)
    world.tracers = [Tracing(world, [product()])]
    world.begin()
    world.until_over(lambda: world.step(64))
    events = world.collector()
    events.spawned_at = SPAWNED
    span = measured.span_of(events)
    middle = (span.start + span.end) / 2
    with opened(monkeypatch, gauge) as metering:
        pass_(metering, clock, middle)
        gauge.throttled = ("power limit",)
        pass_(metering, clock, span.end)
        fields = metering.between(events, span, measured.samples_in(events, span))
        found = measured.of_run(
            events.record(state="stopped", seconds=world.clock),
            events,
            device=metering.device,
            ceilings=None,
            metered=fields,
        )
    assert found.throttled["power limit"] == pytest.approx(0.5, abs=0.05)
    sentence = next(one.sentence for one in found.findings if one.what == "throttling")
    assert sentence.startswith("the device was held back: power limit (")
    assert found.joules_per_sample == pytest.approx(300 * 0.010 / 64, rel=0.02)


def test_an_estimate_is_marked_and_only_for_a_whole_known_card() -> None:
    watts = cards.load()["h100-sxm-80gb"].board_power_watts
    assert watts
    found = with_estimated_energy(measurement())
    assert found.energy_source is not None
    assert found.energy_source.startswith("model: ")
    assert "not measured" in (found.energy_caveat or "")
    assert found.mean_watts == pytest.approx(verb.BUSY[0] * watts)
    assert found.joules_per_sample == pytest.approx(verb.BUSY[0] * watts / 6400)
    for known in (
        {"card": None},
        {"part": "MIG slice 1g.10gb"},
        {"samples_per_second": None},
        {"card": next(name for name, card in cards.load().items() if card.board_power_watts is None)},
        {"mean_watts": 312.0, "energy_source": "NVML energy counter"},
    ):
        bare = measurement(**known)
        assert with_estimated_energy(bare) == bare


def test_the_device_of_a_place() -> None:
    place: Any = msgspec.structs.replace(PLACE, memory_total_bytes=42405855232, units=108)
    device = verb.device_of(place, "torch")
    assert (device.card, device.framework, device.uuid) == ("a100-sxm-40gb", "torch", "GPU-aa")
    assert verb.device_of(protocol.Place(device="cuda:0"), "torch").card is None
