"""Products of fp32 matrices on the matrix units, in TensorFloat-32."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from outpace.errors import OutpaceError
from outpace.speedups import Part, Tell

SLOT = "products"
EFFECT = "rounding"
LINES = 'torch.set_float32_matmul_precision("high")'


def torch(tell: Tell) -> Part:
    """In PyTorch.

    Raises:
        OutpaceError: no card here has it.
    """
    import torch

    if not torch.cuda.is_available() or torch.version.hip or torch.cuda.get_device_capability() < (8, 0):
        raise OutpaceError("no NVIDIA card of compute capability 8.0 or more is here")
    return _TF32(tell)


class _TF32(Part):
    def __init__(self, tell: Tell) -> None:
        self._tell = tell
        self._before = "highest"

    def on(self) -> None:
        import torch

        self._before = torch.get_float32_matmul_precision()
        torch.set_float32_matmul_precision("high")
        self._tell("fp32 matrix products may use TF32")

    def off(self, models: Iterable[Any]) -> None:
        import torch

        torch.set_float32_matmul_precision(self._before)
