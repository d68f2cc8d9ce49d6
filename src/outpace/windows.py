"""The windows of a measurement: which steps lie between two moments at which the device was waited for."""

from __future__ import annotations

import bisect
import itertools
import statistics
from collections.abc import Iterator, Sequence
from typing import NamedTuple

from outpace import stats
from outpace.protocol import Edge

#: Steps of a synchronous device are joined into windows of so many seconds.
WINDOW_SECONDS = 0.1


class Window(NamedTuple):
    """Some full steps in a row."""

    start: float
    end: float
    """Seconds since the spawn."""
    seconds: float
    """Time of the steps that count; less than from start to end where others are left out."""
    steps: int
    samples: int | None
    waited: float = 0.0
    """Seconds that the host waited for the device at the end of the window."""

    @property
    def step_seconds(self) -> float:
        """Mean time of a step."""
        return self.seconds / self.steps


class Steps(NamedTuple):
    """The steps of a training, as they were seen."""

    ends: Sequence[float]
    """Seconds since the spawn."""
    samples: Sequence[int | None]
    interrupted: Sequence[int] = ()
    began_at: float = 0.0


def of_synchronous_device(steps: Steps, start: float, end: float) -> list[Window]:
    """Windows of full, uninterrupted steps that end within (start, end]; each step's own end is known."""
    full = stats.full_batch((samples, 1) for samples in steps.samples)
    apart = stats.real_interruptions(steps.interrupted, len(steps.ends))
    usable: list[tuple[float, float, int | None]] = []
    for index in _within(steps.ends, start, end):
        before = steps.ends[index - 1] if index else steps.began_at
        samples = steps.samples[index]
        mostly_inside = (before + steps.ends[index]) / 2 >= start
        if index not in apart and mostly_inside and (samples is None or full is None or samples >= full):
            usable.append((before, steps.ends[index], samples))
    windows: list[Window] = []
    for group in _in_windows(usable):
        samples_of = [samples for _, _, samples in group]
        windows.append(
            Window(
                start=group[0][0],
                end=group[-1][1],
                seconds=sum(to - since for since, to, _ in group),
                steps=len(group),
                samples=_sum(samples_of),
            )
        )
    return windows


def _in_windows(
    usable: Sequence[tuple[float, float, int | None]],
) -> Iterator[list[tuple[float, float, int | None]]]:
    group: list[tuple[float, float, int | None]] = []
    seconds = 0.0
    for step in usable:
        group.append(step)
        seconds += step[1] - step[0]
        if seconds >= WINDOW_SECONDS:
            yield group
            group, seconds = [], 0.0
    if group and (seconds > WINDOW_SECONDS / 2 or len(group) == len(usable)):
        yield group  # a shorter rest would weigh too much


def of_edges(steps: Steps, edges: Sequence[Edge], start: float, end: float) -> list[Window]:
    """Windows between moments of waiting, for devices that compute behind the host.

    Windows with a partial batch are left out where five others remain.
    """
    full = stats.full_batch((samples, 1) for samples in steps.samples)
    apart = stats.real_interruptions(steps.interrupted, len(steps.ends))
    found: list[tuple[Window, bool]] = []
    inside = [edge for edge in edges if start <= edge.at <= end]
    for opening, closing in itertools.pairwise(inside):
        within = _within(steps.ends, opening.at, closing.at)
        if closing.opens or not within or any(index in apart for index in within):
            continue
        samples = [steps.samples[index] for index in within]
        whole = all(one is None or full is None or one >= full for one in samples)
        seconds = closing.at - opening.at
        window = Window(opening.at, closing.at, seconds, len(within), _sum(samples), closing.waited)
        found.append((window, whole))
    whole_ones = [window for window, whole in found if whole]
    return whole_ones if len(whole_ones) >= 5 else [window for window, _ in found]


def _within(ends: Sequence[float], start: float, end: float) -> range:
    """The steps that end after *start* and not after *end*."""
    return range(bisect.bisect_right(ends, start), bisect.bisect_right(ends, end))


def _sum(samples: Sequence[int | None]) -> int | None:
    known = [one for one in samples if one is not None]
    return sum(known) if len(known) == len(samples) else None


def rate(windows: Sequence[Window]) -> float | None:
    """Samples per second over all windows; ``None`` where samples are not known."""
    samples = _sum([window.samples for window in windows])
    seconds = sum(window.seconds for window in windows)
    return samples / seconds if samples and seconds > 0 else None


def outliers(windows: Sequence[Window]) -> int:
    """How many windows are more than 1.5 times as slow as the median."""
    if not windows:
        return 0
    median = statistics.median(window.step_seconds for window in windows)
    return sum(window.step_seconds > 1.5 * median for window in windows)
