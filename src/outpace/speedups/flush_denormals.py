"""Numbers too small for the hardware's fast path count as zero."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from outpace.errors import OutpaceError
from outpace.speedups import Part, Tell

SLOT = "denormals"
EFFECT = "rounding"
LINES = "torch.set_flush_denormal(True)"


def torch(tell: Tell) -> Part:
    """In PyTorch.

    Raises:
        OutpaceError: this CPU cannot.
    """
    import torch

    if not torch.set_flush_denormal(False):
        raise OutpaceError("this CPU cannot flush denormal numbers")
    return _Flushed(tell)


class _Flushed(Part):
    def __init__(self, tell: Tell) -> None:
        self._tell = tell

    def on(self) -> None:
        import torch

        torch.set_flush_denormal(True)
        self._tell("denormal numbers are flushed to zero")

    def off(self, models: Iterable[Any]) -> None:
        import torch

        torch.set_flush_denormal(False)
