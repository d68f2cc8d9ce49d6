"""Batches of a TensorDataset taken by one indexing instead of sample by sample, in the same order."""

from __future__ import annotations

import weakref
from collections.abc import Iterable
from typing import Any

from outpace.speedups import Part, Tell

SLOT = "data"
EFFECT = "same"
LINES = """order = torch.randperm(len(images))
for rows in order.split(batch_size):
    inputs, targets = images[rows], labels[rows]"""


def torch(tell: Tell) -> Part:
    """In PyTorch."""
    return _Indexed(tell)


class _Indexed(Part):
    def __init__(self, tell: Tell) -> None:
        self._tell = tell
        self._own: weakref.WeakKeyDictionary[Any, Any] = weakref.WeakKeyDictionary()
        """What fetches for each iterator without us."""

    def off(self, models: Iterable[Any]) -> None:
        for iterator, fetcher in self._own.items():
            iterator._dataset_fetcher = fetcher
        self._own.clear()

    def batches(self, loader: Any, iterator: Any) -> None:
        fetcher: Any = getattr(iterator, "_dataset_fetcher", None)  # of workers there is none
        self.reason = why_not(loader, fetcher)
        if self.reason is None:
            self._own[iterator] = fetcher
            iterator._dataset_fetcher = _Fetcher(fetcher.dataset)
            self._tell("batches are taken by indexing")


def why_not(loader: Any, fetcher: Any) -> str | None:
    """Why batches of *loader* cannot be indexed."""
    from torch.utils.data import Subset, TensorDataset, default_collate

    dataset = loader.dataset
    while type(dataset) is Subset:
        dataset = dataset.dataset
    if type(dataset) is not TensorDataset:
        return f"the samples come from {type(dataset).__name__}, not from a TensorDataset"
    if fetcher is None:
        return "the batches are fetched by worker processes"
    if loader.collate_fn is not default_collate or not fetcher.auto_collation:
        return "the script makes its batches itself (collate_fn, or no batch size)"
    return None


class _Fetcher:
    """Stands in for PyTorch's own."""

    def __init__(self, dataset: Any) -> None:
        from torch.utils.data import Subset

        self._subsets = []
        while type(dataset) is Subset:
            self._subsets.append(dataset.indices)
            dataset = dataset.dataset
        self._tensors = dataset.tensors

    def fetch(self, rows: Any) -> list[Any]:
        """The batch of *rows*."""
        import torch

        for indices in self._subsets:
            rows = [indices[row] for row in rows]
        index = torch.as_tensor(rows)
        return [tensor[index.to(tensor.device)] for tensor in self._tensors]
