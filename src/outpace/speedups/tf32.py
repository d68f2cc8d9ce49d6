"""Products of fp32 matrices on the matrix units, in TensorFloat-32."""

from __future__ import annotations

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
    torch.set_float32_matmul_precision("high")
    tell("fp32 matrix products may use TF32")
    return Part()
