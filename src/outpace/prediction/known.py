"""What measurements on the target card say about it: corrections of its rates, shrunk."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import NamedTuple

import msgspec

from outpace.prediction.step import Step


class Correction(NamedTuple):
    """What measurements gave.

    ``log_rates`` multiplies rates (see `step.of_operators`), ``host_scale`` the host; ``sd`` is what is left
    of the uncertainty of each rate.
    """

    log_rates: dict[str, float]
    host_scale: float
    sd: dict[str, float]


class Seen(msgspec.Struct, frozen=True):
    """One measurement on the target card, and what was predicted for it without."""

    measured_seconds: float
    step: Step


NOTHING = Correction({}, 1.0, {})


def correction(seen: Sequence[Seen], sd: Mapping[str, float], model_sd: float) -> Correction:
    """The rates that explain what was measured best, given how sure each was before (a Kalman update by
    hand).

    The log of measured over predicted time is minus the sum over rates of share x correction. With one
    measurement each rate is corrected in proportion to its share and its variance.
    """
    rates = {name: 0.0 for one in seen for name in one.step.by_rate}
    left = {name: sd.get(name, 0.1) ** 2 for name in rates}
    host = 0.0
    for one in seen:
        step = one.step
        launching = step.shares.get("host launches", 0.0)
        gap = math.log(one.measured_seconds / step.seconds) + sum(
            (1 - launching) * step.by_rate[name] * rates[name] for name in step.by_rate
        )
        if launching > 0.5:
            host += 0.8 * gap / launching / len(seen)
            continue
        weights = {name: (1 - launching) * share for name, share in step.by_rate.items()}
        total = sum(weight**2 * left[name] for name, weight in weights.items())
        noise = model_sd**2
        for name, weight in weights.items():
            gain = left[name] * weight / (total + noise)
            rates[name] -= gain * gap
            left[name] *= 1 - gain * weight
    return Correction(
        rates, math.exp(host), {name: math.sqrt(max(value, 1e-4)) for name, value in left.items()}
    )
