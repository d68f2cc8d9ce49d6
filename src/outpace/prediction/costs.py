"""Seconds of one part on one card."""

from __future__ import annotations

import math
from typing import NamedTuple

from outpace.prediction import hardware
from outpace.prediction.coefficients import Coefficients
from outpace.prediction.hardware import Rate
from outpace.prediction.parts import Part
from outpace.records import Card


class Sheet(NamedTuple):
    """A card as the costs see it: its sustained rates, looked up once."""

    card: Card
    peaks: dict[tuple[str, str], Rate | None]
    bandwidth: Rate


class Cost(NamedTuple):
    """Seconds of all kernels of a part; arithmetic and traffic each as if alone."""

    seconds: float
    compute: float
    memory: float
    launch: float
    """Within ``seconds``: from one kernel to the next."""


def seconds(part: Part, sheet: Sheet, coefficients: Coefficients) -> Cost:
    """Launch plus the smooth maximum of arithmetic and traffic, times the number of kernels."""
    compute = 0.0
    rate = sheet.peaks.get((part.unit, part.dtype))
    if part.flops and rate is not None:
        share = math.exp(coefficients.arithmetic[part.unit].get(part.name, 0.0))
        compute = part.flops * part.waste / (rate.value * share)
    traffic = math.exp(coefficients.traffic.get(part.name, 0.0))
    cached = hardware.cache_factor(sheet.card, part.bytes, coefficients.cache_boost)
    memory = part.bytes * traffic / (sheet.bandwidth.value * cached)
    power = coefficients.smoothness
    both = (compute**power + memory**power) ** (1 / power)
    launch = coefficients.host.kernel_seconds
    if part.name.startswith("rnn"):
        launch = coefficients.recurrent_step_seconds
    return Cost(part.times * (both + launch), part.times * compute, part.times * memory, part.times * launch)


def roofline(part: Part, card: Card) -> float:
    """Seconds at the bare datasheet: the larger of arithmetic and traffic, nothing else."""
    return max(at_datasheet(part, card))


def at_datasheet(part: Part, card: Card) -> tuple[float, float]:
    """Seconds of the arithmetic and of the traffic of all kernels of a part, each at the datasheet's rate."""
    peak = hardware.datasheet_peak(card, part.unit, part.dtype)
    bandwidth = card.memory_bandwidth_bytes_per_second
    compute = part.flops / peak if peak and part.flops else 0.0
    memory = part.bytes / bandwidth if bandwidth else 0.0
    return part.times * compute, part.times * memory
