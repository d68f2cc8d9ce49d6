"""How far off a prediction may be: from how well each rate is known, widened until it covered what it says.

Errors are shared within a card (its sustained clock and bandwidth), so the width comes from the standard
deviations of the rates that the step depends on, each by its share, and the factor that scales it was
calibrated card by card on cards left out of the fit.
"""

from __future__ import annotations

import math
from collections.abc import Mapping

from outpace.records.prediction import Interval

#: Of a normal distribution: half-width of the interval that holds nine of ten.
NOMINAL = 0.9
_Z = 1.6449


def step_sd(
    by_rate: Mapping[str, float], sd: Mapping[str, float], *, model: float, launching: float, host: float
) -> float:
    """Standard deviation of the logarithm of a step's time.

    Args:
        by_rate: share of the kernels that depends on each sustained rate.
        sd: standard deviation of the logarithm of each rate.
        model: of what differs from model to model.
        launching: share of the step that host launches take.
        host: standard deviation of the logarithm of the host's cost.
    """
    rates = math.hypot(*(share * sd.get(name, 0.0) for name, share in by_rate.items())) if by_rate else 0.0
    on_card = math.hypot(rates, model)
    return math.hypot((1 - launching) * on_card, launching * host)


def around(middle: float, sd: float, widen: float = 1.0) -> Interval:
    """The interval of *middle*, whose logarithm has this standard deviation; *widen* was calibrated."""
    factor = math.exp(_Z * sd * widen)
    return Interval(low=middle / factor, mid=middle, high=middle * factor)


def inflated(interval: Interval, factor: float) -> Interval:
    """*interval* with its half-widths, as ratios, to the power of *factor*."""
    return Interval(
        low=interval.mid * (interval.low / interval.mid) ** factor,
        mid=interval.mid,
        high=interval.mid * (interval.high / interval.mid) ** factor,
    )
