"""Is a training with speed-ups as good as without? A non-inferiority test over seeds."""

from __future__ import annotations

import math
import re
import statistics
from collections.abc import Iterable, Sequence
from typing import NamedTuple

from outpace import search, stats
from outpace.records import Proof, Run, Score

#: A worsening of so many standard deviations between seeds counts as the same: a training repeated with
#: another seed differs by more than two of them once in twenty times.
MARGIN_DEVIATIONS = 3.0
#: And so does one of this part of the value, where seeds hardly matter.
MARGIN_SHARE = 0.005
CONFIDENCE = 0.95
#: Of a training's losses, the part at its end that is called the final loss.
END = 0.1


class Training(NamedTuple):
    """One training of the proof."""

    run: Run
    joules_per_sample: float | None = None
    energy_source: str | None = None


#: What metrics are called, as whole words of their names (``val_top5_error``: val, top, error).
HIGHER = {
    *("acc", "accuracy", "auc", "auroc", "f", "precision", "recall", "bleu", "rouge", "map", "iou", "miou"),
    *("dice", "score", "psnr", "ssim", "r", "reward", "top", "correct", "mcc", "kappa"),
}
LOWER = {
    *(
        "loss",
        "error",
        "err",
        "perplexity",
        "ppl",
        "mse",
        "mae",
        "rmse",
        "mape",
        "smape",
        "wer",
        "cer",
        "fid",
    ),
    *("nll", "bits", "bpc", "divergence", "kl", "deviation", "brier"),
}


def direction(name: str) -> str:
    """Whether ``higher`` or ``lower`` values of a metric are better, by its name; else ``unknown``."""
    words = {word.lower() for word in re.findall(r"[A-Z]?[a-z]+|[A-Z]+", name)}
    if words & LOWER:
        return "lower"
    return "higher" if words & HIGHER else "unknown"


def figures(run: Run, steps: int | None = None) -> dict[str, float]:
    """What a training is judged by: each metric's last value, and its losses (of the first *steps*)."""
    found = {name: value for name, value in run.metrics.items() if value is not None}
    losses = [loss for loss in run.losses[:steps] if loss is not None]
    if any(steps is None or step < steps for step in run.nonfinite_losses):
        return found | {"final loss": math.inf, "mean loss": math.inf}
    if losses:
        end = max(1, round(len(losses) * END))
        found["mean loss"] = statistics.fmean(losses)
        found["final loss"] = statistics.fmean(losses[-end:])
    return found


def score(name: str, baseline: Sequence[float], recipe: Sequence[float]) -> Score:
    """The test of one figure.

    Args:
        baseline, recipe: by seed, two each at least.

    It holds when the one-sided 95 % bound of the mean worsening (Student's t, both sides' deviations pooled,
    2(N-1) degrees of freedom) is within the margin: three standard deviations between seeds, half a percent
    of the baseline's mean at least. Of unknown direction both ways count, each at 97.5 %.
    """
    better = direction(name)
    count = len(baseline)
    if not all(map(math.isfinite, [*baseline, *recipe])):
        sides = [[value if math.isfinite(value) else None for value in side] for side in (baseline, recipe)]
        return Score(name=name, better=better, baseline=sides[0], recipe=sides[1], held=sides[0] == sides[1])
    change = statistics.fmean(recipe) - statistics.fmean(baseline)
    worse = {"higher": -change, "lower": change}.get(better, abs(change))
    deviation = math.hypot(statistics.stdev(baseline), statistics.stdev(recipe)) / math.sqrt(2)
    confidence = 2 * CONFIDENCE - 1 if better != "unknown" else CONFIDENCE  # two-sided quantiles
    half = stats.t_quantile(2 * count - 2, confidence) * deviation * math.sqrt(2 / count)
    spread = statistics.stdev(baseline)
    margin = max(MARGIN_DEVIATIONS * max(spread, deviation_floor(spread, deviation)), _floor(baseline))
    return Score(
        name=name,
        better=better,
        baseline=list(baseline),
        recipe=list(recipe),
        margin=margin,
        worse_by=worse,
        bound=worse + half,
        held=worse + half <= margin,
    )


def deviation_floor(spread: float, pooled: float) -> float:
    """The deviation between seeds: a recipe that spreads much more than the script widens no margin."""
    return min(pooled, 2 * spread)


def _floor(baseline: Sequence[float]) -> float:
    return MARGIN_SHARE * abs(statistics.fmean(baseline))


def detectable(count: int) -> float:
    """The true worsening, in standard deviations between seeds, that N seeds fail in 19 of 20 cases.

    With the margin of 3 deviations, a worsening of d is let through when the estimated one, with a standard
    error of sqrt(2/N), falls below 3 - t sqrt(2/N).
    """
    error = math.sqrt(2 / count)
    t = stats.t_quantile(2 * count - 2, 2 * CONFIDENCE - 1)
    return MARGIN_DEVIATIONS - t * error + 1.645 * error


def of(
    baseline: Sequence[Training], recipe: Sequence[Training], *, whole: bool, notes: Iterable[str] = ()
) -> Proof:
    """Compare trainings of the same seeds, in the same order.

    Args:
        whole: they ran to the end of the script.
        notes: what a reader must know of them.
    """
    steps = min(one.run.steps for one in [*baseline, *recipe])
    sides = [[figures(one.run, None if whole else steps) for one in side] for side in (baseline, recipe)]
    names = [name for name in sides[0][0] if all(name in each for side in sides for each in side)]
    scores = [score(name, *([each[name] for each in side] for side in sides)) for name in names]
    lost = sorted({name for each in sides[0] for name in each} - set(names))
    ratios = [
        after.run.samples_per_second / before.run.samples_per_second
        for before, after in zip(baseline, recipe, strict=True)
        if before.run.samples_per_second and after.run.samples_per_second
    ]
    remarks = [*notes, *(f"{name} is not known of every training, and is not compared" for name in lost)]
    if not scores:
        remarks.append("the script has no loss and no metric that could be compared")
    elif all(one.baseline.count(one.baseline[0]) == len(one.baseline) for one in scores):
        remarks.append(
            "all seeds gave the same: the script's random numbers could not be changed from outside"
        )
    return Proof(
        seeds=[one.run.seed or 0 for one in baseline],
        steps=steps,
        whole=whole,
        scores=scores,
        held=bool(scores) and all(one.held for one in scores),
        gain=search.gain(ratios) if ratios else None,
        energy_ratio=_energy_ratio(baseline, recipe),
        energy_source=baseline[0].energy_source,
        notes=remarks,
    )


def _energy_ratio(baseline: Sequence[Training], recipe: Sequence[Training]) -> float | None:
    ratios = [
        after.joules_per_sample / before.joules_per_sample
        for before, after in zip(baseline, recipe, strict=True)
        if before.joules_per_sample and after.joules_per_sample
    ]
    return statistics.median(ratios) if ratios else None


def reproduces(baseline: Sequence[float | None], other: Sequence[float | None], steps: int = 5) -> bool:
    """Whether the first losses are the same up to rounding (1e-4 of the value, which steps make larger)."""
    first = list(zip(baseline[:steps], other[:steps], strict=False))
    return bool(first) and all(
        (one is None and two is None)
        or (one is not None and two is not None and math.isclose(one, two, rel_tol=1e-4, abs_tol=1e-6))
        for one, two in first
    )
