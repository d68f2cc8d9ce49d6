"""cuDNN tries its convolution kernels at the first step and takes the fastest."""

from __future__ import annotations

from outpace.errors import OutpaceError
from outpace.speedups import Part, Tell

SLOT = "kernels"
EFFECT = "rounding"
LINES = "torch.backends.cudnn.benchmark = True"


def torch(tell: Tell) -> Part:
    """In PyTorch.

    Raises:
        OutpaceError: there is no cuDNN.
    """
    import torch

    if not (torch.cuda.is_available() and torch.backends.cudnn.is_available()):  # type: ignore[no-untyped-call]
        raise OutpaceError("cuDNN is not here")
    torch.backends.cudnn.benchmark = True
    tell("cuDNN tries its kernels")
    return Part()
