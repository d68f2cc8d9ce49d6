"""cuDNN tries its convolution kernels at the first step and takes the fastest."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

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
    return _Autotuned(tell)


class _Autotuned(Part):
    def __init__(self, tell: Tell) -> None:
        self._tell = tell
        self._before = False

    def on(self) -> None:
        import torch

        self._before = torch.backends.cudnn.benchmark
        torch.backends.cudnn.benchmark = True
        self._tell("cuDNN tries its kernels")

    def off(self, models: Iterable[Any]) -> None:
        import torch

        torch.backends.cudnn.benchmark = self._before
