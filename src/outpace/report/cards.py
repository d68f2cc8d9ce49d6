"""Cards as text: a list that fits a terminal, one card, several side by side."""

from __future__ import annotations

import textwrap
from collections.abc import Sequence

from outpace import units
from outpace.cards.prices import Price
from outpace.cards.side_by_side import ABSENT, describe
from outpace.verbs.cards import Comparison, Listed

WIDTH = 80


def table(listed: Sequence[Listed]) -> str:
    """One line a card."""
    rows = [
        ("", "", "memory", "bandwidth", "16-bit matrix", "fp32 vector", "power", "price"),
        ("card", "year", "GiB", "GB/s", "TFLOP/s", "TFLOP/s", "W", "USD/h"),
        *map(_line, listed),
    ]
    return f"{aligned(rows)}\n{len(listed)} cards; - is not known. `outpace cards NAME` gives the sources."


def _line(card: Listed) -> tuple[str, ...]:
    matrix = card.matrix_flops_per_second
    return (
        card.name,
        str(card.year),
        _number(card.memory_bytes, units.GIB),
        _number(card.memory_bandwidth_bytes_per_second, units.GIGA),
        _number(matrix.get("bf16", matrix.get("fp16")), units.TERA),
        _number(card.vector_flops_per_second.get("fp32"), units.TERA),
        _number(card.board_power_watts, 1.0),
        f"{card.price.usd_per_hour:.2f}" if card.price else ABSENT,
    )


def _number(value: float | None, unit: float) -> str:
    if value is None:
        return ABSENT
    return f"{value / unit:,.4g}" if value < 1000 * unit else f"{value / unit:,.0f}"


def side_by_side(comparison: Comparison) -> str:
    """The facts in a column per card, ratios to the first, then what they mean; of one card all."""
    first, *others = comparison.cards
    if not others:
        rows = describe(first)
        width = max(len(label) for label, _ in rows)
        lines = [f"{first.title} ({first.name})"]
        for label, text in [*rows, *_price_row(first.price)]:
            lines.append(_hanging(f"  {label:<{width}}  ", text))
        return "\n".join(lines)
    header = ["", *(one.name for one in comparison.cards)]
    body = []
    for fact in comparison.facts:
        cells = [fact.shown[0]]
        for shown, ratio in zip(fact.shown[1:], fact.ratios[1:], strict=True):
            cells.append(f"{shown} ({_times(ratio)})" if ratio is not None else shown)
        body.append([fact.label, *cells])
    if any(one.price for one in comparison.cards):
        body.append(["price", *(_usd_per_hour(one.price) for one in comparison.cards)])
    lines = [aligned([header, *body])]
    for meaning in comparison.meanings:
        prefix = f"{meaning.card}: " if len(others) > 1 else ""
        lines.append(_hanging("- ", f"{prefix}{meaning.text}"))
    return "\n".join(lines)


def aligned(rows: Sequence[Sequence[str]]) -> str:
    """Columns as wide as their widest cell; the first to the left, figures to the right."""
    widths = [max(len(cell) for cell in column) for column in zip(*rows, strict=True)]
    lines = []
    for row in rows:
        cells = [
            f"{cell:<{width}}" if index == 0 else f"{cell:>{width}}"
            for index, (cell, width) in enumerate(zip(row, widths, strict=True))
        ]
        lines.append("  ".join(cells).rstrip())
    return "\n".join(lines)


def _hanging(start: str, text: str) -> str:
    return textwrap.fill(text, WIDTH, initial_indent=start, subsequent_indent=" " * len(start))


def _times(ratio: float) -> str:
    return f"x{units.significant(ratio)}"


def _usd_per_hour(price: Price | None) -> str:
    return f"{price.usd_per_hour:.2f} USD/h, {price.provider}" if price else ABSENT


def _price_row(price: Price | None) -> list[tuple[str, str]]:
    return [("price", f"{_usd_per_hour(price)}, {price.date} ({price.source})")] if price else []
