"""Puts a script's work on the device that was asked for, without an edit to the script.

`Placement` serves scripts that never leave the CPU: it moves models, batches and whatever else meets them.
`Substitution` serves scripts that name ``cuda`` on a machine that has none: they get the CPU instead.
"""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any

import torch
from torch.overrides import TorchFunctionMode
from torch.utils._pytree import tree_map_only

_TO_NUMPY = (torch.Tensor.numpy, torch.Tensor.__array__)


class Placement(TorchFunctionMode):
    """Moves what a script left on the CPU to *device*, once its first model is seen there.

    A script that places its model on an accelerator itself is left alone.

    Args:
        device: ``cuda``, ``xpu``, ``mps``.
    """

    def __init__(self, device: str) -> None:
        super().__init__()
        self.device = torch.device(device)
        self.active: bool | None = None
        """``None``: not decided before a model is called."""

    def call(self, module: torch.nn.Module, inputs: tuple[Any, ...]) -> tuple[Any, ...]:
        """A model is about to be called: move it; returns its inputs on the device."""
        first = next(module.parameters(), None)
        if self.active is None and first is not None:
            self.active = first.device.type == "cpu"
        if not self.active:
            return inputs
        if first is not None and first.device.type == "cpu":
            self.active = False  # moving is not a mixture to be mended
            module.to(self.device)
            self.active = True
        moved: tuple[Any, ...] = self._moved(inputs)
        return moved

    def batch(self, batch: Any) -> Any:
        """A fetched batch, on the device."""
        return self._moved(batch) if self.active else batch

    def __torch_function__(
        self, func: Any, types: Any, args: tuple[Any, ...] = (), kwargs: dict[str, Any] | None = None
    ) -> Any:
        kwargs = kwargs or {}
        if self.active:
            if func in _TO_NUMPY:
                args = tree_map_only(torch.Tensor, torch.Tensor.cpu, args)
            elif self._mixed(args, kwargs):
                if _writes_to_first(func):
                    home = args[0].device
                    args = (args[0], *tree_map_only(torch.Tensor, lambda tensor: tensor.to(home), args[1:]))
                else:
                    args, kwargs = self._moved(args), self._moved(kwargs)
        return func(*args, **kwargs)

    def _mixed(self, args: tuple[Any, ...], kwargs: dict[str, Any]) -> bool:
        kinds = set()
        for value in (*args, *kwargs.values()):
            for tensor in value if isinstance(value, (list, tuple)) else (value,):
                if isinstance(tensor, torch.Tensor):
                    kinds.add(tensor.device.type)
        return len(kinds) > 1

    def _moved(self, values: Any) -> Any:
        return tree_map_only(torch.Tensor, self._to_device, values)

    def _to_device(self, tensor: torch.Tensor) -> torch.Tensor:
        # a single number may stay: PyTorch mixes it with tensors of any device
        if tensor.device.type != "cpu" or (tensor.dim() == 0 and not tensor.requires_grad):
            return tensor
        return tensor.to(self.device, non_blocking=tensor.is_pinned())


def _writes_to_first(func: Any) -> bool:
    """Whether *func* changes its first argument, which must stay where it is: ``copy_``, ``x[i] = y``."""
    name = getattr(func, "__name__", "")
    if name.endswith("__"):
        in_place = name.startswith("__i") and name not in ("__invert__", "__int__", "__index__")
        return in_place or name in ("__set__", "__setitem__")
    return bool(name.endswith("_"))


class Substitution(TorchFunctionMode):
    """Every tensor that is to live on an accelerator lives on the CPU.

    Args:
        tell: called once with the name of the accelerator that the script wanted.
    """

    def __init__(self, tell: Callable[[str], None]) -> None:
        super().__init__()
        self._tell = functools.cache(tell)

    def install(self) -> None:
        """Take effect from now on, and make the calls to ``torch.cuda`` that need a device harmless."""
        self.__enter__()  # type: ignore[no-untyped-call]
        for name, value in (
            ("synchronize", None),
            ("set_device", None),
            ("reset_peak_memory_stats", None),
            ("current_device", 0),
            ("get_device_name", "cpu"),
        ):
            setattr(torch.cuda, name, _always(value))

    def __torch_function__(
        self, func: Any, types: Any, args: tuple[Any, ...] = (), kwargs: dict[str, Any] | None = None
    ) -> Any:
        kwargs = kwargs or {}
        if func is torch.Tensor.cuda or func is torch.Tensor.xpu:
            self._tell(func.__name__)
            return args[0]
        args = tuple(map(self._on_cpu, args))
        kwargs = {name: self._on_cpu(value) for name, value in kwargs.items() if name != "pin_memory"}
        return func(*args, **kwargs)

    def _on_cpu(self, value: Any) -> Any:
        if isinstance(value, torch.device):
            named = value.type
        elif isinstance(value, str):
            named = value.partition(":")[0]
        else:
            return value
        if named not in ("cuda", "xpu", "mps"):
            return value
        self._tell(named)
        return torch.device("cpu")


def _always(value: Any) -> Any:
    return lambda *_args, **_kwargs: value
