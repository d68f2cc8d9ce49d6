"""Readings over a span: energy that adds up, shares of time, and a thread that harms no training."""

from __future__ import annotations

import threading
import time
from itertools import accumulate, pairwise

import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from outpace import sampling
from outpace.errors import OutpaceError
from outpace.meters import Reading
from outpace.meters._counting import Tally
from outpace.sampling import Sample, Sampler, energy_between, summary

STEPS = st.lists(st.tuples(st.floats(0.01, 5), st.floats(0, 3000)), min_size=2, max_size=40)
"""(seconds since the sample before, watts)."""
PLACES = st.lists(st.floats(0, 1), min_size=3, max_size=3).map(sorted)


def counted(steps: list[tuple[float, float]]) -> list[Sample]:
    """Of a gauge that counts joules."""
    times = list(accumulate(seconds for seconds, _ in steps))
    sums = accumulate(seconds * watts for seconds, watts in steps)
    return [Sample(at, Reading(joules=joules)) for at, joules in zip(times, sums, strict=True)]


def powered(steps: list[tuple[float, float]]) -> list[Sample]:
    """Of a gauge that tells only power."""
    times = accumulate(seconds for seconds, _ in steps)
    return [
        Sample(at, Reading(joules=None, watts=watts)) for at, (_, watts) in zip(times, steps, strict=True)
    ]


@pytest.mark.parametrize("gauge", [counted, powered])
@given(steps=STEPS, places=PLACES)
def test_energy_of_adjacent_spans_adds_up_and_is_never_negative(
    gauge: object, steps: list[tuple[float, float]], places: list[float]
) -> None:
    assert callable(gauge)
    samples = gauge(steps)
    first, last = samples[0].seconds, samples[-1].seconds
    start, middle, end = (min(first + place * (last - first), last) for place in places)
    parts = [energy_between(samples, start, middle), energy_between(samples, middle, end)]
    whole = energy_between(samples, start, end)
    assert None not in [*parts, whole]
    assert all(part is not None and part >= 0 for part in [*parts, whole])
    assert sum(part or 0 for part in parts) == pytest.approx(whole, rel=1e-9, abs=1e-6)


@given(steps=STEPS)
def test_energy_between_two_readings_is_what_was_counted(steps: list[tuple[float, float]]) -> None:
    samples = counted(steps)
    for here, there in pairwise(samples):
        energy = energy_between(samples, here.seconds, there.seconds)
        assert energy == pytest.approx((there.reading.joules or 0) - (here.reading.joules or 0), abs=1e-6)


@given(steps=STEPS, places=PLACES)
def test_energy_of_a_counter_that_wraps_is_that_of_one_that_does_not(
    steps: list[tuple[float, float]], places: list[float]
) -> None:
    assume(all(seconds * watts < 16_384 for seconds, watts in steps))
    samples, tally = counted(steps), Tally(wraps_at=16_384.0)
    wrapping = [
        Sample(at, Reading(joules=tally.add((reading.joules or 0.0) % 16_384, at))) for at, reading in samples
    ]
    first, last = samples[0].seconds, samples[-1].seconds
    start, _, end = (min(first + place * (last - first), last) for place in places)
    expected = energy_between(samples, start, end)
    assert energy_between(wrapping, start, end) == pytest.approx(expected, rel=1e-9, abs=1e-5)


def test_energy_by_hand() -> None:
    joules = [Sample(0.0, Reading(joules=0.0)), Sample(1.0, Reading(joules=100.0))]
    assert energy_between(joules, 0.25, 0.75) == pytest.approx(50)
    watts = [
        Sample(0.0, Reading(None, 100.0)),
        Sample(1.0, Reading(None, 300.0)),
        Sample(2.0, Reading(None, 300.0)),
    ]
    assert energy_between(watts, 0.0, 2.0) == pytest.approx(500)
    assert energy_between(watts, 0.5, 1.5) == pytest.approx(125 + 150)
    assert energy_between(watts, 1.5, 1.5) == 0


@pytest.mark.parametrize(("start", "end"), [(-0.1, 0.5), (0.5, 1.1), (2, 3)])
def test_energy_of_a_span_that_is_not_covered_is_none(start: float, end: float) -> None:
    samples = [Sample(0.0, Reading(joules=0.0)), Sample(1.0, Reading(joules=100.0))]
    assert energy_between(samples, start, end) is None
    assert summary(samples, start, end) is None
    assert energy_between([], start, end) is None
    assert summary([], start, end) is None


def test_without_joules_and_power_energy_is_none() -> None:
    samples = [Sample(0.0, Reading(joules=None)), Sample(1.0, Reading(joules=None))]
    assert energy_between(samples, 0, 1) is None
    told = summary(samples, 0, 1)
    assert told == (None, None, None, None, {}, None)


def test_a_reading_without_power_is_bridged() -> None:
    told: list[float | None] = [100.0, None, 100.0]
    samples = [Sample(float(at), Reading(None, watts)) for at, watts in enumerate(told)]
    assert energy_between(samples, 0, 2) == pytest.approx(200)


def test_a_summary_weighs_by_time() -> None:
    hot = Reading(300.0, clock_hertz=1.1e9, clock_limit_hertz=1.4e9, throttled=("power limit",), celsius=80.0)
    cool = Reading(0.0, clock_hertz=1.4e9, clock_limit_hertz=1.4e9, celsius=60.0)
    samples = [Sample(0.0, cool), Sample(1.0, hot), Sample(4.0, hot._replace(joules=1200.0))]
    told = summary(samples, 0.0, 4.0)
    assert told is not None
    assert told.watts_mean == pytest.approx(300)
    assert told.clock_hertz_min == 1.1e9
    assert told.clock_hertz_mean == pytest.approx((0.5 * 1.4e9 + 3.5 * 1.1e9) / 4)
    assert told.clock_limit_hertz == 1.4e9
    assert told.throttled_shares == {"power limit": pytest.approx(3.5 / 4)}
    assert told.celsius_max == 80


def test_a_summary_leaves_out_what_lies_outside_the_span() -> None:
    samples = [Sample(float(at), Reading(joules=None, celsius=float(at))) for at in range(10)]
    told = summary(samples, 2.0, 5.0)
    assert told is not None
    assert told.celsius_max == 5.0


class Clockwork:
    """A gauge whose joules are the seconds since it was made, until it breaks."""

    source, scope, caveat = "a clockwork", "card", None

    def __init__(self, breaks_after: int | None = None) -> None:
        self.reads, self.breaks_after = 0, breaks_after
        self.begun = time.perf_counter()

    def read(self) -> Reading:
        self.reads += 1
        if self.breaks_after is not None and self.reads > self.breaks_after:
            raise OutpaceError("the spring broke")
        return Reading(joules=time.perf_counter() - self.begun)

    def close(self) -> None:
        raise AssertionError("the sampler does not own the gauge")


def waited(condition: object, seconds: float = 10.0) -> bool:
    assert callable(condition)
    end = time.perf_counter() + seconds
    while not condition() and time.perf_counter() < end:
        time.sleep(0.002)
    return bool(condition())


def test_a_sampler_covers_the_time_from_start_to_stop() -> None:
    sampler = Sampler(Clockwork(), period_seconds=0.01)
    assert not sampler.samples
    sampler.start()
    start = time.perf_counter()
    assert waited(lambda: len(sampler.samples) > 5)
    end = time.perf_counter()
    sampler.stop()
    sampler.stop()
    energy = energy_between(sampler.samples, start, end)
    times = [sample.seconds for sample in sampler.samples]
    longest = max(there - here for here, there in pairwise(times))
    assert energy == pytest.approx(end - start, abs=2 * longest)
    assert sampler.failed_because is None
    assert times == sorted(times)
    read = len(times)
    time.sleep(0.05)
    assert len(sampler.samples) == read, "stopped"


def test_a_reading_that_fails_ends_the_sampling_and_is_told() -> None:
    with Sampler(Clockwork(breaks_after=3), period_seconds=0.001) as sampler:
        assert waited(lambda: sampler.failed_because is not None)
    assert sampler.failed_because == "the spring broke"
    assert len(sampler.samples) == 3
    with Sampler(Clockwork(breaks_after=0), period_seconds=0.001) as sampler:
        pass
    assert sampler.failed_because == "the spring broke"
    assert sampler.samples == ()


def test_a_reading_that_hangs_does_not_hold_up_the_end(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sampling, "HANGING_SECONDS", 0.05)
    free = threading.Event()

    class Stuck(Clockwork):
        def read(self) -> Reading:
            if self.reads:
                free.wait(10)
            return super().read()

    gauge = Stuck()
    sampler = Sampler(gauge, period_seconds=0.001).start()
    time.sleep(0.02)
    begun = time.perf_counter()
    sampler.stop()
    assert time.perf_counter() - begun < 5
    free.set()
    assert "took more than" in str(sampler.failed_because)


def test_stop_without_start_does_nothing() -> None:
    gauge = Clockwork()
    Sampler(gauge).stop()
    assert gauge.reads == 0


def test_the_clock_is_the_given_one() -> None:
    with Sampler(Clockwork(), period_seconds=100.0, clock=lambda: 42.0) as sampler:
        pass
    assert {taken.seconds for taken in sampler.samples} == {42.0}
