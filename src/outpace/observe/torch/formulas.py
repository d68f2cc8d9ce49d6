"""Products and convolutions: their FLOPs, and what else decides their cost.

A multiplication and an addition are two FLOPs. Adding a bias is not counted, as in the published counts.
Each formula takes a `Call` and gives a `Counted`; the argument names are those of PyTorch's
``native_functions.yaml``.
"""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Callable
from typing import Any

import torch

from outpace import flops
from outpace.observe.torch.operators_call import Call, shape

Attributes = dict[str, "int | bool | str | tuple[int, ...]"]


@dataclasses.dataclass(frozen=True)
class Counted:
    """What a formula says of a call."""

    kind: str
    flops: int
    attributes: Attributes = dataclasses.field(default_factory=dict)
    guessed: bool = False


Formula = Callable[[Call], Counted]


def _product(m: int, n: int, k: int, batch: int = 1, **more: Any) -> Counted:
    sizes: Attributes = {"m": m, "n": n, "k": k, "batch": batch, **more}
    return Counted("matmul", flops.matmul(m, n, k, batch), sizes)


def _transposes(left: torch.Tensor, right: torch.Tensor) -> Attributes:
    """Which operand is stored the other way round: what BLAS calls ``T``."""
    sides = {"transposed_left": left, "transposed_right": right}
    return {
        name: True
        for name, tensor in sides.items()
        if tensor.stride(-1) != 1 and tensor.stride(-2) == 1 and tensor.shape[-1] != 1
    }


def product(left: str, right: str) -> Formula:
    """A product of matrices (m x k) and (k x n), or of as many pairs as the first dimension says."""

    def count(call: Call) -> Counted:
        first, second = call[left], call[right]
        *batch, m, k = shape(first)
        return _product(m, shape(second)[-1], k, math.prod(batch), **_transposes(first, second))

    return count


def matrix_by_vector(matrix: str, vector: str) -> Formula:
    """(m x k) by (k)."""

    def count(call: Call) -> Counted:
        m, k = shape(call[matrix])
        return _product(m, 1, call[vector].numel() if k else 0)

    return count


def inner(call: Call) -> Counted:
    """Two vectors to one number."""
    return _product(1, 1, call["self"].numel())


def outer(left: str, right: str) -> Formula:
    """Two vectors to a matrix."""
    return lambda call: _product(call[left].numel(), call[right].numel(), 1)


def linear(call: Call) -> Counted:
    """``input @ weight.T`` where it is one operator (MPS, XPU, oneDNN): the weight is (n x k)."""
    data = call.get("input")
    data = call["self"] if data is None else data
    n, k = shape(call["weight"])
    return _product(data.numel() // k if k else 0, n, k, transposed_right=True)


def linear_backward(call: Call) -> Counted:
    """As many products as gradients wanted: by the input, by the weight."""
    n, k = shape(call["weight"])
    rows = call["grad_output"].numel() // n if n else 0
    return _product(rows, n, k, batch=sum(map(bool, call["output_mask"][:2])))


def grouped_product(call: Call) -> Counted:
    """Products of several sizes in one call: offsets split the rows, the columns or the sum among the groups.

    Only two three-dimensional operands are as many products as their first dimension says; else every row,
    column or term belongs to one group. Padding beyond the last offset would be counted too.
    """
    first, second = shape(call["self"]), shape(call["mat2"])
    batch = first[0] if len(first) == len(second) == 3 else 1
    return _product(first[-2], second[-1], first[-1], batch)


def distances(call: Call) -> Counted:
    """All pairs of rows: a subtraction, a power and a sum per element, as much as a product and a half."""
    first, second = shape(call["x1"]), shape(call["x2"])
    pairs = math.prod(first[:-1]) * second[-2]
    return Counted("reduction", 3 * pairs * first[-1])


def _layout(*candidates: torch.Tensor) -> str:
    """``channels_last`` if an operand is stored so; cuDNN and oneDNN then compute in it."""
    for tensor in candidates:
        wanted = {4: torch.channels_last, 5: torch.channels_last_3d}.get(tensor.dim())
        if wanted and tensor.is_contiguous(memory_format=wanted) and not tensor.is_contiguous():
            return "channels_last"
    return "contiguous"


def _one_convolution(
    data: torch.Tensor, weight: torch.Tensor, out: torch.Tensor, call: Call, transposed: bool
) -> tuple[int, Attributes]:
    """FLOPs of a convolution from *data* to *out*, and its attributes.

    A transposed one spreads each position of its input, with the weight stored (in, out / groups, *kernel).
    """
    groups = int(call.get("groups", 1))
    batch, first, last = shape(data)[0], shape(data)[1], shape(out)[1]
    kernel = shape(weight)[2:]
    if transposed:
        count = flops.convolution(batch, last, first, kernel, math.prod(shape(data)[2:]), groups)
    else:
        count = flops.convolution(batch, first, last, kernel, math.prod(shape(out)[2:]), groups)
    dimensions = len(kernel)

    def numbers(name: str, default: int) -> tuple[int, ...]:
        value = tuple(int(number) for number in call.get(name, ()))
        return (value or (default,)) * (dimensions if len(value) < 2 else 1)

    attributes: Attributes = {
        "stride": numbers("stride", 1),
        "padding": numbers("padding", 0),
        "dilation": numbers("dilation", 1),
        "groups": groups,
        "transposed": transposed,
        "layout": _layout(data, weight),
    }
    return count, attributes


def convolution(transposed: bool | None = None, data: str = "self") -> Formula:
    """Any forward convolution. *transposed*: ``None`` where the call itself says."""

    def count(call: Call) -> Counted:
        spread = bool(call["transposed"]) if transposed is None else transposed
        return Counted("convolution", *_one_convolution(call[data], call["weight"], call.out, call, spread))

    return count


def convolution_backward(call: Call) -> Counted:
    """Each wanted gradient, by the input or by the weight, is as large as the forward pass."""
    data = call.get("input")
    data = call["self"] if data is None else data
    transposed = bool(call.get("transposed", False))
    one, attributes = _one_convolution(data, call["weight"], call["grad_output"], call, transposed)
    wanted = tuple(int(bool(flag)) for flag in call["output_mask"][:2])
    attributes["gradients"] = ("neither", "input", "weight", "both")[wanted[0] + 2 * wanted[1]]
    return Counted("convolution", one * sum(wanted), attributes)


def convolution_over_time(call: Call) -> Counted:
    """``conv_tbc``: data (time, batch, in), weight (width, in, out)."""
    width, inside, outside = shape(call["weight"])
    length, batch, _ = shape(call.out)
    return Counted("convolution", flops.convolution(batch, inside, outside, (width,), length))


FORMULAS: dict[str, Formula] = {
    **dict.fromkeys(("aten.mm", "aten._int_mm", "aten._scaled_mm"), product("self", "mat2")),
    **dict.fromkeys(("aten.addmm", "aten._addmm_activation"), product("mat1", "mat2")),
    "aten.bmm": product("self", "mat2"),
    **dict.fromkeys(("aten.baddbmm", "aten.addbmm"), product("batch1", "batch2")),
    "aten.mv": matrix_by_vector("self", "vec"),
    "aten.addmv": matrix_by_vector("mat", "vec"),
    **dict.fromkeys(("aten.dot", "aten.vdot"), inner),
    "aten.addr": outer("vec1", "vec2"),
    "aten.ger": outer("self", "vec2"),
    **dict.fromkeys(("aten.linear", "aten.mkldnn_linear"), linear),
    "aten.linear_backward": linear_backward,
    **dict.fromkeys(("aten._grouped_mm", "aten._scaled_grouped_mm"), grouped_product),
    **dict.fromkeys(
        ("aten.convolution", "aten._convolution", "aten.convolution_overrideable"), convolution(data="input")
    ),
    **dict.fromkeys(
        (
            "aten.mkldnn_convolution",
            "aten.cudnn_convolution",
            "aten.cudnn_convolution_relu",
            "aten.cudnn_convolution_add_relu",
            "aten.miopen_convolution",
            "aten.miopen_convolution_relu",
            "aten.miopen_convolution_add_relu",
            "aten.miopen_depthwise_convolution",
            "aten._mps_convolution",
            "aten._conv_depthwise2d",
            "aten.conv_depthwise3d",
            "aten._slow_conv2d_forward",
            "aten.slow_conv3d_forward",
            "aten.slow_conv_dilated2d",
            "aten.slow_conv_dilated3d",
        ),
        convolution(transposed=False),
    ),
    **dict.fromkeys(
        (
            "aten.cudnn_convolution_transpose",
            "aten.miopen_convolution_transpose",
            "aten._mps_convolution_transpose",
            "aten.slow_conv_transpose2d",
            "aten.slow_conv_transpose3d",
        ),
        convolution(transposed=True),
    ),
    **dict.fromkeys(
        (
            "aten.convolution_backward",
            "aten.convolution_backward_overrideable",
            "aten.mps_convolution_backward",
        ),
        convolution_backward,
    ),
    **dict.fromkeys(("aten._cdist_forward", "aten._cdist_backward"), distances),
    "aten.conv_tbc": convolution_over_time,
}
"""By the name of the operator, without its overload."""
