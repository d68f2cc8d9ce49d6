"""torch.compile: operators fused into kernels made for this model and these shapes."""

from __future__ import annotations

import weakref
from collections.abc import Callable
from typing import Any

from outpace.speedups import Part, Tell

SLOT = "compile"
EFFECT = "rounding"
LINES = "model = torch.compile(model)"


def torch(tell: Tell) -> Part:
    """In PyTorch."""
    return _Compiled(tell)


class _Compiled(Part):
    def __init__(self, tell: Tell) -> None:
        self._tell = tell
        self._compiled: weakref.WeakKeyDictionary[Any, Callable[..., Any]] = weakref.WeakKeyDictionary()

    def around(self, module: Any, call: Callable[..., Any]) -> Callable[..., Any]:
        import torch

        if module not in self._compiled:
            self._compiled[module] = torch.compile(call)
        return self._compiled[module]

    def leave(self, module: Any, result: Any) -> Any:
        from torch._dynamo.utils import counters

        if module not in self._compiled:
            return result
        graphs = counters["stats"]["unique_graphs"]
        if graphs:
            self._tell(
                f"{graphs} graph{'s' if graphs > 1 else ''} compiled, "
                f"{sum(counters['graph_break'].values())} graph breaks"
            )
        else:
            self.reason = "no graph could be compiled"
        return result
