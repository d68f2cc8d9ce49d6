"""An operator as parts: what one kind of kernel has to compute and to move.

A convolution's backward pass is two parts, the gradient by the data and by the weights. The name of a part
is that of its coefficient, so kernels that behave alike share one.
"""

from __future__ import annotations

import math
from typing import Any, NamedTuple

from outpace.prediction import tiles
from outpace.records import Card, Operator

#: Kinds that run on matrix units where the card has them for the dtype.
ON_MATRIX_UNITS = ("matmul", "convolution", "attention", "rnn")


class Part(NamedTuple):
    """Equal kernels of a step.

    ``flops`` and ``bytes`` are of one of ``times`` kernels; ``waste`` multiplies the arithmetic (see
    `tiles`).
    """

    name: str
    phase: str
    unit: str
    """``matrix`` or ``vector``."""
    dtype: str
    flops: float
    waste: float
    bytes: float
    times: int
    known: bool = True
    """``False``: neither its arithmetic nor its traffic is certain; it is bounded, never left out."""


def unit_of(kind: str, dtype: str, card: Card) -> str:
    """Which units of *card* compute an operator of *kind* in *dtype*."""
    if kind in ON_MATRIX_UNITS and card.matrix_flops_per_second.get(dtype):
        return "matrix"
    return "vector"


def of_operator(operator: Operator, card: Card) -> list[Part]:
    """The parts of all calls of *operator* on *card*."""
    unit = "vector" if _depthwise(operator) else unit_of(operator.kind, operator.dtype, card)
    units = card.units or 64
    if operator.kind == "matmul":
        return [_matmul(operator, unit, units)]
    if operator.kind == "convolution" and len(operator.inputs) >= 2 and operator.outputs:
        return _convolution(operator, unit, units)
    if operator.kind == "rnn":
        return _recurrent(operator, unit, units)
    if operator.kind == "attention":
        name = "attention causal" if operator.attributes.get("causal") else "attention"
        return [_part(operator, name, unit)]
    return [_part(operator, _light_name(operator), "vector")]


def _depthwise(operator: Operator) -> bool:
    """A contraction over one channel is too short for matrix units."""
    groups = _number(operator, "groups", 1)
    if operator.kind != "convolution" or groups == 1 or len(operator.inputs) < 2:
        return False
    data = operator.inputs[0] if operator.attributes.get("gradients") is None else operator.inputs[1]
    return len(data) > 1 and data[1] == groups


def _part(operator: Operator, name: str, unit: str, **changes: Any) -> Part:
    part = Part(
        name=name,
        phase=operator.phase,
        unit=unit,
        dtype=operator.dtype,
        flops=float(operator.flops),
        waste=1.0,
        bytes=float(operator.bytes_read + operator.bytes_written),
        times=operator.count,
        known=not operator.guessed,
    )
    return part._replace(**changes)


def _number(operator: Operator, name: str, default: int) -> int:
    value = operator.attributes.get(name, default)
    return int(value) if isinstance(value, (int, bool)) else default


def _matmul(operator: Operator, unit: str, units: int) -> Part:
    m, n, k = (_number(operator, name, 1) for name in "mnk")
    batch = _number(operator, "batch", 1)
    name = "matmul" if batch == 1 else "matmul batched"
    return _part(operator, name, unit, waste=tiles.waste(m, n, k, batch, units, unit))


def _convolution(operator: Operator, unit: str, units: int) -> list[Part]:
    wanted = operator.attributes.get("gradients")
    if wanted is None:
        data, weight, out = operator.inputs[0], operator.inputs[1], operator.outputs[0]
        return [_one_convolution(operator, "forward", unit, units, data, weight, out, 1)]
    out, data, weight = operator.inputs[0], operator.inputs[1], operator.inputs[2]
    both = ("data", "weight") if wanted == "both" else ({"input": "data"}.get(str(wanted), str(wanted)),)
    return [
        _one_convolution(operator, which, unit, units, data, weight, out, len(both))
        for which in both
        if which in ("data", "weight")
    ]


def _one_convolution(
    operator: Operator,
    which: str,
    unit: str,
    units: int,
    data: tuple[int, ...],
    weight: tuple[int, ...],
    out: tuple[int, ...],
    shared_by: int,
) -> Part:
    """*which*: ``forward``, or the gradient by the ``data`` or by the ``weight``, as an implicit product."""
    groups = max(_number(operator, "groups", 1), 1)
    if operator.attributes.get("transposed"):
        data, out = out, data
    channels_in, channels_out, window = data[1] // groups, out[1] // groups, math.prod(weight[2:])
    rows_in, rows_out = data[0] * math.prod(data[2:]), out[0] * math.prod(out[2:])
    name = _convolution_name(operator, channels_in, groups, weight[2:])
    if which == "forward":
        sizes = (rows_out, channels_out, channels_in * window)
    elif which == "data":
        sizes = (rows_in, channels_in, channels_out * window)
    else:
        sizes = (channels_out, channels_in * window, rows_out)  # a group's own
    lost = 1.0 if name.endswith("depthwise") else tiles.waste(*sizes, groups, units, unit)
    if groups > 1 and operator.attributes.get("layout") == "channels_last":
        name = f"{name} channels-last"
        if not name.startswith("convolution depthwise") and not _tuned(groups, channels_in, channels_out):
            # libraries fall back to kernels of vector units, whatever the width of a group
            name, unit, lost = f"{name} untuned", "vector", 1.0
    return _part(
        operator,
        f"{name} {which}",
        unit,
        flops=operator.flops / shared_by,
        bytes=(operator.bytes_read + operator.bytes_written) / shared_by,
        waste=lost,
    )


def _tuned(groups: int, channels_in: int, channels_out: int) -> bool:
    """Whether cuDNN has kernels of matrix units for groups of channels that lie side by side in memory.

    As of the measurements (cuDNN 8.3): as many channels in as out, a power of two up to 32, in 32 groups or
    more.
    """
    return channels_in == channels_out and channels_in in (4, 8, 16, 32) and groups >= 32


def _convolution_name(operator: Operator, channels_in: int, groups: int, window: tuple[int, ...]) -> str:
    if groups > 1:
        return "convolution depthwise" if channels_in == 1 else "convolution grouped"
    if math.prod(window) == 1:
        return "convolution 1x1"
    strides = operator.attributes.get("stride", ())
    unit_stride = not isinstance(strides, tuple) or all(stride == 1 for stride in strides)
    return "convolution 3x3" if tuple(window) == (3, 3) and unit_stride else "convolution"


def converted_bytes(operator: Operator, unit: str) -> float:
    """Bytes that a change of layout moves around one call: matrix units want channels last."""
    if operator.kind != "convolution" or unit != "matrix" or operator.dtype == "tf32":
        return 0.0
    if operator.attributes.get("layout") == "channels_last":
        return 0.0
    return 2.0 * (operator.bytes_read + operator.bytes_written)


def _recurrent(operator: Operator, unit: str, units: int) -> list[Part]:
    """The time steps, which wait for each other, and what is computed of all steps at once.

    At once: the product of the input with its weights, and the gradient by the weights.
    """
    hidden, batch, length = (_number(operator, name, 1) for name in ("hidden", "batch", "length"))
    layers = _number(operator, "layers", 1) * _number(operator, "directions", 1)
    cell = str(operator.attributes.get("cell", "rnn"))
    gates = {"lstm": 4, "gru": 3}.get(cell, 1)
    size = 2 if operator.dtype in ("fp16", "bf16") else 4
    wanted = str(operator.attributes.get("gradients", "both"))
    backward = operator.phase == "backward"
    each = operator.flops / 2 if backward and wanted == "both" else float(operator.flops)
    of_steps = min(2.0 * batch * length * gates * hidden * hidden * layers, each)
    found = []
    if not backward or wanted != "weight":
        steps = _part(
            operator,
            "rnn backward" if backward else "rnn forward",
            unit,
            flops=of_steps / (length * layers),
            waste=tiles.waste(batch, gates * hidden, hidden, 1, units, unit),
            bytes=float(size * (gates * hidden * hidden + batch * (2 + gates) * hidden)),
            times=operator.count * length * layers,
        )
        found.append(steps)
        if each > of_steps:
            at_once = tiles.waste(batch * length, gates * hidden, hidden, 1, units, unit)
            touched = float(operator.bytes_read + operator.bytes_written)
            found.append(_part(operator, "matmul", unit, flops=each - of_steps, waste=at_once, bytes=touched))
    if backward and wanted != "data":
        at_once = tiles.waste(gates * hidden, hidden, batch * length, 1, units, unit)
        touched = float(operator.bytes_read + operator.bytes_written)
        found.append(_part(operator, "matmul", unit, flops=each, waste=at_once, bytes=touched))
    return found


def _light_name(operator: Operator) -> str:
    kind = operator.kind
    if kind == "normalization":
        return "batch norm" if "batch_norm" in operator.name else "layer norm"
    if operator.phase == "optimizer" or kind == "optimizer":
        return "optimizer"
    if kind in ("copy", "elementwise") and operator.attributes.get("strided"):
        return "transposition"
    return (
        kind
        if kind in ("softmax", "pooling", "embedding", "reduction", "copy", "random", "sort")
        else ("elementwise" if kind == "elementwise" else "other")
    )
