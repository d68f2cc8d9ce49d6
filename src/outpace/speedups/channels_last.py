"""Images and convolution weights stored channel after channel of each pixel, as the kernels compute them."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from outpace.speedups import Part, Tell

SLOT = "layout"
EFFECT = "rounding"
LINES = """model = model.to(memory_format=torch.channels_last)
inputs = inputs.to(memory_format=torch.channels_last)"""


def torch(tell: Tell) -> Part:
    """In PyTorch."""
    return _ChannelsLast(tell)


class _ChannelsLast(Part):
    def __init__(self, tell: Tell) -> None:
        self._tell = tell
        self.reason = "no model has a convolution of images"

    def model(self, module: Any) -> None:
        import torch

        formats = {4: torch.channels_last, 5: torch.channels_last_3d}
        for kind in {parameter.dim() for parameter in module.parameters()} & formats.keys():
            module.to(memory_format=formats[kind])
            self._tell(f"the weights of {type(module).__name__} are in {str(formats[kind])[6:]}")

    def off(self, models: Iterable[Any]) -> None:
        import torch

        for module in models:
            module.to(memory_format=torch.contiguous_format)

    def enter(self, module: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> tuple[Any, Any]:
        import torch
        from torch.utils._pytree import tree_map_only

        formats = {4: torch.channels_last, 5: torch.channels_last_3d}

        def stored(tensor: torch.Tensor) -> torch.Tensor:
            if tensor.dim() in formats and tensor.is_floating_point():
                return tensor.contiguous(memory_format=formats[tensor.dim()])
            return tensor

        return tree_map_only(torch.Tensor, stored, args), tree_map_only(torch.Tensor, stored, kwargs)
