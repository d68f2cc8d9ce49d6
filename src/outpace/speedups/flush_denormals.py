"""Numbers too small for the hardware's fast path count as zero."""

from __future__ import annotations

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

    if not torch.set_flush_denormal(True):
        raise OutpaceError("this CPU cannot flush denormal numbers")
    tell("denormal numbers are flushed to zero")
    return Part()
