"""What each primitive of a jaxpr is: its kind, its arithmetic, its memory traffic."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

from outpace.xla import products
from outpace.xla.nodes import Node, Value

#: Another way to read an array: no kernel.
VIEWS = {
    *("reshape", "broadcast_in_dim", "broadcast", "squeeze", "expand_dims", "transpose", "copy", "copy_p"),
    *("slice", "dynamic_slice", "split", "rev", "stop_gradient", "device_put", "sharding_constraint"),
    *("pvary", "pcast", "reshard", "mesh_cast", "bitcast_convert_type", "reduce_precision", "name"),
    *("optimization_barrier", "random_wrap", "random_unwrap", "layout_constraint", "real", "imag"),
    *("unvary", "tile", "unstack", "tie"),
}
#: Made of nothing: a constant that other kernels compute where they need it.
CONSTANTS = {"iota", "empty", "empty2", "axis_index", "create_token", "random_seed"}
#: Elementwise without arithmetic.
MOVES = {"convert_element_type", "select_n", "concatenate", "pad", "clamp_index"}
COMMUNICATION = {
    *("psum", "psum2", "psum_invariant", "pmax", "pmin", "ppermute", "all_gather", "all_to_all"),
    *("reduce_scatter", "all_gather_invariant", "all_gather_reduced", "psum_scatter", "ragged_all_to_all"),
}
SORTS = {"sort", "top_k", "approx_top_k"}
SCANS = {"cumsum", "cumprod", "cummax", "cummin", "cumlogsumexp"}
EFFECTS = {"debug_callback", "io_callback", "pure_callback", "debug_print"}
#: Not for its own sake: a factorisation of an (n x n) matrix is about n^3 FLOPs.
FACTORISATIONS = {
    *("cholesky", "lu", "geqrf", "householder_product", "svd", "eigh", "eig", "schur", "triangular_solve"),
    *("tridiagonal", "hessenberg", "qr"),
}


def node_of(name: str, inputs: list[Value], outputs: list[Value], params: dict[str, Any], phase: str) -> Node:
    """The operator that a primitive is, if it is neither a call nor a view."""
    node = Node(name, "elementwise", phase, inputs, outputs, dtype=_arithmetic(inputs, outputs))
    rule = _rule(name) or _elementwise
    rule(node, params)
    return node


def has_rule(name: str) -> bool:
    """Whether a primitive is known, even if it carries a jaxpr (how to compare, how to combine)."""
    return name in VIEWS or _rule(name) is not None


def _rule(name: str) -> Callable[[Node, dict[str, Any]], None] | None:
    return RULES.get(name) or next((act for start, act in FAMILIES if name.startswith(start)), None)


def _arithmetic(inputs: list[Value], outputs: list[Value]) -> str:
    """The type that is computed in: what is made, or what is compared."""
    made = outputs[0].dtype if outputs else "bool"
    return made if made != "bool" or not inputs else max(inputs, key=lambda value: value.size).dtype


def _elementwise(node: Node, _params: dict[str, Any]) -> None:
    """Also what is not known here, if its shapes are those of an elementwise operator."""
    shapes = {output.shape for output in node.outputs}
    if len(shapes) != 1 or not all(_broadcasts(value.shape, next(iter(shapes))) for value in node.inputs):
        _other(node, _params)
        return
    node.fusible = True
    node.flops = node.outputs[0].size


def _broadcasts(shape: tuple[int, ...], to: tuple[int, ...]) -> bool:
    if not shape:
        return True
    return len(shape) == len(to) and all(a in (1, b) for a, b in zip(shape, to, strict=True))


def _move(node: Node, _params: dict[str, Any]) -> None:
    node.kind, node.fusible = "copy", True
    if node.name == "select_n":
        node.kind = "elementwise"


def _constant(node: Node, _params: dict[str, Any]) -> None:
    node.kind, node.fusible, node.bytes_read, node.bytes_written = "copy", True, 0, 0


def _random(node: Node, _params: dict[str, Any]) -> None:
    node.kind, node.fusible = "random", True


def _dot_general(node: Node, params: dict[str, Any]) -> None:
    left, right = node.inputs[:2]
    node.kind, node.dtype = "matmul", left.dtype
    node.flops, node.attributes = products.dot_general(left.shape, right.shape, params["dimension_numbers"])
    _precision(node, params)


def _ragged_dot(node: Node, _params: dict[str, Any]) -> None:
    node.kind, node.dtype = "matmul", node.inputs[0].dtype
    node.flops, node.attributes = products.ragged_dot(node.inputs[0].shape, node.inputs[1].shape)


def _convolution(node: Node, params: dict[str, Any]) -> None:
    left, right, out = node.inputs[0].shape, node.inputs[1].shape, node.outputs[0].shape
    node.kind, node.dtype = "convolution", node.inputs[0].dtype
    node.flops, node.attributes = products.convolution(left, right, out, params, node.phase)
    _precision(node, params)


def _precision(node: Node, params: dict[str, Any]) -> None:
    """Where the script asks for other than the device's own way to compute fp32."""
    asked = params.get("precision")
    asked = asked[0] if isinstance(asked, tuple) else asked
    if asked is not None:
        node.attributes["precision"] = str(getattr(asked, "name", asked)).lower()


def _attention(node: Node, params: dict[str, Any]) -> None:
    query, key, value = (one.shape for one in node.inputs[:3])
    node.kind = "attention"
    node.flops, node.attributes = products.fused_attention(
        node.name, query, key, value, heads_first=bool(params.get("layout", 0))
    )


def _recurrent(node: Node, params: dict[str, Any]) -> None:
    rows = next(value.shape for value in node.inputs if len(value.shape) == 3 and _is_rows(value, params))
    node.kind = "rnn"
    node.flops, node.attributes = products.recurrent(node.name, rows, params)


def _is_rows(value: Value, params: dict[str, Any]) -> bool:
    return bool(value.shape[-1] == params["input_size"])


def _reduction(node: Node, _params: dict[str, Any]) -> None:
    node.kind, node.absorbs, node.fusible = "reduction", True, False
    node.flops = sum(value.size for value in node.inputs[: max(len(node.outputs), 1)])


def _pooling(node: Node, params: dict[str, Any]) -> None:
    window = tuple(params.get("window_dimensions", ()))
    node.kind = "pooling"
    node.attributes = {"kernel": window, "stride": tuple(params.get("window_strides", ()))}
    small = min((value.size for value in node.inputs + node.outputs if value.shape), default=0)
    node.flops = small * math.prod(window)


def _scan(node: Node, _params: dict[str, Any]) -> None:
    node.kind, node.flops = "reduction", node.inputs[0].size


def _gather(node: Node, params: dict[str, Any]) -> None:
    """Whole rows of a table are an embedding; it reads what it returns."""
    table, chosen = node.inputs[0].shape, tuple(params["slice_sizes"])
    rows = len(table) > 1 and chosen[0] == 1 and chosen[1:] == table[1:] and node.dtype != "bool"
    node.kind = "embedding" if rows else "copy"
    node.dtype = node.outputs[0].dtype
    node.bytes_read = node.outputs[0].bytes + sum(value.read_bytes for value in node.inputs[1:])


def _scatter(node: Node, params: dict[str, Any]) -> None:
    """Adds to or sets parts of an array in place; over zeros, these are written first."""
    table, indices, updates = node.inputs[:3]
    window = params["dimension_numbers"].update_window_dims
    whole = tuple(size for axis, size in enumerate(updates.shape) if axis in window)
    rows = len(table.shape) > 1 and whole == table.shape[1:]
    adds = "add" in node.name
    node.kind = "embedding" if rows else "copy"
    node.dtype = updates.dtype
    node.flops = updates.size if adds else 0
    node.bytes_read = updates.read_bytes * (2 if adds else 1) + indices.read_bytes
    node.bytes_written = updates.bytes + (table.bytes if table.root.size == 1 else 0)


def _update_slice(node: Node, _params: dict[str, Any]) -> None:
    """In place, as in the loops that it comes from."""
    update = node.inputs[1]
    node.kind, node.dtype = "copy", update.dtype
    node.bytes_read = node.bytes_written = update.bytes


def _sort(node: Node, _params: dict[str, Any]) -> None:
    node.kind = "sort"


def _communicate(node: Node, _params: dict[str, Any]) -> None:
    node.kind = "communication"


def _factorise(node: Node, _params: dict[str, Any]) -> None:
    shape = node.inputs[0].shape
    node.kind, node.guessed = "other", True
    node.flops = math.prod(shape) * min(shape[-2:])


def _fourier(node: Node, params: dict[str, Any]) -> None:
    """The 5 n log2(n) of the Cooley-Tukey algorithm by which FFTs are compared (http://www.fftw.org/speed)."""
    length = math.prod(params["fft_lengths"])
    size = max(value.size for value in node.inputs + node.outputs)
    node.kind, node.flops = "other", round(5 * size * math.log2(max(length, 2)))


def _other(node: Node, _params: dict[str, Any]) -> None:
    node.kind, node.guessed, node.effect = "other", True, not node.outputs


RULES: dict[str, Callable[[Node, dict[str, Any]], None]] = {
    **dict.fromkeys(MOVES, _move),
    **dict.fromkeys(CONSTANTS, _constant),
    **dict.fromkeys(COMMUNICATION, _communicate),
    **dict.fromkeys(SORTS, _sort),
    **dict.fromkeys(SCANS, _scan),
    **dict.fromkeys(EFFECTS, _other),
    **dict.fromkeys(FACTORISATIONS, _factorise),
    **dict.fromkeys(("argmax", "argmin"), _reduction),
    "dot_general": _dot_general,
    "ragged_dot": _ragged_dot,
    "ragged_dot_general": _ragged_dot,
    "conv_general_dilated": _convolution,
    "gather": _gather,
    "dynamic_update_slice": _update_slice,
    "fft": _fourier,
}
#: By how the name begins, after `RULES`.
FAMILIES: tuple[tuple[str, Callable[[Node, dict[str, Any]], None]], ...] = (
    ("reduce_window", _pooling),
    ("reduce", _reduction),
    ("select_and", _pooling),
    ("scatter", _scatter),
    ("random_", _random),
    ("rng_", _random),
    ("threefry", _random),
    ("dot_product_attention", _attention),
    ("rnn_", _recurrent),
)
