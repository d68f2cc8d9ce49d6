"""Small pieces of work for a device, to measure what it can do at best."""

from __future__ import annotations

from collections.abc import Callable

import torch

from outpace import host
from outpace.observe.torch.places import synchronize

DTYPES = {
    "fp32": torch.float32,
    "bf16": torch.bfloat16,
    "fp16": torch.float16,
    "fp64": torch.float64,
}


class Work:
    """See `outpace.ceilings.Bench`."""

    dtypes: tuple[str, ...] = ("fp32", "tf32", "bf16", "fp16", "fp64")

    def __init__(self, device: str) -> None:
        self.name = f"torch {torch.__version__}"
        self._device = torch.device(device)
        self.memory_bytes = host.memory_bytes()
        if self._device.type in ("cuda", "xpu"):
            self.memory_bytes = getattr(torch, self._device.type).mem_get_info(self._device.index or 0)[0]
        if self._device.type != "cuda":
            self.dtypes = ("fp32", "bf16", "fp16", "fp64")

    def product(self, dtype: str, size: int) -> Callable[[], object]:
        """A product of two square matrices."""
        if self._device.type == "cuda":
            torch.backends.cuda.matmul.allow_tf32 = dtype == "tf32"
        kind = DTYPES.get(dtype, torch.float32)
        a = torch.rand(size, size, device=self._device).to(kind)
        b = torch.rand(size, size, device=self._device).to(kind)
        out = torch.empty_like(a)
        return lambda: torch.mm(a, b, out=out)

    def copy(self, size_bytes: int) -> Callable[[], object]:
        """Reads half of *size_bytes* and writes the other half."""
        a = torch.zeros(size_bytes // 8, device=self._device)
        out = torch.empty_like(a)
        return lambda: out.copy_(a)

    def tiny(self) -> Callable[[], object]:
        """The smallest operator."""
        a = torch.zeros(1, device=self._device)
        return lambda: a.add_(1.0)

    def wait(self) -> None:
        """Until the device is through."""
        synchronize()
