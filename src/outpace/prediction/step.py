"""The time of a step: kernels one after the other, against the host that launches them."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import NamedTuple

from outpace.prediction import costs, hardware, launches, parts
from outpace.prediction.coefficients import Coefficients
from outpace.prediction.costs import Sheet
from outpace.prediction.parts import Part
from outpace.records import Card, Operator

#: How sharply the slower of card and host sets the pace.
SHARPNESS = 2.0


class Missing(Exception):
    """The card has no rate for something that the step does."""


class Step(NamedTuple):
    """One step on one card, in seconds."""

    seconds: float
    kernels: float
    host: float
    shares: dict[str, float]
    """Of the step: ``matrix units``, ``vector units``, ``memory bandwidth``, ``host launches``."""
    roofline: float
    """At the bare datasheet."""
    by_rate: dict[str, float]
    """Share of each sustained rate in the kernels: how its error becomes the step's."""
    unknown: list[str]
    """Operators that could only be bounded."""
    bases: frozenset[str]
    kinds: dict[str, float]
    """Share of the kernels by name of the part."""
    used: dict[str, float]
    """Share of the datasheet's rate while kernels run: ``matrix``, ``vector``, ``memory``."""


def of_operators(
    operators: Sequence[Operator],
    card: Card,
    coefficients: Coefficients,
    *,
    mode: str = "eager",
    host_scale: float = 1.0,
    log_rates: Mapping[str, float] | None = None,
) -> Step:
    """The step that *operators* are, on *card*.

    Args:
        mode: see `launches.MODES`.
        host_scale: see `launches.host_seconds`.
        log_rates: corrections of sustained rates that a measurement on this card gave.

    Raises:
        Missing: the card has no rate for a dtype of the step.
    """
    each = [(operator, part) for operator in operators for part in parts.of_operator(operator, card)]
    sheet = sheet_of(card, [part for _, part in each], coefficients, log_rates or {})
    by_limit = dict.fromkeys(("matrix units", "vector units", "memory bandwidth", "launches"), 0.0)
    by_rate: dict[str, float] = {}
    kinds: dict[str, float] = {}
    used = {"matrix": 0.0, "vector": 0.0, "memory": 0.0}
    kernels = bare = layout = 0.0
    unknown: list[str] = []
    for operator, part in each:
        cost = costs.seconds(part, sheet, coefficients)
        kernels += cost.seconds
        bare += costs.roofline(part, card)
        arithmetic, traffic = costs.at_datasheet(part, card)
        used[part.unit] += arithmetic
        used["memory"] += traffic
        moved = parts.converted_bytes(operator, part.unit) * part.times / _parts_of(operator)
        converted = moved * math.exp(coefficients.layout_traffic) / sheet.bandwidth.value
        layout += converted
        computes = _share_of_compute(cost, coefficients.smoothness)
        work = cost.seconds - cost.launch
        by_limit["launches"] += cost.launch
        by_limit[f"{part.unit} units"] += work * computes
        by_limit["memory bandwidth"] += work * (1 - computes) + converted
        rate = hardware.key_of(part.unit, part.dtype)
        by_rate[rate] = by_rate.get(rate, 0.0) + work * computes
        by_rate["bandwidth"] = by_rate.get("bandwidth", 0.0) + work * (1 - computes) + converted
        kinds[part.name] = kinds.get(part.name, 0.0) + cost.seconds
        if not part.known:
            unknown.append(operator.name)
    kernels += layout
    host = launches.host_seconds(operators, coefficients.host, mode=mode, scale=host_scale)
    seconds = (kernels**SHARPNESS + host**SHARPNESS) ** (1 / SHARPNESS)
    launching = host**SHARPNESS / seconds**SHARPNESS if seconds else 0.0
    shares = {name: (1 - launching) * value / kernels for name, value in by_limit.items()} if kernels else {}
    rates = [sheet.bandwidth, *(rate for rate in sheet.peaks.values() if rate is not None)]
    between = shares.pop("launches", 0.0)
    return Step(
        seconds=seconds,
        kernels=kernels,
        host=host,
        shares={**shares, "host launches": launching + between},
        roofline=bare,
        by_rate={name: value / kernels for name, value in by_rate.items()} if kernels else {},
        unknown=sorted(set(unknown)),
        bases=frozenset(rate.basis for rate in rates),
        kinds={name: value / kernels for name, value in kinds.items()} if kernels else {},
        used={name: min(value / kernels, 1.0) for name, value in used.items()} if kernels else used,
    )


def _parts_of(operator: Operator) -> int:
    return 2 if operator.attributes.get("gradients") == "both" else 1


def _share_of_compute(cost: costs.Cost, smoothness: float) -> float:
    compute, memory = cost.compute**smoothness, cost.memory**smoothness
    return compute / (compute + memory) if compute + memory else 0.0


def sheet_of(
    card: Card, each: Sequence[Part], coefficients: Coefficients, log_rates: Mapping[str, float]
) -> Sheet:
    """The sustained rates of *card* that these parts need.

    Raises:
        Missing: one is not in its datasheet.
    """
    moved = hardware.bandwidth(card, coefficients)
    if moved is None:
        raise Missing(f"the memory bandwidth of {card.title} is not known")
    moved = moved._replace(value=moved.value * math.exp(log_rates.get("bandwidth", 0.0)))
    peaks: dict[tuple[str, str], hardware.Rate | None] = {}
    for part in each:
        key = (part.unit, part.dtype)
        if key in peaks or not part.flops:
            continue
        rate = hardware.peak(card, *key, coefficients)
        if rate is None and part.dtype in ("int64", "int32", "int16", "int8", "uint8", "bool"):
            peaks[key] = None  # counting and comparing: what it moves is its cost
            continue
        if rate is None:
            raise Missing(f"no rate of {card.title} for {part.dtype} is known")
        correction = log_rates.get(hardware.key_of(*key), 0.0)
        peaks[key] = rate._replace(value=rate.value * math.exp(correction))
    return Sheet(card, peaks, moved)
