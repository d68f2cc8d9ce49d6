"""What a prediction can be asked with, checked."""

from __future__ import annotations

import math

import msgspec

from outpace.errors import UsageError
from outpace.prediction.launches import MODES
from outpace.prediction.precision import PRECISIONS


class Options(msgspec.Struct, frozen=True, kw_only=True):
    """All that changes a prediction besides the trace and the card."""

    precision: str = "as written"
    mode: str | None = None
    """How calls are launched; ``None``: as the trace says."""
    host_microseconds: float | None = None
    """What the host needs for the smallest call, as `outpace measure` says (``launch_seconds``)."""
    power_limit_watts: float | None = None
    samples: int | None = None
    epochs: float | None = None
    epoch_samples: int | None = None
    usd_per_kwh: float = 0.0
    stack: str | None = None
    largest_batch: bool = False

    def check(self) -> None:
        """That every value makes sense.

        Raises:
            UsageError: one does not.
        """
        if self.precision not in PRECISIONS:
            raise UsageError(f"unknown precision {self.precision!r}", f"one of {', '.join(PRECISIONS)}")
        if self.mode is not None and self.mode not in MODES:
            raise UsageError(f"unknown mode {self.mode!r}", f"one of {', '.join(MODES)}")
        if self.samples is not None and self.epochs is not None:
            raise UsageError("--samples and --epochs say the same", "give one of them")
        if self.epochs is not None and self.epoch_samples is None:
            raise UsageError(
                "how many samples an epoch has is not known here", "--epoch-samples N, or --samples N of all"
            )
        for name, value in (
            ("samples", self.samples),
            ("epochs", self.epochs),
            ("epoch-samples", self.epoch_samples),
            ("host-us", self.host_microseconds),
            ("power-limit", self.power_limit_watts),
        ):
            if value is not None and not (math.isfinite(value) and value > 0):
                raise UsageError(f"--{name} {value:g} is not a positive number")
        if not (math.isfinite(self.usd_per_kwh) and self.usd_per_kwh >= 0):
            raise UsageError(f"--usd-per-kwh {self.usd_per_kwh:g} is not a price")

    @property
    def all_samples(self) -> int | None:
        """Of the whole training, where it was told."""
        if self.epochs is not None and self.epoch_samples is not None:
            return round(self.epochs * self.epoch_samples)
        return self.samples

    def host_scale(self, smallest_call_seconds: float) -> float:
        """Of the host that was given over the one of the coefficients."""
        if self.host_microseconds is None:
            return 1.0
        return self.host_microseconds * 1e-6 / smallest_call_seconds
