"""bfloat16 where PyTorch's autocast holds it to be safe: the models and the loss, never the optimizer."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from outpace.speedups import Part, Tell

SLOT = "precision"
EFFECT = "rounding"
WITH = ("channels-last",)
LINES = """with torch.autocast(device.type, dtype=torch.bfloat16):
    loss = loss_function(model(inputs), targets)
loss.backward()"""


def torch(tell: Tell) -> Part:
    """In PyTorch."""
    return _Autocast(tell)


class _Autocast(Part):
    """From the call of a model in training until its loss is there.

    It ends before anything that is not known to belong to the step: casts of weights that autocast keeps from
    a call without gradients would have no gradient in a later call with them.
    """

    def __init__(self, tell: Tell) -> None:
        self._tell = tell
        self._context: Any = None

    def enter(self, module: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> tuple[Any, Any]:
        import torch

        if self._context is None:
            parameter = next(module.parameters(), None)
            if parameter is None:
                return args, kwargs
            kind = parameter.device.type
            if torch.is_autocast_enabled(kind):
                self.reason = "the script chooses its precision itself (torch.autocast)"
                return args, kwargs
            self._context = torch.autocast(kind, dtype=torch.bfloat16)
            self._context.__enter__()
        return args, kwargs

    def leave(self, module: Any, result: Any) -> Any:
        import torch
        from torch.utils._pytree import tree_map_only

        if self._context is None:
            return result
        self._tell(f"{type(module).__name__} runs under autocast to bfloat16")

        def wide(tensor: torch.Tensor) -> torch.Tensor:
            return tensor.float() if tensor.dtype == torch.bfloat16 else tensor

        return tree_map_only(torch.Tensor, wide, result)  # what a script may do with fp32 only, it can

    def off(self, models: Iterable[Any]) -> None:
        self.loss_ready()

    def loss_ready(self) -> None:
        if self._context is not None:
            context, self._context = self._context, None
            context.__exit__(None, None, None)
