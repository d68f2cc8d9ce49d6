"""Runs a script on tensors that have shapes and types and no values, so that a step costs no arithmetic.

Data is loaded for real, so that its shapes are the real ones. Where a script asks for a value that nobody has
computed, it gets a made-up one: true, 0, or 1.0 (Adam divides by what its step count gives). Where a shape
would depend on a value, `CannotFake` is raised.
"""

from __future__ import annotations

import inspect
import math
from collections.abc import Callable
from typing import Any

import torch
from torch._subclasses import fake_tensor
from torch._subclasses.fake_tensor import FakeTensor, FakeTensorMode, unset_fake_temporarily
from torch.utils.data import DataLoader
from torch.utils.data.dataloader import _BaseDataLoaderIter

from outpace.observe.torch.operators_call import plain_name, tensors
from outpace.patch import around

#: The fake mode that is installed in this process.
installed: Fakes | None = None


class CannotFake(BaseException):
    """The script needs real values: *what* has shapes that depend on them, or no rule for its shapes.

    Not an ``Exception``, so that a script that catches its own errors does not go on with half a step.
    """

    def __init__(self, what: str) -> None:
        super().__init__(f"{what} cannot be run on shapes alone")
        self.what = what


class Fakes(FakeTensorMode):  # type: ignore[no-untyped-call]
    """PyTorch's fake tensors, with made-up values where a value is asked for.

    Attributes:
        notes: what was made up, each once.
    """

    def __init__(self) -> None:
        super().__init__(allow_non_fake_inputs=True)
        self.notes: list[str] = []

    def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        kwargs = kwargs or {}
        try:
            result = super().__torch_dispatch__(func, types, args, kwargs)
        except fake_tensor.DataDependentOutputException:
            return self._value(func, args)
        except (
            fake_tensor.DynamicOutputShapeException,
            fake_tensor.UnsupportedFakeTensorException,
            fake_tensor.UnsupportedOperatorException,
        ) as error:
            raise CannotFake(plain_name(func)) from error
        if _says_not_finite(func, args):
            for tensor in tensors(result):
                tensor._outpace_false = True  # type: ignore[attr-defined]
        return result

    def _value(self, func: Any, args: Any) -> Any:
        given = list(tensors(args))
        if given and not any(isinstance(tensor, FakeTensor) for tensor in given):
            with unset_fake_temporarily():
                return func(*args)
        if plain_name(func) not in ("aten._local_scalar_dense", "aten.equal", "aten.allclose"):
            raise CannotFake(plain_name(func))
        self.note("values that the script reads from tensors are made up (true, 0, 1.0)")
        if plain_name(func) != "aten._local_scalar_dense":
            return True
        return _made_up(given[0])

    def note(self, text: str) -> None:
        """Remember what was made up."""
        if text not in self.notes:
            self.notes.append(text)


def _made_up(tensor: torch.Tensor) -> complex | float | int:
    if tensor.dtype == torch.bool:
        return not getattr(tensor, "_outpace_false", False)
    if tensor.is_floating_point():
        return 1.0
    return 1 + 0j if tensor.is_complex() else 0


#: Of values that are all false they give false.
_KEEPS_FALSE = frozenset(
    f"aten.{name}"
    for name in ("any", "all", "logical_or", "bitwise_or", "logical_and", "view", "_to_copy", "clone")
)


def _says_not_finite(func: Any, args: Any) -> bool:
    """Whether the outcome is true of a NaN or an infinity only: a script that looks for them finds none."""
    name = plain_name(func)
    if name in ("aten.isnan", "aten.isinf"):
        return True
    if name == "aten.ne" and len(args) == 2:  # isnan comes apart into x != x
        return args[0] is args[1]
    if name == "aten.eq" and len(args) == 2:  # isinf into abs(x) == inf
        return isinstance(args[1], float) and math.isinf(args[1])
    given = list(tensors(args))
    return name in _KEEPS_FALSE and bool(given) and all(hasattr(tensor, "_outpace_false") for tensor in given)


def install() -> Fakes:
    """Everything that this thread makes from now on is fake, except data while it is loaded.

    Nothing is compiled, no worker processes load data, and nothing is saved.
    """
    global installed
    import torch._dynamo.config

    torch._dynamo.config.disable = True
    around(DataLoader, "__init__", _without_workers)
    around(DataLoader, "__iter__", _for_real)
    around(_BaseDataLoaderIter, "__next__", _for_real)
    around(torch.Tensor, "numpy", _numpy)
    around(torch.Tensor, "__array__", _numpy)
    around(torch.Tensor, "__format__", _format)
    around(torch, "save", _save)
    around(torch, "compile", _uncompiled)
    around(torch.Tensor, "__deepcopy__", _deepcopy)
    around(torch.nn.Module, "_apply", _apply)
    installed = Fakes()
    installed.__enter__()
    return installed


def _for_real(original: Callable[..., Any], *args: Any, **kwargs: Any) -> Any:
    with unset_fake_temporarily():
        return original(*args, **kwargs)


def _without_workers(original: Callable[..., Any], *args: Any, **kwargs: Any) -> Any:
    given = inspect.signature(original).bind(*args, **kwargs)
    given.arguments.update(
        num_workers=0,
        pin_memory=False,
        timeout=0,
        multiprocessing_context=None,
        prefetch_factor=None,
        persistent_workers=False,
    )
    return original(*given.args, **given.kwargs)


def _apply(original: Callable[..., Any], module: Any, change: Any, recurse: bool = True) -> Any:
    """``Module.to`` and its like swap fake parameters, which fails while anything refers to them."""
    own = [parameter for parameter in module._parameters.values() if parameter is not None]
    if not any(isinstance(parameter, FakeTensor) for parameter in own):
        return original(module, change, recurse)
    for child in module.children() if recurse else ():
        child._apply(change)
    with torch.no_grad():
        for parameter in own:
            for tensor in (parameter, parameter.grad):
                if tensor is not None:
                    _become(tensor, change(tensor))
    for name, buffer in module._buffers.items():
        module._buffers[name] = None if buffer is None else change(buffer)
    return module


def _become(tensor: Any, changed: Any) -> None:
    if changed is tensor:
        return
    tensor.data = changed
    if isinstance(tensor, FakeTensor) and isinstance(changed, FakeTensor):
        tensor.fake_device = changed.fake_device


def _deepcopy(original: Callable[..., Any], tensor: Any, memo: dict[int, Any]) -> Any:
    """PyTorch 2.13 gives copies of fake tensors a storage that it frees twice: they are cloned instead."""
    if not isinstance(tensor, FakeTensor):
        return original(tensor, memo)
    if id(tensor) not in memo:
        copied: torch.Tensor = tensor.detach().clone()
        if isinstance(tensor, torch.nn.Parameter):
            copied = torch.nn.Parameter(copied, tensor.requires_grad)
        else:
            copied.requires_grad_(tensor.requires_grad)
        if tensor.grad is not None:
            copied.grad = tensor.grad.detach().clone()
        memo[id(tensor)] = copied
    return memo[id(tensor)]


def _numpy(original: Callable[..., Any], tensor: torch.Tensor, *args: Any, **kwargs: Any) -> Any:
    if not isinstance(tensor, FakeTensor):
        return original(tensor, *args, **kwargs)
    if installed is not None:
        installed.note("arrays made of tensors hold zeros")
    with unset_fake_temporarily():
        return torch.zeros(tensor.shape, dtype=tensor.dtype).numpy()


def _format(original: Callable[..., Any], tensor: torch.Tensor, spec: str) -> str:
    if isinstance(tensor, FakeTensor) and tensor.dim() == 0:
        return format(tensor.item(), spec)
    return str(original(tensor, spec))


def _uncompiled(_original: Callable[..., Any], model: Any = None, **_options: Any) -> Any:
    # with the compiler off, PyTorch gives the model back too, but loads the whole compiler before
    return model if model is not None else lambda function: function


def _save(_original: Callable[..., Any], *_args: Any, **_kwargs: Any) -> None:
    """A file with no values in it would only replace one that has some."""
    if installed is not None:
        installed.note("nothing was saved")
