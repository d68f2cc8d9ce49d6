"""Time of steps, without what lies between them."""

from __future__ import annotations

import pytest

from outpace.stopwatch import Stopwatch


class Clock:
    """A clock, and a device that is a second behind whenever it is waited for."""

    def __init__(self) -> None:
        self.seconds = 0.0
        self.waits = 0

    def now(self) -> float:
        return self.seconds

    def synchronize(self) -> None:
        self.waits += 1


@pytest.fixture
def clock() -> Clock:
    return Clock()


def test_what_lies_between_stop_and_start_does_not_count(clock: Clock) -> None:
    watch = Stopwatch(clock.now, clock.synchronize)
    watch.start()
    for _ in range(3):
        clock.seconds += 2
        watch.step(10)
    assert watch.seen() == (6.0, 3)
    watch.stop()
    assert not watch.running
    assert watch.seen() == (6.0, 3)
    clock.seconds += 100
    watch.start()
    clock.seconds += 2
    watch.step(5)
    watch.stop()
    assert (watch.seconds, watch.steps, watch.samples) == (8.0, 4, 35)
    assert watch.step_seconds == 2.0
    assert watch.pace == pytest.approx(8 / 35)
    assert clock.waits == 4


def test_stopped_before_any_step_it_has_seen_nothing(clock: Clock) -> None:
    watch = Stopwatch(clock.now, clock.synchronize)
    watch.stop()
    watch.start()
    clock.seconds += 5
    watch.stop()
    assert (watch.seconds, watch.steps) == (0.0, 0)


def test_without_samples_the_pace_is_that_of_steps(clock: Clock) -> None:
    watch = Stopwatch(clock.now, clock.synchronize)
    watch.start()
    clock.seconds += 3
    watch.step(None)
    watch.stop()
    assert watch.samples is None
    assert watch.pace == 3.0
