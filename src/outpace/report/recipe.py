"""A recipe as text: the answer in sentences, what was tried, the proof, and lines for one's own code."""

from __future__ import annotations

import math
import statistics
import textwrap
from collections.abc import Iterator, Sequence

from outpace import proof, speedups, units
from outpace.records import Proof, Recipe, Score, Span, Trial

#: Of a line below its heading; with the indentation, 80.
WIDTH = 76


def recipe(found: Recipe) -> str:
    """The result of a search."""
    where = found.device_name or found.device
    lines = [f"{found.target} on {where}", ""]
    lines += [f"  {line}" for line in _answer(found)]
    if found.trials:
        lines += ["", "  tried (gain against what was kept before it)"]
        lines += [f"    {line}" for line in _table(found.trials)]
    if found.proof is not None and found.proof.scores:
        lines += ["", f"  proof ({len(found.proof.seeds)} seeds, {found.proof.steps:,} steps each)"]
        lines += [f"    {line}" for line in _evidence(found.proof)]
    if found.speedups:
        lines += ["", "  in your own code"]
        for name in found.speedups:
            lines.append(f"    # {name}")
            lines += [f"    {line}" for line in speedups.load(name).LINES.splitlines()]
    lines += [f"note: {note}" for note in [*found.notes, *(found.proof.notes if found.proof else [])]]
    return "\n".join(lines)


def _answer(found: Recipe) -> Iterator[str]:
    if not found.speedups:
        yield "Nothing that was tried makes this training faster and leaves its result the same."
        return
    names = " + ".join(found.speedups)
    if found.proof is None or found.proof.gain is None:
        yield f"{names}: not proven."
        return
    line = f"{names} ran {times(found.proof.gain)} times as fast as your script"
    if found.proof.energy_ratio is not None:
        line += f", on {found.proof.energy_ratio:.2f} of the energy per sample"
    yield line
    if found.samples_per_second:
        before = found.samples_per_second
        after = before * found.proof.gain.median
        yield (f"{units.per_second(before, 'samples')} before, {units.per_second(after, 'samples')} after")
    for score in found.proof.scores:
        if score.name not in ("mean loss", "final loss") or len(found.proof.scores) <= 2:
            yield f"{score.name} {_mean(score.recipe)} against {_mean(score.baseline)}"


def times(gain: Span) -> str:
    """A ratio with its interval."""
    return f"{gain.median:.2f} ({gain.low:.2f} to {gain.high:.2f})"


def _mean(values: Sequence[float | None]) -> str:
    known = [value for value in values if value is not None and math.isfinite(value)]
    if len(known) < 2:
        return "not finite"
    return f"{statistics.fmean(known):.4g} ± {statistics.stdev(known):.2g}"


def _table(trials: Sequence[Trial]) -> Iterator[str]:
    rows = [cells(trial) for trial in trials if trial.gain is not None]
    width = max((len(name) for name, _, _ in rows), default=0)
    for name, gain, word in rows:
        yield from _wrapped(f"{name:<{width}}  {gain:<20}  ", word)
    for name, _, word in (cells(trial) for trial in trials if trial.gain is None):
        yield from _wrapped(f"{name}  ", word)


def _wrapped(label: str, text: str) -> list[str]:
    """*text* beside *label*, within what a terminal has beside the indentation."""
    indent = " " * min(len(label), 8)
    return textwrap.wrap(label + text, WIDTH, subsequent_indent=indent, break_long_words=False)


def verdict(trial: Trial) -> str:
    """How it ended, and why."""
    word = trial.verdict
    if trial.drop:
        word = "still needed" if word == "kept" else "no longer needed"
    return f"{word}: {trial.reason}" if trial.reason and word != "kept" else word


def _name(trial: Trial) -> str:
    return ("without " if trial.drop else "") + " + ".join(trial.names)


def _gain(trial: Trial) -> str:
    return times(trial.gain) if trial.gain is not None else "-"


def cells(trial: Trial) -> tuple[str, str, str]:
    """One trial: what, how many times as fast, and what became of it."""
    return _name(trial), _gain(trial), verdict(trial)


def _evidence(found: Proof) -> Iterator[str]:
    for score in found.scores:
        figures = f"{_mean(score.recipe)} with, {_mean(score.baseline)} without; "
        yield from _wrapped(f"{score.name}: ", figures + _margin(score))
    yield from _wrapped(
        "",
        f"worse by up to {proof.MARGIN_DEVIATIONS:g} standard deviations between seeds (or "
        f"{proof.MARGIN_SHARE:.1%}) counts as the same",
    )
    yield from _wrapped(
        "",
        f"{len(found.seeds)} seeds let a worsening of {proof.detectable(len(found.seeds)):.1f} deviations "
        "or more pass once in 20 times at most",
    )


def _margin(score: Score) -> str:
    if score.bound is None:
        return "FAILED"
    word = "held" if score.held else "FAILED"
    if score.better == "unknown":
        return f"changed by {score.bound:.2g} at most (95 %), {score.margin:.2g} allowed: {word}"
    return f"worse by {score.bound:.2g} at most (95 %), {score.margin:.2g} allowed: {word}"
