"""What another card would bring for a training."""

from __future__ import annotations

import msgspec

#: How a prediction came about, from the least to the most that is known of the card.
BASES = ("roofline", "datasheet", "calibrated", "measured")

#: What can limit a step.
LIMITS = (
    "matrix units",
    "vector units",
    "memory bandwidth",
    "host launches",
    "data",
    "interconnect",
)


class Interval(msgspec.Struct, frozen=True, kw_only=True):
    """A value and the interval that holds it with the probability that `Prediction.interval` names."""

    low: float
    mid: float
    high: float

    def times(self, factor: float) -> Interval:
        """Low, middle and high, each times a positive *factor*."""
        return Interval(low=self.low * factor, mid=self.mid * factor, high=self.high * factor)

    def into(self, amount: float) -> Interval:
        """*amount* divided by it: samples per second of the seconds of a step."""
        return Interval(low=amount / self.high, mid=amount / self.mid, high=amount / self.low)


class MostBatch(msgspec.Struct, frozen=True, kw_only=True):
    """The largest batch that fits with a reserve."""

    samples: int
    peak_bytes: float
    reserve_bytes: float


class Prediction(msgspec.Struct, frozen=True, kw_only=True, tag_field="record", tag="prediction"):
    """One training on one kind of card. See ``docs/predict.md``."""

    version: int = 1
    outpace: str
    target: str
    card: str
    cards: int = 1
    """That train together, data parallel; times are of one step of all, samples of all."""
    precision: str
    """``as written``, ``fp32``, ``tf32``, ``fp16-amp`` or ``bf16-amp``."""
    stack: str
    """The software that the prediction assumes."""
    samples: int | None = None
    """In one step, of all cards."""
    missing_because: str | None = None
    """Why there is no prediction; then all figures are ``None``."""

    step_seconds: Interval | None = None
    samples_per_second: Interval | None = None
    peak_bytes: Interval | None = None
    """Of one card."""
    fits: str | None = None
    """``yes``, ``no`` or ``tight``: whether the memory of the card is enough."""
    largest_batch: MostBatch | None = None
    joules_per_sample: Interval | None = None
    watts: Interval | None = None
    """Mean power of one card."""
    usd: Interval | None = None
    """For ``usd_samples`` samples: renting the card, and electricity where its price was given."""
    usd_samples: int | None = None
    usd_per_hour: float | None = None
    """Of one card, and where it was found in ``price_source``."""
    price_source: str | None = None
    total_seconds: Interval | None = None
    """For the samples or epochs that were asked for."""

    limited_by: str | None = None
    """What takes the largest share of the step: one of `LIMITS`."""
    shares: dict[str, float] = {}
    """Of the step, by limit; they add up to one."""
    basis: str = "datasheet"
    """``measured`` on this card, ``calibrated`` with measurements of others on it, ``datasheet``,
    ``roofline``."""
    interval: float = 0.9
    """Nominal coverage of every interval."""
    advice: str | None = None
    """What limits the step, and what to change first."""
    warnings: list[str] = []
