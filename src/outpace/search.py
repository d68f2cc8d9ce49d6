"""Which speed-ups to try next, and when a trial is decided. Knows no process and no framework."""

from __future__ import annotations

import math
import statistics
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from outpace import stats
from outpace.records import Span, Trial

#: Turns of each candidate before it may be decided, and when it is decided whatever was seen.
FEWEST_ROUNDS = 4
MOST_ROUNDS = 10
#: So much slower in two rounds (its square in the first), and no further one is needed.
HOPELESS = 0.75
#: Less is not worth a line in a recipe.
SMALLEST_GAIN = 1.01
#: A change that was tried in vain is tried again beside what was kept later, if it was not slower than so.
SECOND_CHANCE = 0.8
IN_VAIN = ("no gain", "slower", "beaten")


@dataclass(frozen=True)
class Change:
    """What is raced against the base."""

    names: tuple[str, ...]
    drop: bool = False

    def on(self, base: Sequence[str], slots: Mapping[str, str]) -> list[str]:
        """All that is on with the change, in the order of *slots*; of one slot, the newest."""
        if self.drop:
            return [name for name in base if name not in self.names]
        taken = {slots[name] for name in self.names}
        return [name for name in slots if name in self.names or (name in base and slots[name] not in taken)]


def base_of(trials: Sequence[Trial], slots: Mapping[str, str]) -> list[str]:
    """What was kept so far, in the order of *slots*."""
    base: list[str] = []
    for trial in trials:
        if trial.verdict == "kept" and not trial.drop:
            base = Change(tuple(trial.names)).on(base, slots)
        elif trial.verdict in ("dropped", "not the same"):
            base = Change(tuple(trial.names), drop=True).on(base, slots)
    return base


def next_race(
    slots: Mapping[str, str], pairs: Sequence[tuple[str, ...]], trials: Sequence[Trial]
) -> list[Change]:
    """The changes to be raced together against the base; none: the search is over.

    First every slot in its order (with the pairs whose first name is in it), then once more what was tried
    in vain beside less than is kept now, then each kept one: is it still needed?

    Args:
        slots: the slot of each candidate, in the order in which they are applied.
        pairs: candidates that may gain only together.
        trials: what is known.
    """
    order = list(slots)
    base = base_of(trials, slots)
    tried = [frozenset(trial.names) for trial in trials if not trial.drop]
    alone = [(name,) for name in order]
    known_pairs = [pair for pair in pairs if set(pair) <= set(order)]
    for slot in dict.fromkeys(slots.values()):
        fresh = [
            Change(names)
            for names in [*alone, *known_pairs]
            if slots[names[0]] == slot
            and frozenset(names) not in tried
            and not set(names) <= set(base)
            and not _impossible(names, trials)
        ]
        if fresh:
            return fresh
    again = [
        Change(tuple(trial.names))
        for index, trial in enumerate(trials)
        if not trial.drop
        and trial.verdict in IN_VAIN
        and trial.gain is not None
        and trial.gain.high > SECOND_CHANCE
        and tried.count(frozenset(trial.names)) == 1
        and set(base) - set(trial.base) - set(trial.names)
        and not {slots[name] for name in trial.names} & {slots[name] for name in base}
        and index == max(i for i, one in enumerate(trials) if one.names == trial.names)
    ]
    if again:
        return again[:1]
    for name in base:
        weighed = any(trial.drop and trial.names == [name] and trial.base == base for trial in trials)
        if len(base) > 1 and not weighed:
            return [Change((name,), drop=True)]
    return []


def _impossible(names: Sequence[str], trials: Sequence[Trial]) -> bool:
    """One of *names* alone has failed already."""
    failed = {
        trial.names[0]
        for trial in trials
        if len(trial.names) == 1 and trial.verdict in ("not applicable", "crashed", "hung", "not the same")
    }
    return len(names) > 1 and bool(failed & set(names))


def gain(ratios: Sequence[float]) -> Span:
    """How many times as fast, with the 95 % interval (Student's t of the logarithms); one ratio: itself."""
    logs = [math.log(ratio) for ratio in ratios]
    center = statistics.fmean(logs)
    half = 0.0
    if len(logs) > 1:
        half = stats.t_quantile(len(logs) - 1) * statistics.stdev(logs) / math.sqrt(len(logs))
    return Span(median=math.exp(center), low=math.exp(center - half), high=math.exp(center + half))


def decided(ratios: Sequence[float], *, last: bool = False) -> str | None:  # noqa: PLR0911
    """``faster``, ``slower``, ``no gain``, or ``None``: go on.

    Args:
        ratios: candidate over base, one per round.
        last: there will be no further round.
    """
    if not ratios:
        return "no gain" if last else None
    if ratios[0] < HOPELESS**2 or (len(ratios) == 2 and max(ratios) < HOPELESS):
        return "slower"
    over = last or len(ratios) >= MOST_ROUNDS
    if len(ratios) < FEWEST_ROUNDS:
        return "no gain" if over else None
    span = gain(ratios)
    if span.low > 1 and span.median >= SMALLEST_GAIN:
        return "faster"
    if span.high < 1:
        return "slower"
    if span.high < SMALLEST_GAIN or over:
        return "no gain"
    return None


@dataclass
class Runner:
    """One set of speed-ups in a race."""

    change: Change | None
    """``None``: the base."""
    names: list[str]
    paces: list[float] = field(default_factory=list)
    """Seconds per sample (or per step), by round."""
    step_seconds: float = 0.0
    startup_seconds: float = 0.0
    failure: tuple[str, str] | None = None
    verdict: str | None = None

    def ratios(self, base: Runner) -> list[float]:
        """How many times as fast as *base*, by round."""
        return [before / after for before, after in zip(base.paces, self.paces, strict=False)]


@dataclass(frozen=True)
class Result:
    """What a race found about one change."""

    change: Change
    ratios: tuple[float, ...]
    """Pace over that of the base, by round."""
    startup_seconds: float = 0.0
    failure: tuple[str, str] | None = None
    """Verdict and reason, where it could not be raced to the end."""


def verdicts(
    results: Sequence[Result],
    base: Sequence[str],
    *,
    base_step_seconds: float | None = None,
    planned_steps: int | None = None,
) -> list[Trial]:
    """What becomes of the changes of one race: the best that is faster and pays off is kept.

    Args:
        results: of all changes that were raced.
        base: what they were raced against.
        base_step_seconds, planned_steps: of the training; where they are known, start-up must pay off.
    """
    found: list[tuple[Result, str, Span | None, str | None]] = []
    for result in results:
        span = gain(result.ratios) if result.ratios else None
        if result.failure is not None:
            found.append((result, result.failure[0], span, result.failure[1]))
            continue
        word = decided(result.ratios, last=True) or "no gain"
        reason = None
        if result.change.drop:
            word = "kept" if word == "slower" or (span and span.median < 1 / SMALLEST_GAIN) else "dropped"
        elif word == "faster" and span is not None and base_step_seconds and result.startup_seconds > 0:
            saved = base_step_seconds * (1 - 1 / span.median)
            steps = math.ceil(result.startup_seconds / saved)
            reason = f"pays off after {steps:,} steps"
            if planned_steps is not None and steps > planned_steps:
                word, reason = "does not pay off", f"{reason}; {planned_steps:,} are planned"
        found.append((result, word, span, reason))
    faster = [(span.median, result) for result, word, span, _ in found if word == "faster" and span]
    best = max(faster, key=lambda pair: pair[0], default=(0.0, None))[1]
    return [
        Trial(
            names=list(result.change.names),
            base=list(base),
            drop=result.change.drop,
            verdict=("kept" if result is best else "beaten") if word == "faster" else word,
            gain=span,
            startup_seconds=round(result.startup_seconds, 3) if result.startup_seconds > 0 else None,
            reason=reason,
        )
        for result, word, span, reason in found
    ]
