"""How many samples a batch holds, and how those of several steps divide into them."""

from __future__ import annotations

import time
from collections.abc import Iterator
from typing import Any


def leading_size(batch: Any) -> int | None:
    """The leading dimension of the first array in *batch* (nested lists, tuples, dicts, replicas' shares)."""
    if type(batch).__name__ == "PerReplica":  # of a tf.distribute strategy
        return sum(size for share in batch.values if (size := leading_size(share))) or None
    shape = getattr(batch, "shape", None)
    if shape is not None:
        try:
            return int(shape[0]) if len(shape) else None
        except (TypeError, ValueError):  # not known before the graph runs
            return None
    if isinstance(batch, dict):
        batch = batch.values()
    elif not isinstance(batch, (list, tuple)):
        return None
    return next((size for item in batch if (size := leading_size(item)) is not None), None)


def static_size(iterator: Any) -> int | None:
    """The samples per batch that an iterator of a graph promises, if it does."""
    return leading_size(getattr(iterator, "element_spec", None))


def split(samples: int, steps: int, largest: int) -> list[int | None]:
    """*samples* of one execution over its *steps*: full batches of *largest*, the rest in the last one.

    Batches of many sizes cannot be told apart any more; they are taken as equal.
    """
    if steps < 1:
        return []
    last = samples - (steps - 1) * largest
    if 0 < last <= largest:
        return [*[largest] * (steps - 1), last]
    even, more = divmod(samples, steps)
    return [even + (index < more) for index in range(steps)]


class Counted:
    """An iterator that keeps the sizes of what went through it."""

    def __init__(self, batches: Iterator[Any]) -> None:
        self._batches = batches
        self.seconds = 0.0
        """How long it took to get them."""
        self.sizes: list[int | None] = []

    def __iter__(self) -> Counted:
        return self

    def __next__(self) -> Any:
        began = time.perf_counter()
        batch = next(self._batches)
        self.seconds += time.perf_counter() - began
        self.sizes.append(leading_size(batch))
        return batch
