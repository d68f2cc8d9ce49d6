"""What the energy sources share: counters that only grow, power summed over time, and doubt about both."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from typing import NamedTuple

from outpace.errors import OutpaceError
from outpace.meters import Reading
from outpace.records import Device

#: More than any device here draws (a GB200 module: 2.7 kW, eight CPU sockets: 4 kW). What tells more is
#: wrong: a counter that dropped back, subtracted as unsigned, made 3.7 TW of an idle Arc Pro B70.
MOST_WATTS = 20_000.0
#: Counters move in steps of up to this long, so that much more energy may come at once.
STEP_SECONDS = 0.1
#: How long a counter is watched when it is opened: a few of its steps.
CHECK_SECONDS = 0.25
#: Power is averaged over up to 1 s and the counter is not, so only a gross disagreement means something
#: (187 J by NVML's counter and 327 J by its power were seen on an idle card).
GROSS = 10.0
#: A counter that stays low this often has restarted; less often, it only stumbled.
RESTART_READINGS = 5

clock = time.monotonic
sleep = time.sleep


class Unreadable(Exception):
    """Why the energy of a device cannot be read, with the way out where there is one."""

    def refusal(self, device: Device, hint: str) -> OutpaceError:
        """The same as an error that may reach a user."""
        return OutpaceError(f"the energy of {device.id} ({device.name}) cannot be read: {self}", hint)


class Counter(NamedTuple):
    """A hardware counter of energy."""

    read: Callable[[], float]
    """Joules since some time in the past."""
    wraps_at: float | None = None
    """Joules at which it begins again at 0, where that is known."""


class Tally:
    """Joules since the first value of a counter, which may wrap and, on some cards, drop back.

    A value that no device could have reached is left out and the last good one stands; if the counter comes
    back, nothing is lost. If it goes on from the low value, it has restarted, and the sum is a lower bound.

    Args:
        wraps_at: joules at which the counter begins again at 0, where that is known.
    """

    def __init__(self, wraps_at: float | None = None) -> None:
        self.joules = 0.0
        self._wraps_at = wraps_at
        self._good: tuple[float, float] | None = None  # (joules, seconds)
        self._doubted: list[tuple[float, float]] = []
        self._left_out = 0
        self._restarts = 0

    def add(self, raw_joules: float, seconds: float) -> float:
        """The sum, now that the counter stands at *raw_joules*; *seconds* is a monotonic clock."""
        value = (raw_joules, seconds)
        if self._good is None:
            self._good = value
            return self.joules
        grown = self._growth(self._good, value)
        if grown is not None:
            self._doubted.clear()
        else:
            grown = self._restarted(value)
        if grown is not None:
            self.joules += grown
            self._good = value
        return self.joules

    def _growth(self, start: tuple[float, float], end: tuple[float, float]) -> float | None:
        grown, seconds = end[0] - start[0], end[1] - start[1]
        if grown < 0 and self._wraps_at is not None:
            grown += self._wraps_at
        return grown if 0 <= grown <= MOST_WATTS * (seconds + STEP_SECONDS) else None

    def _restarted(self, value: tuple[float, float]) -> float | None:
        """What the counter has counted since its restart, if it did restart."""
        if self._doubted and self._growth(self._doubted[-1], value) is None:
            self._doubted.clear()
        self._doubted.append(value)
        self._left_out += 1
        if len(self._doubted) < RESTART_READINGS:
            return None
        counted = self._growth(self._doubted[0], value)
        self._doubted.clear()
        self._restarts += counted is not None
        return counted

    def note(self) -> str | None:
        """What went wrong with the counter so far."""
        if not self._left_out:
            return None
        said = f"the counter dropped back or jumped, and {self._left_out} of its readings were left out"
        return (
            f"{said}; it restarted {self._restarts} times, so the sum is too low" if self._restarts else said
        )


class Integral:
    """Joules from readings of power, by the trapezoid rule; ``None`` until there was one."""

    def __init__(self) -> None:
        self.joules: float | None = None
        self._last: tuple[float, float] | None = None

    def add(self, watts: float | None, seconds: float) -> float | None:
        """The sum, now that the device draws *watts*; a reading without power leaves it as it is."""
        if watts is None:
            return self.joules
        if self._last is not None and self.joules is not None:
            self.joules += (watts + self._last[0]) / 2 * (seconds - self._last[1])
        else:
            self.joules = 0.0
        self._last = (watts, seconds)
        return self.joules


def doubt(counter: Counter, watts: Callable[[], float | None] | None = None) -> str | None:
    """Why *counter* is not to be believed; ``None`` if it is. Waits up to 0.25 s.

    Args:
        counter: what is checked.
        watts: reads the power that the device tells, where it tells any; without it, it is enough that the
            counter moves, and that is seen sooner.
    """
    start, begun = counter.read(), clock()
    first = watts() if watts is not None else None
    grown = 0.0
    while clock() - begun < CHECK_SECONDS and (first is not None or grown == 0):
        sleep(CHECK_SECONDS / 25)
        grown = counter.read() - start
    rate = grown / (clock() - begun)
    if grown < 0 and counter.wraps_at is not None:
        grown += counter.wraps_at
    if grown == 0:
        return "the energy counter of this device stands still"
    if not 0 < grown <= MOST_WATTS * (clock() - begun + STEP_SECONDS):
        return f"the energy counter of this device is absurd ({rate:.3g} W)"
    told = [power for power in (first, watts() if watts is not None else None) if power is not None]
    if told and not min(told) / GROSS <= rate <= max(told) * GROSS:
        return f"the energy counter tells {rate:.3g} W where the device tells {told[-1]:.3g} W"
    return None


class Metered:
    """A `Gauge` made of what a source can tell.

    Args:
        source, scope, caveat: as `Gauge` has them.
        state: all but the joules.
        counters: their sum is the energy; none: power is summed up instead, at each reading.
        release: lets go of the vendor's library.
        errors: what *state* and *counters* raise when the source fails.
    """

    def __init__(
        self,
        *,
        source: str,
        scope: str,
        caveat: str | None,
        state: Callable[[], Reading],
        counters: Sequence[Counter],
        release: Callable[[], None] = lambda: None,
        errors: tuple[type[Exception], ...] = (OSError, ValueError),
    ) -> None:
        self.source = source
        self.scope = scope
        self._caveat = caveat
        self._state = state
        self._counted = [(counter, Tally(counter.wraps_at)) for counter in counters]
        self._integral = Integral()
        self._release = release
        self._errors = errors
        self._closed = False
        self.read()  # the energy counts from here

    @property
    def caveat(self) -> str | None:
        """The known error, and what happened to the counter since."""
        return "; ".join(filter(None, [self._caveat, *(tally.note() for _, tally in self._counted)])) or None

    def read(self) -> Reading:
        """The state now."""
        if self._closed:
            raise OutpaceError(f"{self.source} is closed")
        try:
            if self._counted:
                total = sum(tally.add(counter.read(), clock()) for counter, tally in self._counted)
                return self._state()._replace(joules=total)
            state = self._state()
        except self._errors as error:
            raise OutpaceError(f"{self.source} failed: {error}") from error
        return state._replace(joules=self._integral.add(state.watts, clock()))

    def close(self) -> None:
        """Let go of the library, once."""
        if not self._closed:
            self._closed = True
            self._release()
