"""Predictions as text: a table of cards with their intervals drawn, and a sentence for each."""

from __future__ import annotations

import textwrap
from collections.abc import Sequence

from outpace import units
from outpace.records import Interval, Prediction
from outpace.report.cards import aligned

WIDTH = 80
_BAR = 21


def table(found: Sequence[Prediction]) -> str:
    """The cards against the first one that has a prediction."""
    there = [one for one in found if one.step_seconds is not None]
    lines = []
    if there:
        lines += _table(there)
    for one in found:
        lines += _told(one)
    return "\n".join(lines)


def _table(found: Sequence[Prediction]) -> list[str]:
    reference = found[0]
    rows = [("card", "step", "speed", "memory", "energy", "cost"), *(_row(one) for one in found)]
    lines = [f"{reference.target}, {_precision(reference)}, {_samples(reference)}", aligned(rows)]
    ratios = [(_name(one), _ratio(one, reference)) for one in found]
    longest = max(ratio.high for _, ratio in ratios)
    width = max(len(name) for name, _ in ratios)
    lines += ["", f"times as fast as {_name(reference)} ({100 * reference.interval:.0f} % intervals):"]
    for name, ratio in ratios:
        told = f"{ratio.mid:.2f} ({ratio.low:.2f} to {ratio.high:.2f})"
        lines.append(f"  {name:<{width}}  {_drawn(ratio, longest)}  {told}")
    of = reference.usd_samples
    if of is not None:
        lines.append(f"cost for {of:,} samples")
    lines.append("")
    return lines


def _row(one: Prediction) -> tuple[str, ...]:
    assert one.step_seconds is not None
    return (
        _name(one),
        units.seconds(one.step_seconds.mid),
        units.per_second(one.samples_per_second.mid, "samples") if one.samples_per_second else "-",
        f"{units.byte_count(one.peak_bytes.mid)} {_fits(one)}" if one.peak_bytes else "-",
        f"{units.significant(one.joules_per_sample.mid)} J/sample" if one.joules_per_sample else "-",
        f"{units.significant(one.usd.mid)} USD" if one.usd else "-",
    )


def _fits(one: Prediction) -> str:
    return {"yes": "fits", "no": "does not fit", "tight": "tight", None: ""}[one.fits]


def _name(one: Prediction) -> str:
    return f"{one.cards}x{one.card}" if one.cards > 1 else one.card


def _precision(one: Prediction) -> str:
    return "precision as written" if one.precision == "as written" else one.precision


def _samples(one: Prediction) -> str:
    return f"batch of {one.samples // one.cards:,}" if one.samples else "batch not known"


def _ratio(one: Prediction, reference: Prediction) -> Interval:
    """Speed over that of the reference; the reference's own uncertainty is left out: much of it is shared."""
    assert one.step_seconds is not None
    assert reference.step_seconds is not None
    per_sample = one.step_seconds.times(1 / one.cards)
    base = reference.step_seconds.mid / reference.cards
    return per_sample.into(base)


def _drawn(ratio: Interval, longest: float) -> str:
    """The interval as a bar: ``····├──┼──┤``."""

    def at(value: float) -> int:
        return min(round(value / longest * (_BAR - 1)), _BAR - 1)

    low, middle, high = at(ratio.low), at(ratio.mid), at(ratio.high)
    cells = ["·" if place < low else "─" if place <= high else " " for place in range(_BAR)]
    cells[low], cells[high] = "├", "┤"
    cells[middle] = "┼"
    return "".join(cells)


def _told(one: Prediction) -> list[str]:
    """What a buyer needs of this card, in sentences."""
    if one.missing_because:
        return _hanging(_name(one), f"no prediction: {one.missing_because}")
    parts = [one.advice or ""]
    if one.total_seconds is not None:
        parts.append(f"all samples: {units.seconds(one.total_seconds.mid)}")
    if one.largest_batch is not None:
        parts.append(f"largest batch that fits: {one.largest_batch.samples:,}")
    parts.append(f"basis: {_BASIS[one.basis]}")
    lines = _hanging(_name(one), "; ".join(filter(None, parts)))
    for warning in one.warnings:
        lines += _hanging("  note", warning)
    return lines


_BASIS = {
    "measured": "measured on it",
    "calibrated": "measurements made on this card",
    "datasheet": "its datasheet, and measurements of cards like it",
    "roofline": "roofline only, no card like it was measured",
}


def _hanging(label: str, text: str) -> list[str]:
    return textwrap.wrap(f"{label}: {text}", WIDTH, subsequent_indent="    ", break_on_hyphens=False)
