"""A graph of operators, before what runs in one kernel is put together. It knows no framework."""

from __future__ import annotations

import dataclasses
import math
from typing import Any

from outpace.records import Operator

Attributes = dict[str, int | bool | str | tuple[int, ...]]

#: NumPy's names to those of cards; other types are called as NumPy calls them.
DTYPES = {
    "float64": "fp64",
    "float32": "fp32",
    "float16": "fp16",
    "bfloat16": "bf16",
    "float8_e4m3fn": "fp8",
    "float8_e5m2": "fp8",
    "half": "fp16",
}


def dtype_name(dtype: Any) -> str:
    """``fp32``, ``bf16``, ``int64`` … for a NumPy, JAX or TensorFlow type."""
    name = str(getattr(dtype, "name", dtype))
    return DTYPES.get(name, name)


@dataclasses.dataclass(eq=False)
class Value:
    """An array in a graph.

    Args:
        base: the array that this one is only another view of (reshaped, broadcast, cut out): reading it
            reads that.
    """

    shape: tuple[int, ...]
    dtype: str = "fp32"
    itemsize: int = 4
    base: Value | None = None
    from_gradient: bool = False
    """Computed from what a backward pass computed."""

    @property
    def size(self) -> int:
        """Elements."""
        return math.prod(self.shape)

    @property
    def bytes(self) -> int:
        return self.size * self.itemsize

    @property
    def root(self) -> Value:
        """The array in memory behind this view."""
        value = self
        while value.base is not None:
            value = value.base
        return value

    @property
    def read_bytes(self) -> int:
        """What is read of memory: a cut-out only its part, a broadcast not more than what it repeats."""
        value, smallest = self, self.bytes
        while value.base is not None:
            value = value.base
            smallest = min(smallest, value.bytes)
        return smallest


@dataclasses.dataclass(eq=False)
class Node:
    """One operator of a graph.

    Args:
        fusible: an elementwise operator: it runs in one kernel with its neighbours.
        absorbs: a reduction: it computes in its own kernel the elementwise operators that feed it.
        bytes_read: if not all of its inputs; likewise ``bytes_written``.
        children: what runs inside (a loop, a branch), ready: the node itself costs nothing.
    """

    name: str
    kind: str
    phase: str
    inputs: list[Value]
    outputs: list[Value]
    dtype: str = "fp32"
    flops: int = 0
    fusible: bool = False
    absorbs: bool = False
    bytes_read: int | None = None
    bytes_written: int | None = None
    attributes: Attributes = dataclasses.field(default_factory=dict)
    guessed: bool = False
    children: list[Operator] | None = None
    effect: bool = False
    """It must run even if nobody reads what it computes."""


def reads(values: list[Value]) -> dict[Value, int]:
    """Bytes read per array in memory; several views of one array read it once."""
    wanted: dict[Value, dict[Value, int]] = {}
    for value in values:
        wanted.setdefault(value.root, {})[value] = value.read_bytes
    return {root: min(root.bytes, sum(views.values())) for root, views in wanted.items()}
