"""Times some steps of a training, without what lies between them."""

from __future__ import annotations

from collections.abc import Callable


class Stopwatch:
    """Adds up the time of steps; the device is waited for where it starts, stops and goes on.

    Args:
        now: seconds.
        synchronize: waits for the device.
    """

    def __init__(self, now: Callable[[], float], synchronize: Callable[[], None]) -> None:
        self._now = now
        self._synchronize = synchronize
        self.seconds = 0.0
        self.steps = 0
        self.samples: int | None = 0
        """``None``: not known of each step."""
        self._since: float | None = None
        self._running_steps = 0
        self._running_samples: int | None = 0

    @property
    def running(self) -> bool:
        """Whether it is started."""
        return self._since is not None

    def start(self) -> None:
        """What comes now counts."""
        self._synchronize()
        self._since = self._now()
        self._running_steps, self._running_samples = 0, 0

    def step(self, samples: int | None) -> None:
        """One more step is over; counts once the watch is stopped."""
        self._running_steps += 1
        self._running_samples = _plus(self._running_samples, samples)

    def stop(self) -> None:
        """What comes now does not count; what came since the last `step` counts."""
        if self._since is None:
            return
        if self._running_steps:
            self._synchronize()
            self.seconds += self._now() - self._since
            self.steps += self._running_steps
            self.samples = _plus(self.samples, self._running_samples)
        self._since, self._running_steps = None, 0

    def seen(self) -> tuple[float, int]:
        """Seconds and steps so far, those since the last start included."""
        running = self._now() - self._since if self._since is not None else 0.0
        return self.seconds + running, self.steps + self._running_steps

    @property
    def step_seconds(self) -> float:
        """Mean time of a step."""
        return self.seconds / self.steps

    @property
    def pace(self) -> float:
        """Seconds per sample; per step where samples are not known."""
        return self.seconds / self.samples if self.samples else self.step_seconds


def _plus(total: int | None, more: int | None) -> int | None:
    return None if total is None or more is None else total + more
