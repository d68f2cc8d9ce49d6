"""Matrix products and convolutions of a jaxpr: how much arithmetic each form is."""

from __future__ import annotations

import math
from typing import Any

from outpace import flops
from outpace.xla.nodes import Attributes

Shape = tuple[int, ...]


def dot_general(left: Shape, right: Shape, dimension_numbers: Any) -> tuple[int, Attributes]:
    """FLOPs and sizes of a product over any axes: (m x k) by (k x n), ``batch`` times."""
    (left_summed, right_summed), (left_batch, right_batch) = dimension_numbers
    sizes = {
        "m": _rest(left, (*left_summed, *left_batch)),
        "n": _rest(right, (*right_summed, *right_batch)),
        "k": math.prod(left[axis] for axis in left_summed),
        "batch": math.prod(left[axis] for axis in left_batch),
    }
    return flops.matmul(**sizes), {**sizes}


def _rest(shape: Shape, without: tuple[int, ...]) -> int:
    return math.prod(size for axis, size in enumerate(shape) if axis not in without)


def ragged_dot(left: Shape, right: Shape) -> tuple[int, Attributes]:
    """Rows of *left* (m x k) in groups, each by its own matrix of *right* (groups x k x n)."""
    m, k, n = left[-2], left[-1], right[-1]
    return flops.matmul(m, n, k), {"m": m, "n": n, "k": k, "groups": right[0]}


def convolution(left: Shape, right: Shape, out: Shape, params: Any, phase: str) -> tuple[int, Attributes]:
    """FLOPs and sizes of a convolution, a transposed one, or a gradient of either.

    JAX writes gradients as convolutions too, whose windows mostly meet padding and the zeros between dilated
    elements. Per axis, a window of ``r`` taps at ``o`` places over ``l`` elements meets at most
    ``min(o r, l r, l o)`` real pairs, which is what the convolution that it is the gradient of has. One
    that is not a gradient counts by convention at each place of its output, padding included, and a
    transposed one (dilated input) at each element of its input.
    """
    numbers = params["dimension_numbers"]
    lhs, rhs, res = numbers.lhs_spec, numbers.rhs_spec, numbers.out_spec
    dilated = any(step > 1 for step in params["lhs_dilation"])
    taps = tuple(right[axis] for axis in rhs[2:])
    pairs = 1
    for left_axis, window, out_axis in zip(lhs[2:], taps, res[2:], strict=True):
        elements, places = left[left_axis], out[out_axis]
        if phase == "backward" or dilated:
            pairs *= min(places * window, elements * window, elements * places)
        else:
            pairs *= places * window
    # Each output element sums over the input channels of its group; groups of the batch (in the gradients
    # of grouped convolutions) only choose which elements meet.
    total = 2 * out[res[0]] * out[res[1]] * right[rhs[1]] * pairs
    return total, _window(taps, tuple(out[axis] for axis in res[2:]), params, phase)


def _window(taps: Shape, places: Shape, params: Any, phase: str) -> Attributes:
    """The window in terms of the forward pass; the gradient by the weights has it as its output."""
    strides, dilation = tuple(params["window_strides"]), tuple(params["rhs_dilation"])
    attributes: Attributes = {
        "groups": max(params["feature_group_count"], params["batch_group_count"]),
        "channels_last": 1 in params["dimension_numbers"].lhs_spec[2:],
    }
    spread = tuple(params["lhs_dilation"])
    if phase == "backward" and math.prod(taps) > math.prod(places):
        taps, strides, dilation = places, dilation, strides
        attributes["gradient"] = "weight"
    elif phase == "backward":
        attributes["gradient"] = "input"
    elif max(spread, default=1) > 1:
        attributes["transposed"] = True
    attributes["kernel"] = taps
    attributes["stride"] = tuple(map(max, strides, spread))
    attributes["dilation"] = dilation
    return attributes


def fused_attention(
    name: str, query: Shape, key: Shape, value: Shape, *, heads_first: bool
) -> tuple[int, Attributes]:
    """The kernels of cuDNN behind ``jax.nn.dot_product_attention``.

    Args:
        heads_first: (batch, heads, length, size), otherwise (batch, length, heads, size).
    """
    batch, queries, heads, size = (query[0], query[2], query[1], query[3]) if heads_first else query
    keys = key[2] if heads_first else key[1]
    count = flops.attention_backward if "bwd" in name else flops.attention
    return count(batch, heads, queries, keys, size, value[-1]), {"heads": heads, "head_dim": size}


def recurrent(name: str, rows: Shape, params: Any) -> tuple[int, Attributes]:
    """An LSTM of cuDNN over (batch, length, features); its gradients are twice as much."""
    hidden, layers = params["hidden_size"], params["num_layers"]
    directions = 2 if params["bidirectional"] else 1
    total = flops.recurrent("lstm", rows[0], rows[1], rows[2], hidden, layers, directions)
    sizes: Attributes = {"cell": "lstm", "hidden": hidden, "layers": layers, "directions": directions}
    return total * (2 if "bwd" in name else 1), sizes
