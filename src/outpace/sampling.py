"""A gauge read again and again while a training runs, and what the readings say of a span of time."""

from __future__ import annotations

import math
import threading
import time
from bisect import bisect_left, bisect_right
from collections.abc import Callable, Sequence
from itertools import pairwise
from types import TracebackType
from typing import NamedTuple

from outpace.meters import Gauge, Reading

#: A driver that takes longer for one reading hangs; training is not made to wait for it.
HANGING_SECONDS = 5.0


class Sample(NamedTuple):
    """A reading and when it was taken."""

    seconds: float
    """Of the clock that the sampler was given."""
    reading: Reading


class Sampler:
    """Reads a gauge in a thread of its own, from `start` to `stop`, at both of which it is read too.

    A reading that fails ends the sampling, never the training: `failed_because` has the reason.

    Args:
        gauge: what is read; it is not closed.
        period_seconds: from one reading to the next.
        clock: seconds, monotonic; the same that spans are given in.
    """

    def __init__(
        self, gauge: Gauge, *, period_seconds: float = 0.1, clock: Callable[[], float] = time.perf_counter
    ) -> None:
        self._gauge = gauge
        self._period_seconds = period_seconds
        self._clock = clock
        self._samples: list[Sample] = []
        self._stopping = threading.Event()
        self._thread: threading.Thread | None = None
        self.failed_because: str | None = None

    @property
    def samples(self) -> tuple[Sample, ...]:
        """What was read so far, by time."""
        return tuple(self._samples)

    def start(self) -> Sampler:
        """Take the first reading, and begin."""
        assert self._thread is None, "a sampler starts once"
        self._sample()
        self._thread = threading.Thread(target=self._run, name="outpace sampler", daemon=True)
        self._thread.start()
        return self

    def stop(self) -> None:
        """End, with a last reading. Stopping twice does no harm."""
        if self._thread is None or self._stopping.is_set():
            return
        self._stopping.set()
        self._thread.join(HANGING_SECONDS)
        if self._thread.is_alive():
            self.failed_because = f"a reading took more than {HANGING_SECONDS:g} s"
        elif self.failed_because is None:
            self._sample()

    def __enter__(self) -> Sampler:
        return self.start()

    def __exit__(
        self,
        _kind: type[BaseException] | None,
        _error: BaseException | None,
        _traceback: TracebackType | None,
    ) -> None:
        self.stop()

    def _run(self) -> None:
        due = self._clock() + self._period_seconds
        while self.failed_because is None and not self._stopping.wait(max(0.0, due - self._clock())):
            self._sample()
            # after a late reading, the next one is a whole period away: no burst to catch up
            due = max(due + self._period_seconds, self._clock())

    def _sample(self) -> None:
        begun = self._clock()
        try:
            reading = self._gauge.read()
        except Exception as error:  # whatever a vendor's library does, training goes on
            self.failed_because = str(error) or type(error).__name__
            return
        self._samples.append(Sample((begun + self._clock()) / 2, reading))


class Summary(NamedTuple):
    """What a device did in a span of time. What its readings do not tell is ``None``."""

    watts_mean: float | None
    clock_hertz_min: float | None
    clock_hertz_mean: float | None
    clock_limit_hertz: float | None
    throttled_shares: dict[str, float]
    """Share of the time, up to 1, for each thing that held the clock down."""
    celsius_max: float | None


def energy_between(samples: Sequence[Sample], start: float, end: float) -> float | None:
    """Joules from *start* to *end*, seconds of the sampler's clock; ``None``: the samples do not cover it.

    Between two readings, the sum that a gauge keeps is taken to grow evenly. A gauge that tells only power is
    summed up by the trapezoid rule. At each end, the error is at most what the device draws more or less than
    on average within one period.

    Args:
        samples: by time.
    """
    assert start <= end, "a span does not end before it starts"
    counted = [(sample.seconds, sample.reading.joules) for sample in samples]
    sums = [(seconds, joules) for seconds, joules in counted if joules is not None]
    if _cover(sums, start, end):
        return max(0.0, _at(sums, end) - _at(sums, start))
    told = [(sample.seconds, sample.reading.watts) for sample in samples]
    powers = [(seconds, watts) for seconds, watts in told if watts is not None]
    if not _cover(powers, start, end):
        return None
    inside = [point for point in powers if start < point[0] < end]
    line = [(start, _at(powers, start)), *inside, (end, _at(powers, end))]
    return math.fsum((here[1] + there[1]) / 2 * (there[0] - here[0]) for here, there in pairwise(line))


def summary(samples: Sequence[Sample], start: float, end: float) -> Summary | None:
    """Power, clock, throttling and temperature from *start* to *end*; ``None``: the samples do not cover it.

    Args:
        samples: by time. Each stands for the time that is nearer to it than to its neighbours.
    """
    assert start <= end, "a span does not end before it starts"
    if not samples or samples[0].seconds > start or samples[-1].seconds < end:
        return None
    weighed = [(reading, weight) for reading, weight in _weights(samples, start, end) if weight > 0]
    joules = energy_between(samples, start, end)
    clocks = [(r.clock_hertz, weight) for r, weight in weighed if r.clock_hertz is not None]
    seconds = sum(weight for _, weight in clocks)
    limits = [r.clock_limit_hertz for r, _ in weighed if r.clock_limit_hertz is not None]
    shares: dict[str, float] = {}
    for reading, weight in weighed:
        for word in set(reading.throttled):
            shares[word] = shares.get(word, 0.0) + weight / (end - start)
    return Summary(
        watts_mean=joules / (end - start) if joules is not None and end > start else None,
        clock_hertz_min=min((hertz for hertz, _ in clocks), default=None),
        clock_hertz_mean=sum(hertz * weight for hertz, weight in clocks) / seconds if seconds else None,
        clock_limit_hertz=max(limits, default=None),
        throttled_shares={word: min(1.0, share) for word, share in sorted(shares.items())},
        celsius_max=max((r.celsius for r, _ in weighed if r.celsius is not None), default=None),
    )


def _weights(samples: Sequence[Sample], start: float, end: float) -> list[tuple[Reading, float]]:
    """(reading, seconds that it stands for within the span)."""
    times = [sample.seconds for sample in samples]
    middles = [(here + there) / 2 for here, there in pairwise(times)]
    edges = [times[0], *middles, times[-1]]
    return [
        (sample.reading, min(end, edges[index + 1]) - max(start, edges[index]))
        for index, sample in enumerate(samples)
    ]


def _cover(points: Sequence[tuple[float, float]], start: float, end: float) -> bool:
    return bool(points) and points[0][0] <= start and end <= points[-1][0]


def _at(points: Sequence[tuple[float, float]], seconds: float) -> float:
    """The value at *seconds*, on the straight line between its neighbours."""
    after = bisect_left(points, seconds, key=lambda point: point[0])
    if points[after][0] == seconds:  # of readings at one moment, the last
        return points[bisect_right(points, seconds, key=lambda point: point[0]) - 1][1]
    (left, low), (right, high) = points[after - 1], points[after]
    return low + (high - low) * (seconds - left) / (right - left)
