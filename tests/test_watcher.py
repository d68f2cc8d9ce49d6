"""The worker's notebook: nothing waits, nothing is lost, the better witness wins."""

from __future__ import annotations

import os
import time
from typing import Any

from hypothesis import given
from hypothesis import strategies as st

import outpace
from outpace import protocol, watcher


class Clock:
    def __init__(self) -> None:
        self.now = 0.0

    def __call__(self) -> float:
        return self.now


def watching() -> tuple[watcher.Watch, list[Any], Clock]:
    clock = Clock()
    sent: list[Any] = []
    job = protocol.Job(script="train.py", events_fd=-1, spawned_at=time.time())
    return watcher.Watch(sent.append, job, clock), sent, clock


class Slow:
    """A loss that takes its time on the device."""

    def __init__(self, value: float) -> None:
        self.value = value
        self.here = False

    def ready(self) -> bool:
        return self.here

    def __float__(self) -> float:
        assert self.here, "read before it was ready"
        return self.value


def losses(sent: list[Any]) -> dict[int, float | None]:
    found: dict[int, float | None] = {}
    for event in sent:
        if isinstance(event, protocol.Losses):
            found.update(zip(event.steps, event.values, strict=True))
    return found


@given(st.lists(st.tuples(st.floats(0, 0.5), st.none() | st.integers(1, 99), st.booleans()), max_size=40))
def test_every_step_arrives_once_and_in_order(steps: list[tuple[float, int | None, bool]]) -> None:
    observed, sent, clock = watching()
    expected = []
    for seconds, samples, interrupted in steps:
        clock.now += seconds
        if interrupted:
            observed.interrupt()
        observed.step(witness="torch", samples=samples)
        expected.append((samples, interrupted))
    observed.close()
    arrived = []
    ends = []
    for event in sent:
        if isinstance(event, protocol.Steps):
            marks = [index in event.interrupted for index in range(len(event.ends))]
            arrived += list(zip(event.samples, marks, strict=True))
            ends += event.ends
    assert arrived == expected
    assert ends == sorted(ends)
    assert [type(event) for event in sent].count(protocol.Began) == min(len(steps), 1)


def test_events_leave_a_few_times_a_second_not_per_step() -> None:
    observed, sent, clock = watching()
    for _ in range(1000):
        clock.now += 0.001
        observed.step(witness="torch", samples=1)
    assert (
        sum(isinstance(event, protocol.Steps) for event in sent) <= 1000 * 0.001 / watcher.FLUSH_SECONDS + 1
    )


def test_a_loss_is_not_touched_before_it_is_ready() -> None:
    observed, sent, clock = watching()
    first, second = Slow(1.0), Slow(2.0)
    for loss in (first, second):
        clock.now += 1
        observed.step(witness="torch", loss=loss)
    assert losses(sent) == {}
    second.here = True
    observed.flush()
    assert losses(sent) == {}, "in order"
    first.here = True
    observed.close()
    assert losses(sent) == {0: 1.0, 1: 2.0}


def test_what_is_no_number_is_no_loss() -> None:
    observed, sent, _ = watching()
    for loss in (float("nan"), float("inf"), "text", object(), 3):
        observed.step(witness="torch", loss=loss)
    observed.close()
    assert losses(sent) == {0: None, 1: None, 2: None, 3: None, 4: 3.0}


def test_a_stronger_witness_voids_what_the_weaker_said() -> None:
    observed, sent, _ = watching()
    observed.step(witness="torch", samples=1)
    observed.step(witness="keras", samples=2)
    observed.step(witness="torch", samples=3)
    observed.step(witness="keras", samples=4)
    observed.step(witness="script", samples=5)
    observed.close()
    last = max(index for index, event in enumerate(sent) if isinstance(event, protocol.Restart))
    after = [event.samples for event in sent[last:] if isinstance(event, protocol.Steps)]
    assert after == [[5]]
    assert observed.steps == 1


def test_a_forked_child_says_nothing() -> None:
    observed, sent, _ = watching()
    child = os.fork()
    if child == 0:
        observed.step(witness="torch", samples=1)
        observed.flush(wait=True)
        observed.note("from a child")
        os._exit(0 if not sent else 1)
    assert os.waitpid(child, 0)[1] == 0


def test_notes_are_said_once() -> None:
    observed, sent, _ = watching()
    observed.note("a")
    observed.note("a")
    assert len(sent) == 1


def test_without_a_worker_the_two_lines_do_nothing() -> None:
    assert watcher.current is None
    outpace.step(samples=3, loss=object())
    outpace.log(accuracy=0.5)


def test_peak_is_the_largest_and_none_without_any() -> None:
    observed, _, _ = watching()
    assert observed.peak() is None
    observed.peaks += [lambda: None, lambda: (3, "a"), lambda: (7, "b")]
    assert observed.peak() == (7, "b")
