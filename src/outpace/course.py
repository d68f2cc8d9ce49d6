"""The course of a measurement, in the worker: warm up, trace a step, measure, stop.

The device is waited for only at the edges of windows, a tenth of a second apart or more: within a window
host and device overlap as they do without us.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Protocol

import msgspec

from outpace import protocol, stats

WINDOW_SECONDS = 0.1
#: Each wait costs what host and device would have done side by side, a step at most; so where the device
#: computes behind the host, a window that counts has so many steps, or takes a second.
STEPS_IN_WINDOW = 20
LONGEST_WINDOW_SECONDS = 1.0
LONGEST_WARM_UP_SECONDS = 60.0
#: Without a length that was asked for: (at least, at most), and between them until the pace is known well.
CPU_SECONDS = (3.0, 10.0)
DEVICE_SECONDS = (10.0, 15.0)
"""Power is averaged over a second by many cards, and throttling takes its time."""
WANTED_ERROR = 0.01
FEWEST_WINDOWS = 5
#: Steps are traced three times, for one of a full batch and for the times of operators; heavy ones once.
TRACES = 3
LAST_STEP = "the last step was traced, with what the script did after it"
STEPS_TO_RECOVER = 2
#: Waited for one by one: of a short script on a device far behind the host, nothing else may be known.
FIRST_STEPS = 3
#: Several steps in one execution are reported at once, and nothing happens between them.
MOST_TRIES = 100
HEAVY_STEP_SECONDS = 1.0


class Stop(SystemExit):
    """Enough was seen; the script ends here, through its own ``finally`` clauses."""


class Tracer(Protocol):
    """Records the operators of what happens between `start` and `stop`, both called between two steps."""

    def start(self) -> None: ...
    def stop(self) -> protocol.Traced | None: ...


class Ground(Protocol):
    """What the course runs on: a `Watch`."""

    fetching: float
    tracers: list[Tracer]
    on_cpu: bool
    stopping: bool

    def now(self) -> float: ...
    def emit(self, event: protocol.Event) -> None: ...
    def synchronize(self) -> None: ...


class Course:
    """Decides where windows begin and end, when the pace is steady, and when enough has been seen.

    Args:
        plan: what is asked for.
        ground: the clock, the devices and the way to the parent.
    """

    def __init__(self, plan: protocol.Plan, ground: Ground) -> None:
        self.plan = plan
        self.ground = ground
        self.phase = "warming"
        self._began = 0.0
        self._edge_at: float | None = None
        self._steps = 0
        """Steps since the last edge."""
        self._paces: list[float] = []
        """Seconds per step of each window of this phase."""
        self._latest_pace = 0.0
        self._settled = True
        self._measured_steps = 0
        self._measured_from = 0.0
        self._seen = 0
        self._pauses = 0
        """Steps in which something looked like an interruption."""
        self._pause_seen = False
        self._due = False
        """A window was ended by a pause, and has not been looked at."""
        self._paused = False
        self._since_pause = 0
        """Steps that were told of since."""
        self._traces: list[protocol.Traced] = []
        self._running: list[Tracer] = []
        self._tries = 0
        self._act: Callable[[], None] = self._warm if plan.measure else self._skip

    @property
    def over(self) -> bool:
        """Whether the script may be stopped."""
        return self.phase == "over"

    def begin(self) -> None:
        """Training starts."""
        self._began = self.ground.now()
        if self.plan.measure:
            self._edge(opens=True)

    def pause(self) -> None:
        """Something other than training begins, such as an evaluation; what it is shows at the next step."""
        if not self._pause_seen:
            self._pause_seen = True
            self._pauses += 1
        if self._paused or self._part_of_each_step():
            return
        self._paused, self._since_pause = True, 0
        if self.phase in ("warming", "measuring") and self.plan.measure and self._steps:
            self._edge()
            self._due = True

    def stepped(self, *, interrupted: bool = False) -> None:
        """One more step is known to be over."""
        if self.phase == "over":
            return
        self._seen += 1
        self._pause_seen = False
        if self._running:
            self._end_trace()
        elif (self._paused or interrupted) and not self._part_of_each_step():
            self._resume(interrupted=interrupted)
        else:
            self._paused = False
            self._steps += 1
            self._act()

    def _resume(self, *, interrupted: bool) -> None:
        """The interrupted step is told of itself, or one later; if not, there was nothing."""
        self._since_pause += 1
        if interrupted or self._since_pause > 2:
            self._paused = False
            self._edge(opens=True)

    def _part_of_each_step(self) -> bool:
        """A model that is called without gradients in most steps (a teacher) is no interruption."""
        return self._pauses > 8 and self._pauses > 0.5 * self._seen

    def finish(self) -> None:
        """The script is over, perhaps sooner than was planned."""
        if self._running and not self._traces and not self._paused:
            traces = [traced for tracer in self._running if (traced := tracer.stop()) is not None]
            self._traces = [
                msgspec.structs.replace(traced, notes=[*traced.notes, LAST_STEP]) for traced in traces
            ]
        self._running = []
        self._tell_trace()

    def _skip(self) -> None:
        """Tracing only: the first steps make the optimizer's state."""
        self._start_trace()

    def _warm(self) -> None:
        if self._seen <= FIRST_STEPS or self._window_full():
            self._edge()
        elif not self._due:
            return
        self._due = False
        settled = stats.settled(self._paces)
        too_long = self._edge_now - self._began > LONGEST_WARM_UP_SECONDS and len(self._paces) > 1
        if settled or too_long:
            self._settled = settled
            self._start_trace()

    def _recover(self) -> None:
        """A traced step leaves caches behind that are not the training's."""
        if self._steps >= STEPS_TO_RECOVER:
            self._edge(opens=True)
            self._enter("measuring", settled=self._settled)
            self._paces, self._measured_from = [], self._edge_now
            self._act = self._measure

    def _measure(self) -> None:
        self._measured_steps += 1
        asked = self.plan.steps is not None and self._measured_steps >= self.plan.steps
        if asked or self._window_full():
            self._edge()
        elif not self._due:
            return
        self._due = False
        if asked or self._enough():
            self._enter("over")

    def _enough(self) -> bool:
        if self.plan.steps is not None:
            return False
        seconds = self._edge_now - self._measured_from
        if self.plan.seconds is not None:
            return seconds >= self.plan.seconds
        least, most = CPU_SECONDS if self.ground.on_cpu else DEVICE_SECONDS
        if seconds < least or len(self._paces) < FEWEST_WINDOWS:
            return False
        return seconds >= most or stats.relative_error(self._paces) <= WANTED_ERROR

    @property
    def _edge_now(self) -> float:
        return self._edge_at or 0.0

    def _window_full(self) -> bool:
        """By the clock, or where the host runs ahead of the device by what the steps took last time."""
        if self._edge_at is None:
            return True
        expected = self._steps * self._latest_pace
        seconds = max(self.ground.now() - self._edge_at, expected)
        short = self.ground.on_cpu or self.phase != "measuring"
        many = short or self._steps >= STEPS_IN_WINDOW or seconds >= LONGEST_WINDOW_SECONDS
        return many and seconds >= WINDOW_SECONDS

    def _edge(self, *, opens: bool = False) -> None:
        before = self.ground.now()
        self.ground.synchronize()
        at = self.ground.now()
        if not opens and self._steps and self._edge_at is not None:
            self._latest_pace = (at - self._edge_at) / self._steps
            self._paces.append(self._latest_pace)
        self._edge_at, self._steps = at, 0
        self.ground.emit(protocol.Edge(at=at, waited=at - before, fetching=self.ground.fetching, opens=opens))

    def _enter(self, phase: str, *, settled: bool = True) -> None:
        self.phase = phase
        self.ground.stopping = phase == "over"
        at = self._edge_now if phase == "measuring" else self.ground.now()
        self.ground.emit(protocol.Phase(at=at, name=phase, settled=settled))

    def _start_trace(self) -> None:
        if self.phase != "tracing":
            self._enter("tracing")
        self._paused = False
        self._running = list(self.ground.tracers) if self.plan.trace else []
        for tracer in self._running:
            tracer.start()
        if not self._running:
            self._go_on()

    def _go_on(self) -> None:
        """Tracing is done."""
        if self.plan.measure:
            self._steps, self._act = 0, self._recover
            self._enter("warming")
        else:
            self._enter("over")

    def _end_trace(self) -> None:
        traces = [traced for tracer in self._running if (traced := tracer.stop()) is not None]
        self._running = []
        fullest = max(traces, key=lambda traced: len(traced.operators), default=None)
        if fullest is not None and not self._paused:  # otherwise an evaluation came between
            self._traces.append(fullest)
        self._tries += 1
        seen = [traced for traced in self._traces if traced.operators]
        heavy = bool(seen) and _seconds(seen[-1]) > HEAVY_STEP_SECONDS
        wanted = 1 if heavy else TRACES
        if len(seen) < wanted and self._tries < (MOST_TRIES if fullest is not None else TRACES):
            self._start_trace()
            return
        self._tell_trace()
        self._go_on()

    def _tell_trace(self) -> None:
        if self._traces:
            seen = [traced for traced in self._traces if traced.operators]
            self.ground.emit(_of_full_batch(seen or self._traces))
            self._traces = []


def _of_full_batch(traces: list[protocol.Traced]) -> protocol.Traced:
    """A partial batch is less work; among those with most of it, the fastest."""
    most = max(map(_flops, traces))
    return min((traced for traced in traces if _flops(traced) == most), key=_seconds)


def _flops(traced: protocol.Traced) -> int:
    return sum(operator.flops * operator.count for operator in traced.operators)


def _seconds(traced: protocol.Traced) -> float:
    return sum(operator.seconds or 0.0 for operator in traced.operators)
