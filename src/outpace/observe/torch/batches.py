"""How many samples a batch holds, and which batches of a data loader have been used."""

from __future__ import annotations

from collections import deque
from collections.abc import Mapping
from typing import Any

import torch


class Pass:
    """One pass over a data loader.

    Args:
        length: batches in the pass, if the loader knows.
    """

    def __init__(self, length: int | None) -> None:
        self.length = length
        self.trained = False
        """Gradients were computed of its batches: it is an epoch, not an evaluation."""
        self.unused: deque[int | None] = deque(maxlen=64)
        """Sizes of the batches fetched and not yet used. A loader may run ahead of the training."""


def size(batch: Any) -> int | None:
    """The leading dimension of the first tensor in *batch* (nested lists, tuples, mappings)."""
    if isinstance(batch, torch.Tensor):
        return batch.shape[0] if batch.dim() else None
    if isinstance(batch, Mapping):
        batch = batch.values()
    elif not isinstance(batch, (list, tuple)):
        return None
    for item in batch:
        found = size(item)
        if found is not None:
            return found
    return None
