"""Stops a script after so much training."""

from __future__ import annotations

from typing import Protocol

from outpace import protocol


class Ground(Protocol):
    """What it runs on: a `Watch`."""

    stopping: bool

    def now(self) -> float: ...
    def emit(self, event: protocol.Event) -> None: ...


class Stretch:
    """A training of some steps, or some seconds.

    Args:
        plan: how long.
        ground: the clock, and where to say that it is over.
    """

    def __init__(self, plan: protocol.Stretch, ground: Ground) -> None:
        self.plan = plan
        self.ground = ground
        self._began = 0.0
        self._steps = 0

    def begin(self) -> None:
        """Training starts."""
        self._began = self.ground.now()

    def pause(self) -> None:
        """Evaluations belong to a training."""

    def stepped(self, *, interrupted: bool = False) -> None:  # noqa: ARG002 - as a `Course`
        """One more step is over."""
        self._steps += 1
        enough = self.plan.steps is not None and self._steps >= self.plan.steps
        late = self.plan.seconds is not None and self.ground.now() - self._began >= self.plan.seconds
        if (enough or late) and not self.ground.stopping:
            self.ground.stopping = True
            self.ground.emit(protocol.Phase(at=self.ground.now(), name="over"))

    def finish(self) -> None:
        """The script is over."""
