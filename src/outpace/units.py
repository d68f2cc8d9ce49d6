"""Quantities as text, and back. SI inside, pretty units at the edge; the only conversion factors."""

from __future__ import annotations

KIB, MIB, GIB = 2**10, 2**20, 2**30
KILO, MEGA, GIGA, TERA = 1e3, 1e6, 1e9, 1e12

_SECONDS = ((1.0, "s"), (1e-3, "ms"), (1e-6, "µs"), (1e-9, "ns"))


def seconds(value: float) -> str:
    """A duration: ``12.3 ms``, ``1.25 s``, ``2 min 05 s``, ``1 h 02 min``."""
    if value >= 3600:
        minutes = round(value / 60)
        return f"{minutes // 60} h {minutes % 60:02d} min"
    if value >= 60:
        whole = round(value)
        return f"{whole // 60} min {whole % 60:02d} s" if whole < 3600 else "1 h 00 min"
    for scale, unit in _SECONDS:
        if value >= scale * 0.9995:  # rounds up to one of the larger unit
            return f"{significant(value / scale)} {unit}"
    return "0 s" if value == 0 else f"{significant(value * 1e9)} ns"


def byte_count(value: float) -> str:
    """A size in binary units, as drivers and frameworks count: ``412 MiB``, ``79.6 GiB``."""
    for scale, unit in ((GIB, "GiB"), (MIB, "MiB"), (KIB, "KiB")):
        if value >= scale:
            return f"{significant(value / scale)} {unit}"
    return f"{value:.0f} B"


def per_second(value: float, what: str) -> str:
    """A rate of things: ``4,870 samples/s``, ``3.21 samples/s``."""
    return f"{significant(value)} {what}/s"


def si(value: float, unit: str) -> str:
    """A value with an SI prefix: ``si(312e12, "FLOP/s") == "312 TFLOP/s"``."""
    for scale, prefix in ((1e15, "P"), (TERA, "T"), (GIGA, "G"), (MEGA, "M"), (KILO, "k")):
        if abs(value) >= scale:
            return f"{significant(value / scale)} {prefix}{unit}"
    return f"{significant(value)} {unit}"


def significant(value: float, digits: int = 3) -> str:
    """*digits* significant digits, whole numbers with thousands separators, no exponent."""
    value = float(f"{value:.{digits}g}") if abs(value) < 10**digits else value
    if value == 0:
        return "0"
    magnitude = len(str(int(abs(value)))) if abs(value) >= 1 else 0
    if magnitude >= digits:
        return f"{value:,.0f}"
    if magnitude:
        return f"{value:.{digits - magnitude}f}"
    return f"{value:#.{digits}g}"
