"""The loss of a step out of what Keras tells, and how many samples a batch holds."""

from __future__ import annotations

from typing import Any


class EpochMean:
    """Keras reports the mean loss of the epoch so far; the loss of a step is what it adds to that."""

    def __init__(self) -> None:
        self.samples = 0
        self.mean = 0.0
        self.full: int | None = None
        self.reported = 0

    def loss(self, value: Any, samples: int, *, raw: bool) -> Reported:
        """The loss of a step of *samples* samples after which Keras reports *value*.

        Args:
            raw: *value* is the loss of the step itself.
        """
        self.reported += 1
        if self.full is None and samples:
            self.full = samples
        return Reported(self, value, samples, self.reported, raw=raw)


class Reported:
    """A loss that is read when its value is ready; in the order of the steps, once each."""

    def __init__(self, epoch: EpochMean, value: Any, samples: int, index: int, *, raw: bool) -> None:
        self._epoch = epoch
        self._value = value
        self._samples = samples
        self._index = index
        self._raw = raw

    def ready(self) -> bool:
        """JAX tells; for the others a step is over when the next one has been reported."""
        ask = getattr(self._value, "is_ready", None)
        return bool(ask()) if callable(ask) else self._epoch.reported > self._index

    def __float__(self) -> float:
        mean = float(self._value)
        if self._raw or not self._samples:
            return mean
        epoch = self._epoch
        before = epoch.mean * epoch.samples
        epoch.samples += self._samples
        epoch.mean = mean
        return (mean * epoch.samples - before) / self._samples


def leading_size(batch: Any) -> int | None:
    """The leading dimension of the first array in *batch* (nested lists, tuples, dicts)."""
    shape = getattr(batch, "shape", None)
    if shape is not None:
        return _whole(shape[0]) if len(shape) else None
    if isinstance(batch, dict):
        batch = batch.values()
    elif not isinstance(batch, (list, tuple)):
        return None
    for item in batch:
        size = leading_size(item)
        if size is not None:
            return size
    return None


def _whole(value: Any) -> int | None:
    try:
        return int(value)
    except (TypeError, ValueError):
        return None
