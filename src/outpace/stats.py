"""Steady state: which of the step times are the training's real pace."""

from __future__ import annotations

import itertools
import math
import random
import statistics
from collections import Counter
from collections.abc import Iterable, Sequence
from typing import NamedTuple

#: Fewer steps than this have no steady state to speak of.
FEWEST_STEPS = 8


class Pace(NamedTuple):
    """A rate and what it rests on."""

    samples_per_second: float
    step_seconds: float
    """Mean over the steady full steps."""
    steps: int


def warm_up_steps(step_seconds: Sequence[float]) -> int:
    """How many steps at the start are warm-up (compilation, autotuning, caches, clocks).

    The truncation that minimises the marginal standard error of what remains (MSER: White, "An effective
    truncation heuristic for bias reduction in simulation output", Simulation 69, 1997), over at most the
    first half. Times are clipped at the 95th percentile of the second half first, so that a rare outlier
    (garbage collection, a checkpoint) does not pass for warm-up.
    """
    count = len(step_seconds)
    if count < FEWEST_STEPS:
        return 0
    tail = sorted(step_seconds[count // 2 :])
    ceiling = tail[min(len(tail) - 1, math.ceil(0.95 * len(tail)))] * 1.05
    clipped = [
        min(value, 3 * ceiling) if index < count // 2 else min(value, ceiling)
        for index, value in enumerate(step_seconds)
    ]
    best, best_error = 0, math.inf
    total = squares = 0.0
    for index in range(count - 1, -1, -1):
        total += clipped[index]
        squares += clipped[index] ** 2
        kept = count - index
        if index <= count // 2:
            error = max(squares - total * total / kept, 0.0) / kept**2
            if error <= best_error:
                best, best_error = index, error
    return best


def full_batch(runs: Iterable[tuple[int | None, int]]) -> int | None:
    """The most frequent number of samples per step, from (samples, steps in a row) pairs."""
    counts: Counter[int] = Counter()
    for samples, steps in runs:
        if samples:
            counts[samples] += steps
    return counts.most_common(1)[0][0] if counts else None


def real_interruptions(interrupted: Iterable[int], steps: int) -> set[int]:
    """The interrupted ones among so many steps; if most are, it is a part of each step (a teacher model)."""
    found = set(interrupted)
    return found if 2 * len(found) <= steps else set()


def settled(paces: Sequence[float]) -> bool:
    """Whether the latest windows of a training show a steady pace.

    Args:
        paces: seconds per step of each window so far.

    What remains after the warm-up (`warm_up_steps`) must be half of the windows and four at least, and its
    two halves must agree within 3 % or within twice their standard error, which must be below a tenth of the
    pace: of a few windows that fall from one to the next it is as large as the fall.
    """
    if len(paces) < 6:
        return False
    kept = paces[warm_up_steps(paces) if len(paces) >= FEWEST_STEPS else 2 :]
    if len(kept) < max(4, len(paces) // 2):
        return False
    early, late = kept[: len(kept) // 2], kept[len(kept) // 2 :]
    difference = abs(statistics.fmean(early) - statistics.fmean(late))
    error = math.hypot(_standard_error(early), _standard_error(late))
    mean = statistics.fmean(kept)
    return difference <= max(0.03 * mean, 2 * error if error <= 0.1 * mean else 0.0)


def relative_error(values: Sequence[float]) -> float:
    """Half the width of the 95 % interval of the mean over the mean, by batch means.

    Neighbouring windows are alike (clocks, other processes), so they are joined into about ten batches, which
    are taken as independent (Law, "Simulation Modeling and Analysis", on batch means).
    """
    if len(values) < 2:
        return math.inf
    batches = batch_means(values)
    mean = statistics.fmean(batches)
    return t_quantile(len(batches) - 1) * _standard_error(batches) / mean if mean else math.inf


def batch_means(values: Sequence[float], batches: int = 10) -> list[float]:
    """Means of neighbouring values; with fewer values than *batches*, the values."""
    count = min(batches, len(values))
    bounds = [round(index * len(values) / count) for index in range(count + 1)]
    return [statistics.fmean(values[low:high]) for low, high in itertools.pairwise(bounds)]


def t_quantile(degrees: int, confidence: float = 0.95) -> float:
    """Student's t: the two-sided quantile, for one degree of freedom or more.

    Cornish-Fisher expansion in 1/degrees (Abramowitz and Stegun 26.7.5); exact forms for one and two degrees.
    """
    upper = 0.5 + confidence / 2
    if degrees == 1:
        return math.tan(math.pi * (upper - 0.5))
    if degrees == 2:
        return (2 * upper - 1) * math.sqrt(2 / (1 - (2 * upper - 1) ** 2))
    x = statistics.NormalDist().inv_cdf(upper)
    terms = (
        (x**3 + x) / 4,
        (5 * x**5 + 16 * x**3 + 3 * x) / 96,
        (3 * x**7 + 19 * x**5 + 17 * x**3 - 15 * x) / 384,
        (79 * x**9 + 776 * x**7 + 1482 * x**5 - 1920 * x**3 - 945 * x) / 92160,
    )
    return x + float(sum(term / degrees**power for power, term in enumerate(terms, start=1)))


def _standard_error(values: Sequence[float]) -> float:
    return statistics.stdev(values) / math.sqrt(len(values)) if len(values) > 1 else 0.0


class Spread(NamedTuple):
    """A value with its 95 % interval."""

    median: float
    low: float
    high: float


def median_with_interval(values: Sequence[float], resamples: int = 1000) -> Spread:
    """The median and its 95 % interval by the moving block bootstrap (Künsch 1989), with a fixed seed.

    Args:
        values: in the order of time, one at least; neighbours may be alike. Blocks are the square root of
            their number long.

    With few blocks the bootstrap alone is too narrow (50 independent values: 88 %; 5: 63 %), so the interval
    is no narrower than that of the order statistics, which is exact for independent values. For fewer than
    six values that is their range, and covers less than 95 %.
    """
    median = statistics.median(values)
    if len(values) < 3:
        return Spread(median, min(values), max(values))
    source = random.Random(0)
    length = max(1, round(math.sqrt(len(values))))
    starts = range(len(values) - length + 1)
    needed = math.ceil(len(values) / length)
    medians = sorted(
        statistics.median(
            [value for start in source.choices(starts, k=needed) for value in values[start : start + length]]
        )
        for _ in range(resamples)
    )
    ranked = sorted(values)
    rank = _rank_below_median(len(values))
    return Spread(
        median,
        min(medians[round(0.025 * resamples)], ranked[rank]),
        max(medians[round(0.975 * resamples) - 1], ranked[-1 - rank]),
    )


def _rank_below_median(count: int) -> int:
    """The highest rank, from 0, that is above the median of the distribution in at most 2.5 % of samples."""
    if count > 1000:  # by the normal distribution
        return math.floor(count / 2 - 0.98 * math.sqrt(count)) - 1
    chance = 0.0
    for rank in range(count):
        chance += math.comb(count, rank) / 2**count
        if chance > 0.025:
            return max(rank - 1, 0)
    return 0


def steady_pace(
    step_seconds: Sequence[float], step_samples: Sequence[int | None], interrupted: Sequence[int] = ()
) -> Pace | None:
    """The rate of a training in steady state, or ``None`` where there is none to speak of.

    Args:
        step_seconds: seconds per step.
        step_samples: samples per step; steps smaller than the most frequent size are partial batches.
        interrupted: steps whose time holds something other than training.

    Left out: the first step, warm-up, interrupted steps, partial batches. The rate is the samples of the
    remaining steps over their whole time.
    """
    full = full_batch((samples, 1) for samples in step_samples)
    if full is None:
        return None
    apart = real_interruptions(interrupted, len(step_seconds)) | {0}
    usable = [
        (seconds, samples)
        for index, (seconds, samples) in enumerate(zip(step_seconds, step_samples, strict=True))
        if index not in apart and samples is not None and samples >= full
    ]
    if len(usable) < FEWEST_STEPS:
        return None
    steady = usable[warm_up_steps([seconds for seconds, _ in usable]) :]
    whole = sum(seconds for seconds, _ in steady)
    if whole <= 0:
        return None
    samples = sum(samples for _, samples in steady)
    return Pace(samples / whole, whole / len(steady), len(steady))
