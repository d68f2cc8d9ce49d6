"""Predictions of the product for rows that a fit has not seen, beside what was measured."""

from __future__ import annotations

import math
import statistics
from collections.abc import Callable, Iterable, Sequence
from typing import NamedTuple

from bench import examples, fit
from bench.examples import Case
from bench.fit import Example
from outpace.prediction.coefficients import Coefficients

Z90 = 1.6449


class Judged(NamedTuple):
    """One row, predicted without what was left out."""

    case: Case
    error: float
    """Logarithm of predicted over measured."""
    sd: float
    """That the product gives it, before it is widened."""
    kind: str
    """Class of its interval."""
    roofline: float
    """Logarithm of the bare roofline over measured."""
    left_out: str


def judge(case: Case, coefficients: Coefficients, left_out: str, host_scale: float = 1.0) -> Judged:
    """What the product says for one row."""
    microseconds = None
    if host_scale != 1.0:  # times the host of the stack's years, which a given one replaces
        years = math.exp(coefficients.stacks.get(case.row.stack, {}).get("host", 0.0))
        microseconds = coefficients.host.smallest_call * 1e6 * host_scale * years
    timed = examples.predicted(case, coefficients, host_microseconds=microseconds)
    measured = case.row.seconds - case.example.waits
    return Judged(
        case,
        math.log(timed.seconds / measured),
        timed.sd,
        timed.case,
        math.log(timed.step.roofline / measured),
        left_out,
    )


def leave_out(
    everything: Sequence[Example],
    cases: Sequence[Case],
    group_of: Callable[[Case], str],
    leaves: Callable[[Example, str], bool],
    start: fit.Theta,
) -> list[Judged]:
    """Every case judged by a fit without its group.

    Args:
        everything: all that the full fit sees.
        group_of: the group of a case.
        leaves: whether an example goes out with a group.
        start: the parameters of the full fit; only a start for the search.
    """
    found = []
    for group in sorted({group_of(case) for case in cases}):
        kept = [example for example in everything if not leaves(example, group)]
        coefficients = fit.coefficients(fit.fit(kept, start=start))
        found += [judge(case, coefficients, group) for case in cases if group_of(case) == group]
    return found


class Errors(NamedTuple):
    """Of a set of rows, absolute errors in percent of what was measured; bias of the logarithm."""

    rows: int
    mean: float
    median: float
    p90: float
    worst: float
    bias: float


def errors(logs: Iterable[float]) -> Errors:
    """Summary of logarithms of predicted over measured."""
    given = list(logs)
    absolute = sorted(100 * abs(math.expm1(one)) for one in given)
    return Errors(
        len(given),
        statistics.fmean(absolute),
        statistics.median(absolute),
        absolute[min(math.ceil(0.9 * len(absolute)) - 1, len(absolute) - 1)],
        absolute[-1],
        100 * statistics.fmean(given),
    )


def times_constant(found: Sequence[Judged]) -> list[float]:
    """The trivial rival: the bare roofline times one constant, fitted on the rows of the other groups."""
    logs = []
    for group in {one.left_out for one in found}:
        others = [one.roofline for one in found if one.left_out != group]
        constant = statistics.median(others) if others else statistics.median(one.roofline for one in found)
        logs += [one.roofline - constant for one in found if one.left_out == group]
    return logs


def widening(found: Sequence[Judged]) -> dict[str, float]:
    """By class of case: what the half-width of the intervals must be multiplied with.

    The larger of two: what covers 90 % of the rows, every card counting the same, and what covers three
    quarters of the rows on 90 % of the cards.
    """
    widen = {}
    for kind in {one.kind for one in found}:
        rows = [one for one in found if one.kind == kind]
        least = 1.0 if kind == "roofline" else 0.6  # few cards of one vendor say little of others
        widen[kind] = round(max(_weighted_quantile(rows, 0.9), _over_cards(rows), least), 3)
    return widen


def _weighted_quantile(rows: Sequence[Judged], share: float) -> float:
    number: dict[str, int] = {}
    for one in rows:
        number[one.case.row.card.name] = number.get(one.case.row.card.name, 0) + 1
    ranked = sorted((abs(one.error) / (Z90 * one.sd), 1 / number[one.case.row.card.name]) for one in rows)
    total, seen = sum(weight for _, weight in ranked), 0.0
    for ratio, weight in ranked:
        seen += weight
        if seen >= share * total:
            return ratio
    return ranked[-1][0]


def _over_cards(rows: Sequence[Judged]) -> float:
    cards: dict[str, list[float]] = {}
    for one in rows:
        cards.setdefault(one.case.row.card.name, []).append(abs(one.error) / (Z90 * one.sd))
    needed = sorted(sorted(each)[math.ceil(0.75 * len(each)) - 1] for each in cards.values())
    return needed[math.ceil(0.9 * len(needed)) - 1]


class Coverage(NamedTuple):
    """How many rows lay within their intervals, and the median half-width as a factor."""

    rows: float
    worst_card: float
    worst_name: str
    factor: float


def coverage(found: Sequence[Judged]) -> Coverage:
    """Of intervals widened by what the *other* cards say: no card helps to calibrate its own."""
    inside: dict[str, list[bool]] = {}
    factors = []
    for name in {one.case.row.card.name for one in found}:
        others = [one for one in found if one.case.row.card.name != name]
        widen = widening(others) if others else {}
        for one in (one for one in found if one.case.row.card.name == name):
            half = Z90 * one.sd * widen.get(one.kind, 1.0)
            inside.setdefault(name, []).append(abs(one.error) <= half)
            factors.append(math.exp(half))
    shares = {name: sum(each) / len(each) for name, each in inside.items()}
    worst = min(shares, key=lambda name: shares[name])
    every = [one for each in inside.values() for one in each]
    return Coverage(100 * sum(every) / len(every), 100 * shares[worst], worst, statistics.median(factors))
