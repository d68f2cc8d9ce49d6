"""The course of a measurement on a clock of its own: it waits for the device at the edges of windows only."""

from __future__ import annotations

import itertools

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from outpace import course, measured, protocol, windows
from outpace.protocol import Plan
from outpace.windows import Steps, Window
from tests.simulated import Tracing, World, product

CPU, GPU = 0.0, 0.008


def measured_windows(world: World) -> list[Window]:
    """As the parent makes them of what the worker told."""
    collector = world.collector()
    span = measured.span_of(collector)
    steps = Steps(collector.ends, collector.samples, collector.interrupted, collector.began_at or 0.0)
    if world.on_cpu:
        return windows.of_synchronous_device(steps, span.start, span.end)
    return windows.of_edges(steps, collector.edges, span.start, span.end)


def pace(found: list[Window]) -> float:
    return sum(window.seconds for window in found) / sum(window.steps for window in found)


def test_the_phases_of_a_measurement() -> None:
    world = World(Plan(), lag=GPU)
    tracer = Tracing(world)
    world.tracers = [tracer]
    world.begin()
    world.until_over()
    assert world.phases() == ["tracing", "warming", "measuring", "over"]
    assert tracer.started == tracer.stopped > 0
    traced = [event for event in world.events if isinstance(event, protocol.Traced)]
    assert len(traced) == 1, "of several traces one is told"


def test_a_device_behind_the_host_is_measured_by_its_own_time() -> None:
    world = World(Plan(), host=0.001, lag=0.010)
    world.begin()
    world.until_over()
    found = measured_windows(world)
    assert pace(found) == pytest.approx(0.010, rel=0.02)
    assert sum(window.waited for window in found) > 0.5 * sum(window.seconds for window in found)


@pytest.mark.parametrize("step", [0.001, 0.01, 0.04])
def test_waiting_does_not_keep_host_and_device_from_working_side_by_side(step: float) -> None:
    world = World(Plan(), host=step, lag=0.9 * step, loads=True)
    world.begin()
    world.until_over()
    assert pace(measured_windows(world)) == pytest.approx(step, rel=0.05)


@pytest.mark.parametrize(("host", "lag"), [(0.004, 0.003), (0.001, 0.0011), (0.002, CPU)])
def test_the_device_is_waited_for_at_edges_only(host: float, lag: float) -> None:
    world = World(Plan(), host=host, lag=lag)
    world.begin()
    world.until_over()
    assert len(world.waits) == len(world.edges()), "each wait is an edge, and told"
    seconds = world.clock - 1.0
    assert len(world.waits) < seconds / course.WINDOW_SECONDS + 10
    assert len(world.waits) < world.steps / 10
    later = world.edges()[course.FIRST_STEPS :]
    gaps = sorted(late.at - early.at for early, late in itertools.pairwise(later))
    assert gaps[1] >= 0.9 * course.WINDOW_SECONDS, "but for the one that opens after the traced steps"


def test_the_first_steps_of_a_short_script_are_waited_for() -> None:
    world = World(Plan(), host=0.001, lag=0.020)
    world.begin()
    for _ in range(4):
        world.step()
    assert pace(measured_windows(world)) == pytest.approx(0.020, rel=0.02)


@pytest.mark.parametrize("lag", [CPU, GPU])
@pytest.mark.parametrize("steps", [1, 2, 3, 17, 100])
def test_so_many_steps_as_asked_for_are_measured(lag: float, steps: int) -> None:
    world = World(Plan(steps=steps), lag=lag)
    world.tracers = [Tracing(world)]
    world.begin()
    world.until_over()
    found = measured_windows(world)
    assert sum(window.steps for window in found) == steps
    assert pace(found) == pytest.approx(max(world.host, lag), rel=0.02)


def test_seconds_that_are_asked_for() -> None:
    world = World(Plan(seconds=2.5), lag=GPU)
    world.begin()
    world.until_over()
    assert sum(window.seconds for window in measured_windows(world)) == pytest.approx(2.5, abs=0.2)


def test_without_a_length_a_steady_pace_is_known_soon_and_a_wild_one_takes_the_most() -> None:
    def measured_seconds(step: float, *, wild: bool) -> float:
        world = World(Plan(), host=step)
        world.begin()
        world.until_over(lambda: world.step(host=step * (1 + wild * 3 * (world.steps // 40 % 2))))
        return sum(window.seconds for window in measured_windows(world))

    least, most = course.CPU_SECONDS
    assert measured_seconds(0.01, wild=False) == pytest.approx(least, abs=0.3)
    assert measured_seconds(0.01, wild=True) == pytest.approx(most, abs=1.0)


@pytest.mark.parametrize("lag", [CPU, GPU])
def test_slow_first_steps_are_warm_up(lag: float) -> None:
    world = World(Plan(steps=50), lag=lag)
    world.begin()
    world.until_over(lambda: world.step(host=30.0 if world.steps < 3 else 0.01))
    assert pace(measured_windows(world)) == pytest.approx(0.01, rel=0.02)


@pytest.mark.parametrize("lag", [CPU, GPU])
@pytest.mark.parametrize("late", [False, True], ids=["told at once", "told as the next one ends"])
def test_evaluations_between_epochs_stay_out(lag: float, late: bool) -> None:
    world = World(Plan(seconds=20.0), lag=lag)
    world.tracers = [Tracing(world)]
    waiting: list[tuple[float, bool]] = []

    def tell(interrupted: bool) -> None:
        waiting.append((world.now(), interrupted))
        while len(waiting) > late:
            at, was = waiting.pop(0)
            world.told(interrupted=was, at=at)

    def epoch() -> None:
        for index in range(60):
            if world.course.over:
                return
            world.work()
            tell(index == 0 and world.steps > 1)
        world.evaluate(3.0)

    world.begin()
    world.until_over(epoch)
    found = measured_windows(world)
    assert sum(window.steps for window in found) > 300
    assert pace(found) == pytest.approx(0.01, rel=0.02)


@pytest.mark.parametrize("lag", [CPU, GPU])
@pytest.mark.parametrize("marked", [True, False], ids=["a teacher", "training in evaluation mode"])
def test_what_is_called_without_training_in_every_step_is_no_interruption(lag: float, marked: bool) -> None:
    world = World(Plan(), lag=lag)
    world.tracers = [Tracing(world)]

    def step() -> None:
        world.evaluate(0.002)
        world.step(interrupted=marked)

    world.begin()
    world.until_over(step, most=5000)
    found = measured_windows(world)
    assert world.phases()[-2:] == ["measuring", "over"]
    assert pace(found) == pytest.approx(0.012, rel=0.02)
    assert len(world.waits) < world.steps / 5, "the first few pauses may be waited for, not each"


def test_steps_of_twenty_seconds() -> None:
    world = World(Plan(), host=0.1, lag=20.0)
    tracer = Tracing(world)
    world.tracers = [tracer]
    world.begin()
    world.until_over(most=30)
    found = measured_windows(world)
    assert [window.steps for window in found] == [1] * len(found)
    assert len(found) >= course.FEWEST_WINDOWS
    assert pace(found) == pytest.approx(20.0, rel=0.02)


@pytest.mark.parametrize("lag", [CPU, GPU])
@pytest.mark.parametrize("steps", [6, 30, 100])
def test_a_script_that_ends_early(lag: float, steps: int) -> None:
    world = World(Plan(seconds=1e9), lag=lag)
    world.begin()
    for _ in range(steps):
        world.step(host=0.12)
    assert not world.course.over
    found = measured_windows(world)
    assert found
    assert pace(found) == pytest.approx(0.12, rel=0.02)
    assert found[-1].end > world.clock - (course.LONGEST_WINDOW_SECONDS if lag else 0.05), "to the end"


@pytest.mark.parametrize("lag", [CPU, GPU])
@pytest.mark.parametrize("at_once", [10, 50])
def test_several_steps_in_one_execution(lag: float, at_once: int) -> None:
    world = World(Plan(), lag=lag)

    def execution() -> None:
        start = world.now()
        for _ in range(at_once):
            world.work()
        end = world.now()
        for index in range(at_once):
            world.told(at=start + (end - start) * (index + 1) / at_once)

    world.begin()
    world.until_over(execution, most=1000)
    assert pace(measured_windows(world)) == pytest.approx(0.01, rel=0.03)


def test_tracing_only() -> None:
    world = World(Plan(measure=False))
    tracer = Tracing(world)
    world.tracers = [tracer]
    world.begin()
    world.until_over(most=20)
    assert tracer.started > 0
    assert world.phases() == ["tracing", "over"]
    assert not world.edges()
    assert tracer.stopped == tracer.started


@pytest.mark.parametrize("trace", [True, False])
def test_without_tracers_or_tracing_there_is_no_trace(trace: bool) -> None:
    world = World(Plan(steps=5, trace=trace))
    tracer = Tracing(world)
    world.tracers = [] if trace else [tracer]
    world.begin()
    world.until_over()
    assert tracer.started == 0
    assert not [event for event in world.events if isinstance(event, protocol.Traced)]


def test_a_step_with_an_evaluation_in_it_is_traced_again() -> None:
    world = World(Plan(steps=5))
    seen: list[str] = []

    class Evaluated(Tracing):
        def stop(self) -> protocol.Traced | None:
            name = "evaluated" if self.stopped == 0 else "trained"
            traced = super().stop()
            assert traced is not None
            seen.append(name)
            return protocol.Traced(framework=name, device="cpu", operators=traced.operators)

    tracer = Evaluated(world)
    world.tracers = [tracer]

    def step() -> None:
        if tracer.started == 1 and not seen:
            world.evaluate(1.0)
            world.step(interrupted=True)
        else:
            world.step()

    world.begin()
    world.until_over(step)
    (traced,) = [event for event in world.events if isinstance(event, protocol.Traced)]
    assert (seen[0], traced.framework) == ("evaluated", "trained")


def test_a_heavy_step_is_traced_once() -> None:
    world = World(Plan(steps=3))
    heavy = Tracing(world, [product(seconds=2 * course.HEAVY_STEP_SECONDS)])
    world.tracers = [heavy]
    world.begin()
    world.until_over()
    assert heavy.started == 1


def test_a_tracer_that_sees_nothing_does_not_hold_up_the_measurement() -> None:
    world = World(Plan(steps=3))
    blind = Tracing(world, operators=[])
    world.tracers = [blind]
    world.begin()
    world.until_over(most=1000)
    assert blind.started <= course.MOST_TRIES
    assert world.phases()[-1] == "over"


def test_after_the_end_nothing_is_waited_for() -> None:
    world = World(Plan(steps=3))
    world.begin()
    world.until_over()
    waits, events = len(world.waits), len(world.edges())
    for _ in range(100):
        world.step(host=0.5)
    assert (len(world.waits), len(world.edges())) == (waits, events)


@settings(max_examples=40, deadline=None)
@given(
    st.lists(st.sampled_from(["step", "partial", "evaluation", "slow"]), min_size=40, max_size=200),
    st.sampled_from([CPU, 0.004, GPU]),
)
def test_windows_hold_each_measured_step_once_whatever_happens(actions: list[str], lag: float) -> None:
    world = World(Plan(seconds=1e9), lag=lag)
    world.begin()
    interrupted = False
    for action in ["step"] * 100 + actions:
        if action == "evaluation":
            world.evaluate(0.5)
            interrupted = True
            continue
        world.step(
            3 if action == "partial" else 8, host=0.2 if action == "slow" else 0.02, interrupted=interrupted
        )
        interrupted = False
    collector = world.collector()
    found = measured_windows(world)
    for early, late in itertools.pairwise(found):
        assert early.end <= late.start + 1e-9
    for window in found:
        inside = [
            index
            for index, end in enumerate(collector.ends)
            if window.start + 1e-9 < end <= window.end + 1e-9
        ]
        assert window.steps <= len(inside)
        assert world.on_cpu or not set(inside) & set(collector.interrupted)
        assert window.seconds <= window.end - window.start + 1e-9
