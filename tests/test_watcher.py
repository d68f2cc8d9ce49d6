"""The worker's notebook: nothing waits, nothing is lost, the better witness wins."""

from __future__ import annotations

import os
import time
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

import outpace
from outpace import course, protocol, watcher

#: JAX, where another test has loaded it, warns of any fork.
forks = pytest.mark.filterwarnings("ignore:os.fork:RuntimeWarning")


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


@forks
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


def measuring(plan: protocol.Plan) -> tuple[watcher.Watch, list[Any], Clock]:
    clock = Clock()
    sent: list[Any] = []
    job = protocol.Job(script="train.py", events_fd=-1, spawned_at=time.time(), plan=plan)
    return watcher.Watch(sent.append, job, clock), sent, clock


def train(observed: watcher.Watch, clock: Clock, steps: int, seconds: float = 0.15) -> None:
    for _ in range(steps):
        clock.now += seconds
        observed.step(witness="torch", samples=8, loss=1.0)


def kinds(sent: list[Any], kind: type) -> list[Any]:
    return [event for event in sent if isinstance(event, kind)]


def test_without_a_plan_nothing_waits_and_nothing_ends() -> None:
    observed, sent, clock = watching()
    waits: list[Any] = []
    observed.synchronizers.append(waits.append)
    observed.pause()
    train(observed, clock, 300)
    assert not observed.stopping
    observed.leave_if_over()
    assert waits == []
    assert not kinds(sent, protocol.Edge)


def test_a_measurement_ends_between_two_steps() -> None:
    observed, sent, clock = measuring(protocol.Plan(steps=4, trace=False))

    def script() -> None:
        for _ in range(1000):
            train(observed, clock, 1)
            observed.leave_if_over()

    with pytest.raises(course.Stop):
        script()
    assert observed.stopping
    assert observed.steps < 100
    assert [event.name for event in kinds(sent, protocol.Phase)][-2:] == ["measuring", "over"]


def test_a_stop_runs_through_what_a_script_does_at_its_end() -> None:
    assert issubclass(course.Stop, SystemExit), "so that except Exception lets it through"
    assert not issubclass(course.Stop, Exception)


def test_a_script_that_swallows_the_stop_is_left(monkeypatch: pytest.MonkeyPatch) -> None:
    observed, _, clock = measuring(protocol.Plan(steps=1, trace=False))
    train(observed, clock, 60)
    assert observed.stopping
    left: list[int] = []

    def leave(code: int) -> None:
        left.append(code)
        raise KeyboardInterrupt  # the real one does not come back

    monkeypatch.setattr(os, "_exit", leave)
    for _ in range(watcher.MOST_STOPS):
        with pytest.raises(course.Stop):
            observed.leave_if_over()
    assert left == []
    with pytest.raises(KeyboardInterrupt):
        observed.leave_if_over()
    assert left == [0]


def test_synchronizers_get_the_latest_loss_and_are_called_at_edges_only() -> None:
    observed, sent, clock = measuring(protocol.Plan(seconds=1e9, trace=False))
    waited: list[Any] = []

    def wait(loss: Any) -> None:
        waited.append(loss)
        clock.now += 0.004

    observed.synchronizers += [wait]
    for index in range(1000):
        clock.now += 0.001
        observed.step(witness="torch", samples=8, loss=Slow(float(index)))
    edges = kinds(sent, protocol.Edge)
    assert len(waited) == len(edges) < 40
    assert waited[0] is None, "no step is known when training begins"
    assert all(isinstance(loss, Slow) for loss in waited[1:])
    assert [edge.waited for edge in edges] == pytest.approx([0.004] * len(edges))
    asked = len(waited)
    observed.synchronizers.append(wait)
    observed.synchronize()
    assert len(waited) == asked + 2


def test_a_pause_ends_a_window_and_the_next_step_opens_one() -> None:
    observed, sent, clock = measuring(protocol.Plan(seconds=1e9, trace=False))
    train(observed, clock, 5, 0.01)
    before = len(kinds(sent, protocol.Edge))
    clock.now += 0.01
    observed.pause()
    observed.pause()
    assert [edge.opens for edge in kinds(sent, protocol.Edge)[before:]] == [False]
    clock.now += 5.0
    observed.interrupt()
    train(observed, clock, 1)
    assert [edge.opens for edge in kinds(sent, protocol.Edge)[before:]] == [False, True]
    observed.flush()
    assert kinds(sent, protocol.Steps)[-1].interrupted


def test_data_that_was_waited_for_is_in_the_edges() -> None:
    observed, sent, clock = measuring(protocol.Plan(seconds=1e9, trace=False))
    for _ in range(30):
        observed.fetched(0.05)
        train(observed, clock, 1)
    edges = kinds(sent, protocol.Edge)
    assert edges[0].fetching == pytest.approx(0.05)
    assert 28 * 0.05 <= edges[-1].fetching <= 30 * 0.05 + 1e-9
    assert [edge.fetching for edge in edges] == sorted(edge.fetching for edge in edges)


def test_who_wants_to_know_that_training_begins_is_told_once() -> None:
    observed, sent, clock = measuring(protocol.Plan(seconds=1.0, trace=False))
    told: list[float] = []
    observed.at_begin.append(lambda: told.append(clock.now))
    clock.now = 3.0
    observed.begin()
    assert observed.last_end == pytest.approx(observed.now())
    clock.now = 4.0
    observed.begin()
    train(observed, clock, 3)
    assert told == [3.0]
    assert len(kinds(sent, protocol.Began)) == 1


def test_a_watch_starts_anew_and_observers_stay() -> None:
    observed, sent, clock = measuring(protocol.Plan(steps=1, trace=False))
    observed.framework("torch", "2.9")
    told: list[str] = []
    observed.at_begin.append(lambda: told.append("began"))
    observed.fetched(1.0)
    observed.note("said once")
    observed.skipped_steps = 3
    observed.place("cpu")
    train(observed, clock, 60)
    observed.interrupt()
    assert observed.stopping
    again: list[Any] = []
    clock.now += 100
    plan = protocol.Plan(seconds=1.0, trace=False)
    observed.start(again.append, protocol.Job(script="t.py", events_fd=-1, spawned_at=time.time(), plan=plan))
    before = len(sent)
    assert not observed.stopping
    assert (observed.steps, observed.fetching, observed.skipped_steps) == (0, 0.0, 0)
    assert (observed.witness, observed.on_cpu, observed.last_end) == (None, False, None)
    assert abs(observed.now()) < 5, "the zero is the new spawn"
    observed.leave_if_over()
    clock.now += 1
    observed.step(witness="torch", samples=4)
    observed.note("said once")
    observed.close()
    assert len(sent) == before, "the former listener hears no more"
    assert [event.name for event in kinds(again, protocol.Framework)] == ["torch"]
    assert len(kinds(again, protocol.Note)) == 1
    (steps,) = kinds(again, protocol.Steps)
    assert (steps.samples, steps.interrupted) == ([4], [])
    assert told == ["began", "began"]


@forks
def test_a_forked_child_does_not_end_windows() -> None:
    observed, sent, clock = measuring(protocol.Plan(seconds=1e9, trace=False))
    train(observed, clock, 5, 0.01)
    before = len(sent)
    child = os.fork()
    if child == 0:
        observed.pause()
        os._exit(0 if len(sent) == before else 1)
    assert os.waitpid(child, 0)[1] == 0
