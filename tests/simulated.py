"""A training on a clock of its own: a host that gives work to a device, which may lag behind."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from outpace import protocol
from outpace.collect import Collector, blank
from outpace.course import Course, Tracer
from outpace.records import Operator

BLANK = blank(target="t.py", script="/x/t.py", args=["-a"], started_at="2026-01-02T03:04:05Z")


class Tracing:
    """A tracer that sees one operator; each trace takes longer by a second than a step does."""

    def __init__(self, world: World, operators: list[Operator] | None = None) -> None:
        self.world = world
        self.operators = [product()] if operators is None else operators
        self.started = 0
        self.stopped = 0

    def start(self) -> None:
        self.started += 1
        self.world.clock += 1.0

    def stop(self) -> protocol.Traced | None:
        self.stopped += 1
        return protocol.Traced(framework="torch", device=self.world.device, operators=self.operators)


def product(**known: Any) -> Operator:
    """A product of two square matrices."""
    facts: dict[str, Any] = {
        "kind": "matmul",
        "name": "aten.mm",
        "phase": "forward",
        "dtype": "fp32",
        "inputs": ((512, 512), (512, 512)),
        "flops": 2 * 512**3,
        "bytes_read": 2 * 4 * 512**2,
        "bytes_written": 4 * 512**2,
    }
    return Operator(**(facts | known))


class World:
    """The ground of a course, and the training that goes on it.

    Args:
        host, lag: seconds per step that the host needs, and then the device. A device at once in line with
            the host (*lag* 0) is a CPU.
        loads: the host's time is for loading the batch, before the device has anything to do.
    """

    def __init__(
        self, plan: protocol.Plan, *, host: float = 0.01, lag: float = 0.0, loads: bool = False
    ) -> None:
        self.host, self.lag, self.loads = host, lag, loads
        self.clock = 1.0
        self.free_at = 0.0
        """When the device is through."""
        self.device = "cuda:0" if lag else "cpu"
        self.stopping = False
        self.on_cpu = not lag
        self.fetching = 0.0
        self.tracers: list[Tracer] = []
        self.events: list[Any] = []
        self.waits: list[int] = []
        """Steps that had been taken at each wait for the device."""
        self.steps = 0
        self.course = Course(plan, self)
        self.emit(protocol.Place(device=self.device, synchronous=self.on_cpu))

    def now(self) -> float:
        self.clock += 1e-6  # no two readings of a clock are the same
        return self.clock

    def emit(self, event: Any) -> None:
        self.events.append(event)

    def synchronize(self) -> None:
        self.waits.append(self.steps)
        self.clock = max(self.clock, self.free_at)

    def begin(self) -> None:
        self.emit(protocol.Began(at=self.now()))
        self.course.begin()

    def work(self, *, host: float | None = None, lag: float | None = None) -> None:
        """A step's worth of it."""
        began = self.clock
        self.clock += self.host if host is None else host
        through = max(self.free_at, self.clock if self.loads else began) + (self.lag if lag is None else lag)
        self.free_at = max(through, self.clock)  # its last operator is called at the end

    def step(self, samples: int | None = 8, *, interrupted: bool = False, **costs: float) -> None:
        self.work(**costs)
        self.told(samples, interrupted=interrupted)

    def told(self, samples: int | None = 8, *, interrupted: bool = False, at: float | None = None) -> None:
        """The watcher hears of a step that is over."""
        self.steps += 1
        end = self.now() if at is None else at
        self.emit(protocol.Steps(ends=[end], samples=[samples], interrupted=[0] if interrupted else []))
        self.course.stepped(interrupted=interrupted)

    def evaluate(self, seconds: float, *, fetching: float = 0.0) -> None:
        self.course.pause()
        self.clock += seconds
        self.free_at = max(self.free_at, self.clock)
        self.fetching += fetching

    def until_over(self, step: Callable[[], None] | None = None, *, most: int = 50_000) -> None:
        for _ in range(most):
            if self.course.over:
                return
            (step or self.step)()
        raise AssertionError(f"the course is not over after {most} steps")

    def phases(self) -> list[str]:
        return [event.name for event in self.events if isinstance(event, protocol.Phase)]

    def edges(self) -> list[protocol.Edge]:
        return [event for event in self.events if isinstance(event, protocol.Edge)]

    def collector(self) -> Collector:
        collector = Collector(BLANK)
        for event in self.events:
            collector.take(protocol.decode(protocol.encode(event)))
        return collector
