"""What a card sustains of its datasheet, and how sure that is."""

from __future__ import annotations

import functools
import math
from typing import NamedTuple

from outpace.cards import load
from outpace.prediction.coefficients import Coefficients, Power, Sustained
from outpace.records import Card

CAP_SHARPNESS = 8.0
#: How much of what the nearest architecture differs from the mean an unseen one is taken to share.
NEAREST = 0.5


class Rate(NamedTuple):
    """A rate per second, and the standard deviation of its logarithm."""

    value: float
    sd: float
    basis: str
    """``calibrated``: this very card was measured; ``datasheet``: others like it; ``roofline``: none like
    it."""


def key_of(unit: str, dtype: str) -> str:
    """Which entry of `Coefficients.peaks` is about this unit and dtype."""
    if unit == "vector":
        return "vector fp32"
    return f"matrix {'fp16' if dtype in ('fp16', 'bf16') else dtype}"


def datasheet_peak(card: Card, unit: str, dtype: str) -> float | None:
    """FLOPs per second of the datasheet; ``None``: the card computes no such thing.

    Vector units compute 16-bit types at least at their fp32 rate: kernels load 16 and compute 32 bits.
    """
    if unit == "matrix":
        return card.matrix_flops_per_second.get(dtype)
    vector = card.vector_flops_per_second
    single = vector.get("fp32") or _matrix_only(card)
    if dtype in ("fp16", "bf16"):
        # the doubled rates are of packed instructions, which training kernels of vector units do not use
        return single
    if dtype == "fp64":
        return vector.get("fp64")
    return single


def _matrix_only(card: Card) -> float | None:
    # V100-SXM3's datasheet has no vector peak: lanes x 2 x clock
    if card.vector_cores and card.clock_boost_hertz:
        return 2.0 * card.vector_cores * card.clock_boost_hertz
    fastest = card.vector_flops_per_second.get("bf16")
    return fastest or None


def fed(card: Card, unit: str, dtype: str, feed: float) -> float:
    """Share of the matrix peak that registers and caches can feed: 1 / (1 + FLOPs per clock and unit / feed).

    The more a multiprocessor can compute per clock, the smaller the share that its shared memory and its
    registers
    keep busy: cards with a halved rate (GeForce) come closer to their peak than those without.
    """
    per_clock = flops_per_clock(card, unit, dtype)
    return 1.0 if per_clock is None else 1.0 / (1.0 + per_clock / feed)


def flops_per_clock(card: Card, unit: str, dtype: str) -> float | None:
    """Of one multiprocessor's matrix units, in 16-bit terms; ``None`` of vector units, or where it is not
    known."""
    peak = datasheet_peak(card, unit, dtype)
    if unit != "matrix" or peak is None or not card.units:
        return None
    clock = card.clock_boost_hertz
    if not clock and card.vector_cores and card.vector_flops_per_second.get("fp32"):
        clock = card.vector_flops_per_second["fp32"] / (2.0 * card.vector_cores)
    if not clock:
        return None
    wide = {"tf32": 2.0, "fp32": 2.0, "fp64": 4.0, "fp8": 0.5, "int8": 0.5}.get(dtype, 1.0)
    return float(wide * peak / (card.units * clock))


def power_ratio(card: Card, power: Power, *, limit_watts: float | None = None) -> float | None:
    """Watts that a card may draw over those that it needs to hold its clock; ``None``: not known."""
    watts = limit_watts or card.board_power_watts
    clock = card.clock_boost_hertz
    if not (watts and card.vector_cores and clock):
        return None
    lanes = card.vector_cores / 1000 * clock / 1e9
    shrink = ((card.process_nm or 12.0) / 12.0) ** power.process
    return float(watts / (power.watts * lanes * shrink))


def power_term(card: Card, power: Power, *, limit_watts: float | None = None) -> float:
    """Logarithm of the clock that a power limit leaves, 0 where it is no limit.

    A smooth hinge: ``-exponent x log(1 + 1 / ratio^4) / 4``; P ~ f V^2 with V falling along f gives an
    exponent between a third and one.
    """
    ratio = power_ratio(card, power, limit_watts=limit_watts)
    if ratio is None:
        return 0.0
    return -power.exponent * math.log1p(ratio**-4) / 4


@functools.cache
def _first_years() -> dict[tuple[str, str], int]:
    years: dict[tuple[str, str], int] = {}
    for card in load().values():
        key = (card.vendor, card.architecture)
        years[key] = min(card.year, years.get(key, card.year))
    return years


def nearest(card: Card, known: tuple[str, ...]) -> str | None:
    """Of the *known* architectures the one of the same vendor that is closest in years, if there is any."""
    years = _first_years()
    own = years.get((card.vendor, card.architecture), card.year)
    there = [name for name in known if (card.vendor, name) in years]
    return min(there, key=lambda name: (abs(years[card.vendor, name] - own), name), default=None)


def sustained(card: Card, known: Sustained, *, powered: float) -> tuple[float, float, str]:
    """(logarithm of the share of the datasheet, its standard deviation, basis)."""
    log = known.mean + powered
    if card.name in known.cards:
        architecture = known.architectures.get(card.architecture, 0.0)
        return log + architecture + known.cards[card.name], known.sd["seen"], "calibrated"
    if card.architecture in known.architectures:
        return log + known.architectures[card.architecture], known.sd["card"], "datasheet"
    near = nearest(card, tuple(known.architectures))
    log += NEAREST * known.architectures.get(near or "", 0.0)
    both = math.hypot(known.sd["architecture"], known.sd["card"])
    basis = "datasheet" if card.vendor in known.vendors else "roofline"
    return log, both if basis == "datasheet" else 2 * both, basis


def peak(card: Card, unit: str, dtype: str, coefficients: Coefficients) -> Rate | None:
    """What *card* sustains in arithmetic; ``None``: its datasheet has no such rate."""
    datasheet = datasheet_peak(card, unit, dtype)
    if datasheet is None:
        return None
    known = coefficients.peaks.get(key_of(unit, dtype)) or coefficients.peaks["vector fp32"]
    powered = power_term(card, coefficients.power)
    log, sd, basis = sustained(card, known, powered=powered)
    log += math.log(fed(card, unit, dtype, coefficients.feed))
    return Rate(datasheet * math.exp(capped(log)), sd, basis)


def capped(log: float) -> float:
    """The logarithm of a share, softly kept below that of one: nothing sustains more than its datasheet."""
    return log - math.log1p(math.exp(CAP_SHARPNESS * log)) / CAP_SHARPNESS


def bandwidth(card: Card, coefficients: Coefficients) -> Rate | None:
    """What *card* sustains in moving data; ``None``: its datasheet has no bandwidth."""
    datasheet = card.memory_bandwidth_bytes_per_second
    if not datasheet:
        return None
    log, sd, basis = sustained(card, coefficients.bandwidth, powered=0.0)
    return Rate(datasheet * math.exp(log), sd, basis)


def cache_factor(card: Card, touched: float, boost: float) -> float:
    """How much faster than memory *touched* bytes move because some of them are still in the last cache."""
    cache = card.last_level_cache_bytes or card.l2_bytes or 4 * 2**20
    return 1.0 + boost * cache / (cache + touched)
