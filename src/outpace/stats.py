"""Steady state: which of the step times are the training's real pace."""

from __future__ import annotations

import math
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
    apart = set(interrupted) | {0}
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
