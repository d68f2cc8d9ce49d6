"""Where compilers of PyTorch meet us: what they must not look into, and calls of compiled models."""

from __future__ import annotations

import functools
import weakref
from collections.abc import Callable
from types import ModuleType
from typing import Any, Protocol

import torch
import wrapt

from outpace.patch import around


class Drive(Protocol):
    """Calls a model, with us around it: `Stage.drive`."""

    def __call__(
        self,
        module: Any,
        call: Callable[..., Any],
        args: tuple[Any, ...],
        kwargs: dict[str, Any],
        *,
        compiled: bool,
    ) -> Any: ...


def meet(drive: Drive) -> None:
    """Have calls of compiled models go through *drive*: before the compiler looks, global hooks are gone."""

    def call(original: Callable[..., Any], module: Any, *args: Any, **kwargs: Any) -> Any:
        return drive(module, functools.partial(original, module), args, kwargs, compiled=True)

    def compile_in_place(original: Callable[..., Any], module: Any, *args: Any, **kwargs: Any) -> None:
        original(module, *args, **kwargs)
        inner, ours = module._compiled_call_impl, weakref.ref(module)
        module._compiled_call_impl = lambda *args, **kwargs: drive(ours(), inner, args, kwargs, compiled=True)

    around(torch.nn.Module, "compile", compile_in_place)
    wrapt.register_post_import_hook(
        lambda module: around(module.OptimizedModule, "__call__", call), "torch._dynamo.eval_frame"
    )
    wrapt.register_post_import_hook(_keep_out, "torch._dynamo")


def _keep_out(dynamo: ModuleType) -> None:
    """Gradients are computed outside compiled code; what stands around them must not be compiled either."""
    torch.autograd.backward = dynamo.disable(torch.autograd.backward)
