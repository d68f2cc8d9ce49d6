"""One call of a PyTorch operator: its arguments by name, its tensors, the type it computes in."""

from __future__ import annotations

import dataclasses
import functools
from collections.abc import Iterator, Sequence
from typing import Any

import torch

_SHORT = {
    torch.float64: "fp64",
    torch.float32: "fp32",
    torch.float16: "fp16",
    torch.bfloat16: "bf16",
    torch.bool: "bool",
}


@dataclasses.dataclass(frozen=True)
class Call:
    """What an operator was called with and what came out.

    Args:
        name: of the operator without its overload, and without the underscore of an in-place form:
            ``aten.add`` for ``aten.add_.Tensor``.
        arguments: by the names of the operator's schema, left-out ones with their defaults.
    """

    func: Any
    name: str
    arguments: dict[str, Any]
    outputs: tuple[Any, ...]
    phase: str

    def __getitem__(self, name: str) -> Any:
        return self.arguments[name]

    def get(self, name: str, default: Any = None) -> Any:
        """An argument that only some versions or variants have."""
        return self.arguments.get(name, default)

    @property
    def out(self) -> torch.Tensor:
        """The first output."""
        first = self.outputs[0]
        assert isinstance(first, torch.Tensor)
        return first

    @functools.cached_property
    def inputs(self) -> tuple[torch.Tensor, ...]:
        """Every tensor among the arguments, those in lists too."""
        return tuple(tensors(list(self.arguments.values())))

    @functools.cached_property
    def results(self) -> tuple[torch.Tensor, ...]:
        """Every tensor among the outputs, those in lists too."""
        return tuple(tensors(self.outputs))


def words(text: str) -> frozenset[str]:
    """The names in a text: long lists of operators read better as one."""
    return frozenset(text.split())


def tensors(values: Any) -> Iterator[torch.Tensor]:
    """The tensors in *values*: nested lists and tuples."""
    if isinstance(values, torch.Tensor):
        yield values
    elif isinstance(values, (list, tuple)):
        for value in values:
            yield from tensors(value)


def call_of(func: Any, args: Sequence[Any], kwargs: dict[str, Any], result: Any, phase: str) -> Call:
    """Bind a call that a dispatch mode sees to the names of its schema."""
    names, defaults = _signature(func)
    arguments = {**defaults, **dict(zip(names, args, strict=False)), **kwargs}
    outputs = tuple(result) if isinstance(result, (list, tuple)) else (result,)
    return Call(func, plain_name(func), arguments, outputs, phase)


@functools.cache
def _signature(func: Any) -> tuple[tuple[str, ...], dict[str, Any]]:
    schema = func._schema.arguments
    defaults = {argument.name: argument.default_value for argument in schema if argument.has_default_value()}
    return tuple(argument.name for argument in schema), defaults


@functools.cache
def plain_name(func: Any) -> str:
    """``aten.add`` for ``aten.add_.Tensor``; operators of other libraries keep their name space."""
    space, _, name = func._schema.name.partition("::")
    in_place = name.endswith("_") and not name.endswith("__")
    return f"{space}.{name[:-1] if in_place else name}"


def type_name(dtype: torch.dtype) -> str:
    """``fp32``, ``bf16``, ``fp8``, ``int64`` …"""
    if dtype in _SHORT:
        return _SHORT[dtype]
    name = str(dtype).removeprefix("torch.")
    return "fp8" if name.startswith("float8") else name


def arithmetic_type(call: Call) -> str:
    """The type of the first floating-point input, else of the first input, else of the output."""
    everything = (*call.inputs, *call.results)
    for tensor in everything:
        if tensor.is_floating_point() or tensor.is_complex():
            return type_name(tensor.dtype)
    return type_name(everything[0].dtype) if everything else "none"


def shape(tensor: torch.Tensor) -> tuple[int, ...]:
    """Sizes as plain numbers, also where PyTorch keeps them symbolic."""
    return tuple(int(size) for size in tensor.shape)
