"""Functions that operators of TensorFlow call, and how often its loops run."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import tensorflow

if TYPE_CHECKING:
    from outpace.observe.keras.graph_shapes import Shapes


def rounds(operation: Any, shapes: Shapes) -> tuple[int | None, set[int]]:
    """How often a loop runs that counts from 0 to what is known, and which of its variables count."""
    test = function(operation, "cond")
    places = {tensor.name: index for index, tensor in enumerate(test.inputs)}
    found: dict[int, int] = {}
    for comparison in test.get_operations():
        if comparison.type != "Less":
            continue
        counter, limit = (_behind(tensor) for tensor in comparison.inputs)
        if counter.name not in places:
            continue
        start = shapes.value(operation.inputs[places[counter.name]])
        place = places.get(limit.name)
        end = _constant(limit) if place is None else shapes.value(operation.inputs[place])
        if start is not None and end is not None:
            stride = _stride(function(operation, "body"), places[counter.name])
            found[places[counter.name]] = max(-(-(int(end) - int(start)) // stride), 0)
    return (min(found.values()) if found else None), set(found)


def compiled(operation: Any) -> bool:
    """Whether what an operator calls is marked to be compiled by XLA."""
    attributes = operation.node_def.attr
    return "_XlaMustCompile" in attributes and bool(attributes["_XlaMustCompile"].b)


def function(operation: Any, attribute: str) -> Any:
    """The graph of a function that an operator calls."""
    return _graph_of(operation.graph, operation.node_def.attr[attribute].func.name)


def functions(operation: Any, attribute: str) -> list[Any]:
    """The graphs of several."""
    return [_graph_of(operation.graph, one.name) for one in operation.node_def.attr[attribute].list.func]


def _graph_of(graph: Any, name: str) -> Any:
    while graph is not None:
        found = graph._get_function(name) if hasattr(graph, "_get_function") else None
        if found is not None:
            return found.graph
        graph = getattr(graph, "outer_graph", None)
    raise LookupError(f"the graph has no function {name}")


def _behind(tensor: Any) -> Any:
    """*tensor* before identities and casts."""
    while tensor.op.type in ("Identity", "Cast"):
        tensor = tensor.op.inputs[0]
    return tensor


def _stride(body: Any, index: int) -> int:
    """What the body of a loop adds to its variable at *index*."""
    tensor, added = _behind(body.outputs[index]), 0
    while tensor.op.type in ("Add", "AddV2"):
        left, right = tensor.op.inputs
        constant = _constant(right)
        if constant is None:
            left, constant = right, _constant(left)
        if constant is None:
            break
        added += int(constant)
        tensor = _behind(left)
    return max(added, 1)


def _constant(tensor: Any) -> Any:
    return tensorflow.get_static_value(tensor)
