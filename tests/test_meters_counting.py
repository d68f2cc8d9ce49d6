"""Counters that wrap, stumble, restart or lie; power summed up; what every gauge does."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from outpace.errors import OutpaceError
from outpace.meters import Reading
from outpace.meters._counting import MOST_WATTS, Counter, Integral, Metered, Tally, doubt
from tests.fakes import Power, Time, simulated

STEPS = st.lists(st.floats(0, 1000), min_size=1, max_size=50)


@pytest.fixture
def time(monkeypatch: pytest.MonkeyPatch) -> Time:
    return simulated(monkeypatch)


@given(steps=STEPS, start=st.floats(0, 2000))
def test_a_counter_that_wraps_loses_nothing(steps: list[float], start: float) -> None:
    tally = Tally(wraps_at=2048.0)
    true = start
    tally.add(true % 2048, 0.0)
    for second, step in enumerate(steps, 1):
        true += step
        tally.add(true % 2048, float(second))
    assert tally.joules == pytest.approx(true - start, abs=1e-6)
    assert tally.note() is None


@given(steps=STEPS, low=st.floats(0, 300), at=st.integers(0, 49))
def test_a_counter_that_drops_back_for_a_moment_loses_nothing(
    steps: list[float], low: float, at: int
) -> None:
    tally = Tally()
    true = 22_543_283.0  # joules, as it was seen on an Arc Pro B70, when it showed some 200 J
    tally.add(true, 0.0)
    sums = []
    for second, step in enumerate(steps, 1):
        true += step
        stumbles = second - 1 == at % len(steps)
        sums.append(tally.add(low if stumbles else true, float(second)))
    assert sums == sorted(sums)
    assert sums[-1] <= true - 22_543_283.0 + 1e-6
    assert max(sums) < MOST_WATTS * (len(steps) + 1), "never a spike of terawatts"
    assert "1 of its readings" in str(tally.note())
    assert tally.add(true, len(steps) + 1.0) == pytest.approx(true - 22_543_283.0)


@given(values=st.lists(st.one_of(st.floats(0, 1e3), st.floats(0, 1e16)), max_size=80))
def test_whatever_a_counter_shows_the_sum_grows_and_stays_possible(values: list[float]) -> None:
    tally = Tally()
    sums = [tally.add(value, 0.1 * index) for index, value in enumerate(values)]
    assert sums == sorted(sums)
    assert all(0 <= total <= MOST_WATTS * 0.2 * len(values) for total in sums)


def test_a_counter_that_restarts_counts_on_and_says_that_the_sum_is_too_low() -> None:
    tally = Tally()
    for second in range(10):
        tally.add(9000.0 + 300 * second, float(second))
    for second in range(10, 30):
        tally.add(300.0 * (second - 10), float(second))
    assert tally.joules == pytest.approx(300 * 9 + 300 * 19)
    assert "too low" in str(tally.note())


def test_nonsense_is_no_restart() -> None:
    tally = Tally()
    tally.add(1e6, 0.0)
    for second, nonsense in enumerate([3.0, 1e15, 7.0, 1e14, 9.0, 1e13, 5.0], 1):
        assert tally.add(nonsense, float(second)) == 0
    assert tally.add(1e6 + 2400, 8.0) == 2400
    assert "restarted" not in str(tally.note())


def test_power_summed_up_is_none_until_there_was_some() -> None:
    integral = Integral()
    assert integral.add(None, 0.0) is None
    assert integral.add(100.0, 1.0) == 0
    assert integral.add(None, 2.0) == 0
    assert integral.add(300.0, 3.0) == 400


def test_a_sound_counter_is_believed(time: Time) -> None:
    power = Power(time)
    begun = time.now
    assert doubt(Counter(lambda: power.joules), lambda: power.watts) is None
    assert time.now - begun <= 0.3, "opening does not hold up a training"


@pytest.mark.parametrize(
    ("shows", "said"),
    [
        (lambda _: 5000.0, "stands still"),
        (lambda joules: joules * 1e9, "absurd"),
        (lambda joules: -joules, "absurd"),
        (lambda joules: joules * 20, "tells 6e+03 W where the device tells 300 W"),
        (lambda joules: joules / 20, "tells 15 W where the device tells 300 W"),
    ],
)
def test_a_counter_is_checked_against_power(shows: object, said: str, time: Time) -> None:
    power = Power(time)
    assert callable(shows)
    reason = doubt(Counter(lambda: shows(power.joules)), lambda: power.watts)
    assert said in str(reason)


def test_a_counter_without_power_beside_it_is_seen_to_move(time: Time) -> None:
    power = Power(time)
    begun = time.now
    assert doubt(Counter(lambda: power.joules)) is None
    assert time.now - begun < 0.05
    assert "stands still" in str(doubt(Counter(lambda: 7.0)))


def test_a_counter_that_wraps_while_it_is_checked_is_believed(time: Time) -> None:
    power = Power(time, joules=999.999)
    assert doubt(Counter(lambda: power.joules % 1000, wraps_at=1000)) is None


def gauge(power: Power, closed: list[int], failing: bool = False) -> Metered:
    def state() -> Reading:
        if failing and power.joules > 5000:
            raise ValueError("torn out")
        return Reading(joules=None, watts=power.watts)

    return Metered(
        source="a counter",
        scope="card",
        caveat="a flaw",
        state=state,
        counters=[Counter(lambda: power.joules)],
        release=lambda: closed.append(1),
    )


def test_energy_counts_from_the_opening(time: Time) -> None:
    meter = gauge(Power(time), [])
    assert meter.read() == Reading(joules=0.0, watts=300.0)
    time.sleep(2)
    assert meter.read().joules == pytest.approx(600)
    assert meter.caveat == "a flaw"


def test_what_went_wrong_stands_in_the_caveat(time: Time) -> None:
    power = Power(time)
    meter = gauge(power, [])
    power.joules = 3.0
    assert meter.read().joules == 0
    assert str(meter.caveat).startswith("a flaw; the counter dropped back")


def test_a_closed_gauge_is_not_read_and_closes_once(time: Time) -> None:
    closed: list[int] = []
    meter = gauge(Power(time), closed)
    meter.close()
    meter.close()
    assert closed == [1]
    with pytest.raises(OutpaceError, match="closed"):
        meter.read()


def test_a_source_that_fails_says_so(time: Time) -> None:
    meter = gauge(Power(time), [], failing=True)
    time.sleep(1)
    with pytest.raises(OutpaceError, match="a counter failed: torn out"):
        meter.read()
