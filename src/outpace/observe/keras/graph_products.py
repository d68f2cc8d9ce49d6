"""The operators of TensorFlow that do the arithmetic: products, convolutions, pooling, RNNs of cuDNN."""

from __future__ import annotations

import math
from typing import Any

from outpace import flops
from outpace.xla.nodes import Node


def matmul(node: Node, operation: Any) -> None:
    left, right = node.inputs[0].shape, node.inputs[1].shape
    turned = [_flag(operation, name) for name in ("transpose_a", "transpose_b", "adj_x", "adj_y")]
    m, k = left[-2:][::-1] if turned[0] or turned[2] else left[-2:]
    n = right[-2] if turned[1] or turned[3] else right[-1]
    batch = math.prod(node.outputs[0].shape[:-2])
    _product(node, m, n, k, batch)


def _product(node: Node, m: int, n: int, k: int, batch: int) -> None:
    node.kind, node.flops = "matmul", flops.matmul(m, n, k, batch)
    node.dtype = node.inputs[0].dtype
    node.attributes = {"m": m, "n": n, "k": k, "batch": batch}


def einsum(node: Node, operation: Any) -> None:
    """Two operands: indices in both and in the result are a batch, in both only are summed over."""
    given, made = operation.get_attr("equation").decode().replace(" ", "").split("->")
    terms = given.split(",")
    if len(terms) != 2:
        node.kind, node.flops, node.absorbs = "reduction", node.inputs[0].size, True
        return
    sizes: dict[str, int] = {}
    batch = 1
    for term, value in zip(terms, node.inputs, strict=True):
        dots = len(value.shape) - len(term.replace("...", ""))
        for letter, size in zip(term.replace("...", "." * dots), value.shape, strict=True):
            if letter != ".":
                sizes[letter] = max(sizes.get(letter, 1), size)
    if "..." in made:
        batch = math.prod(node.outputs[0].shape[: len(node.outputs[0].shape) - len(made.replace("...", ""))])
    left, right = set(terms[0]) - {"."}, set(terms[1]) - {"."}

    def together(letters: set[str]) -> int:
        return math.prod(sizes[letter] for letter in letters)

    both = left & right
    kept = set(made)
    _product(
        node,
        together(left - right),
        together(right - left),
        together(both - kept),
        batch * together(both & kept),
    )


def convolution(node: Node, operation: Any) -> None:
    """Forward and both gradients are as large: windows at each place of the (gradient of the) output."""
    name = node.name
    if "BackpropInput" in name:
        window, small, large = node.inputs[1].shape, node.inputs[2].shape, node.outputs[0].shape
    elif "BackpropFilter" in name:
        window, small, large = node.outputs[0].shape, node.inputs[2].shape, node.inputs[0].shape
    else:
        window, small, large = node.inputs[1].shape, node.outputs[0].shape, node.inputs[0].shape
    last = operation.get_attr("data_format").decode().endswith("C")
    channels_in = large[-1 if last else 1]
    axes = slice(1, -1) if last else slice(2, None)
    groups = channels_in if "Depthwise" in name else channels_in // window[-2]
    channels_out = window[-1] * (channels_in if "Depthwise" in name else 1)
    positions = math.prod(small[axes])
    node.kind = "convolution"
    node.dtype = node.outputs[0].dtype
    node.flops = flops.convolution(small[0], channels_in, channels_out, window[:-2], positions, groups)
    node.attributes = {
        "groups": groups,
        "channels_last": last,
        "kernel": window[:-2],
        "stride": tuple(operation.get_attr("strides"))[axes],
        "dilation": tuple(operation.get_attr("dilations"))[axes],
    }
    if "BackpropFilter" in name:
        node.attributes["gradient"] = "weight"
    elif "BackpropInput" in name:
        node.attributes |= {"gradient": "input"} if node.phase == "backward" else {"transposed": True}
    elif node.phase == "backward":  # of a transposed convolution
        node.attributes["gradient"] = "input"


def pooling(node: Node, operation: Any) -> None:
    node.kind = "pooling"
    window = tuple(operation.get_attr("ksize"))
    node.attributes = {"kernel": window, "stride": tuple(operation.get_attr("strides"))}
    node.flops = min(value.size for value in node.inputs + node.outputs if len(value.shape) > 1) * math.prod(
        window
    )


def recurrent(node: Node, operation: Any) -> None:
    """An RNN of cuDNN over (length, batch, features); its gradients are twice as much."""
    rows, state = node.inputs[0].shape, node.inputs[1].shape
    cell = operation.get_attr("rnn_mode").decode()
    directions = 2 if operation.get_attr("direction").decode() == "bidirectional" else 1
    layers = state[0] // directions
    kind = cell if cell in flops.GATES else "rnn"
    total = flops.recurrent(kind, rows[1], rows[0], rows[2], state[-1], layers, directions)
    node.kind, node.dtype = "rnn", node.inputs[0].dtype
    node.flops = total * (2 if "Backprop" in node.name else 1)
    node.attributes = {"cell": kind, "hidden": state[-1], "layers": layers, "directions": directions}


def _flag(operation: Any, name: str) -> bool:
    return name in operation.node_def.attr and bool(operation.node_def.attr[name].b)
