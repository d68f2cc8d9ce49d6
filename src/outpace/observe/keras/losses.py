"""Reads values of a step without making the training wait, and the loss of a step out of a running mean."""

from __future__ import annotations

import concurrent.futures
import functools
from typing import Any


class Later:
    """A scalar, or the mean of an array, that a thread beside the training fetches from its device."""

    def __init__(self, value: Any) -> None:
        self._future = _reader().submit(number, value)

    def ready(self) -> bool:
        """Whether the value has arrived."""
        return self._future.done()

    def __float__(self) -> float:
        return self._future.result()


class Total:
    """The sum of the losses of one step."""

    def __init__(self, losses: list[Any]) -> None:
        self._losses = losses

    def ready(self) -> bool:
        """Whether all of them have arrived."""
        return all(loss.ready() for loss in self._losses if isinstance(loss, Later))

    def __float__(self) -> float:
        return sum(map(float, self._losses))


@functools.cache
def _reader() -> concurrent.futures.ThreadPoolExecutor:
    return concurrent.futures.ThreadPoolExecutor(1, thread_name_prefix="losses")


def held(value: Any) -> Any:
    """*value* as a loss that can be kept: at once a number if it lies in the computer's own memory."""
    return number(value) if on_cpu(value) else Later(value)


def on_cpu(value: Any) -> bool:
    """Whether reading *value* waits for no accelerator. JAX computes beside Python even on the CPU."""
    if hasattr(value, "is_ready"):
        return bool(value.is_ready())
    return "cpu" in str(getattr(value, "device", "cpu")).lower()


def number(value: Any) -> float:
    """A scalar of any framework, or the mean of an array, as a number."""
    if hasattr(value, "detach"):
        value = value.detach().float().cpu()
    if getattr(value, "shape", ()):
        import numpy

        return float(numpy.mean(numpy.asarray(value)))
    return float(value)


class EpochMean:
    """The mean of an epoch so far; the loss of a step is what it adds to that."""

    def __init__(self) -> None:
        self._samples = 0
        self._sum = 0.0

    def own(self, mean: float, samples: int) -> float | None:
        """The mean loss of the latest *samples* samples, after which the epoch's is *mean*."""
        if not samples:
            return None
        self._samples += samples
        before, self._sum = self._sum, mean * self._samples
        return (self._sum - before) / samples
