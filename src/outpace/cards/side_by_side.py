"""Cards next to each other: each fact with its ratio to the first card."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import msgspec

from outpace.cards.meanings import Meaning, meanings
from outpace.records import Card
from outpace.units import GIB, GIGA, MEGA, MIB, si

MATRIX_DTYPES = ("fp64", "fp32", "tf32", "fp16", "bf16", "fp8", "int8", "fp4")
VECTOR_DTYPES = ("fp64", "fp32", "fp16", "bf16", "int8")
ABSENT = "-"

Value = float | int | str | None


class Fact(msgspec.Struct, frozen=True, kw_only=True):
    """One fact of several cards, in their order."""

    key: str
    """The field of :class:`~outpace.records.Card`, with the dtype after a dot where there is one."""
    label: str
    values: tuple[Value, ...]
    shown: tuple[str, ...]
    """The values as text; ``-`` where the vendor publishes none."""
    ratios: tuple[float | None, ...]
    """Each value over that of the first card; ``None`` for text and where one is missing."""


class SideBySide(msgspec.Struct, frozen=True, kw_only=True):
    """The facts of the cards and, for each card after the first, what the differences mean for a training."""

    cards: tuple[str, ...]
    facts: tuple[Fact, ...]
    meanings: tuple[Meaning, ...]


def compare(cards: Sequence[Card]) -> SideBySide:
    """Put *cards* side by side; ratios are to the first. Facts that no card has are left out."""
    first, others = cards[0], cards[1:]
    return SideBySide(
        cards=tuple(card.name for card in cards),
        facts=tuple(fact for row in _facts() if (fact := _fact(cards, *row)) is not None),
        meanings=tuple(meaning for other in others for meaning in meanings(first, other)),
    )


def describe(card: Card) -> list[tuple[str, str]]:
    """Label and text of every fact that the card has, then its driver names, sources and note."""
    rows = [(fact.label, fact.shown[0]) for fact in compare([card]).facts]
    rows += [("reported as", name) for name in card.driver_names]
    if card.halved_from_sparse:
        rows.append(("half of sparse", ", ".join(card.halved_from_sparse)))
    rows += [(f"source of {group}", document) for group, document in card.sources.items()]
    return [*rows, ("note", card.note)] if card.note else rows


_Row = tuple[str, str, Callable[[Card], Value], Callable[[Any], str]]


def _facts() -> list[_Row]:
    """Key, label, how to get it and how to show it, in the order of a datasheet."""
    rows: list[tuple[str, str, Callable[[Any], str]]] = [
        ("title", "card", str),
        ("vendor", "vendor", str),
        ("architecture", "architecture", str),
        ("year", "year", str),
        ("process_nm", "process", lambda value: f"{value:g} nm"),
        ("units", "units", str),
        ("vector_cores", "vector cores", lambda value: f"{value:,}"),
        ("clock_base_hertz", "base clock", _mhz),
        ("clock_boost_hertz", "boost clock", _mhz),
        ("memory_kind", "memory", str),
        ("memory_bytes", "memory size", _gib),
        ("memory_bandwidth_bytes_per_second", "memory bandwidth", _gb_per_second),
        ("l2_bytes", "L2 cache", lambda value: f"{value / MIB:g} MiB"),
        ("last_level_cache_bytes", "last-level cache", lambda value: f"{value / MIB:g} MiB"),
        ("board_power_watts", "board power", _watts),
        ("host_link", "host link", str),
        ("host_link_bytes_per_second", "host link, one direction", _gb_per_second),
        ("peer_link", "link to other cards", str),
        ("peer_link_bytes_per_second", "to other cards, both directions", _gb_per_second),
        ("toolkit", "first toolkit", str),
    ]
    found: list[_Row] = [(key, label, _field(key), show) for key, label, show in rows]
    peaks: list[_Row] = [
        (f"{kind}_flops_per_second.{dtype}", f"{dtype} {kind}", _peak(kind, dtype), _peak_text(dtype))
        for kind, dtypes in (("matrix", MATRIX_DTYPES), ("vector", VECTOR_DTYPES))
        for dtype in dtypes
    ]
    at = next(index for index, row in enumerate(found) if row[0] == "board_power_watts")
    return found[:at] + peaks + found[at:]


def _fact(
    cards: Sequence[Card], key: str, label: str, get: Callable[[Card], Value], show: Callable[[Any], str]
) -> Fact | None:
    values = tuple(get(card) for card in cards)
    if all(value is None for value in values):
        return None
    return Fact(
        key=key,
        label=label,
        values=values,
        shown=tuple(_text(value, show) for value in values),
        ratios=tuple(None if key == "year" else _ratio(value, values[0]) for value in values),
    )


def _ratio(value: Value, first: Value) -> float | None:
    if isinstance(value, str) or isinstance(first, str) or value is None or not first:
        return None
    return value / first


def _field(key: str) -> Callable[[Card], Value]:
    def get(card: Card) -> Value:
        value: Value = getattr(card, key)
        return value

    return get


def _peak(kind: str, dtype: str) -> Callable[[Card], Value]:
    def get(card: Card) -> Value:
        peaks: dict[str, float] = getattr(card, f"{kind}_flops_per_second")
        return peaks.get(dtype)

    return get


def _peak_text(dtype: str) -> Callable[[Any], str]:
    return lambda value: si(value, "OP/s" if dtype.startswith("int") else "FLOP/s")


def _text(value: Value, show: Callable[[Any], str]) -> str:
    return ABSENT if value is None else show(value)


def _gib(value: float) -> str:
    return f"{value / GIB:g} GiB"


def _gb_per_second(value: float) -> str:
    return f"{value / GIGA:,.0f} GB/s"


def _mhz(value: float) -> str:
    return f"{value / MEGA:,.0f} MHz"


def _flops(value: float) -> str:
    return si(value, "FLOP/s")


def _watts(value: float) -> str:
    return f"{value:,.4g} W" if value < 1000 else f"{value:,.0f} W"
