"""The operators of a jaxpr: calls are looked into, loops counted, elementwise neighbours fused.

JAX marks no passes. The names under which it differentiates tell: what stands below ``transpose(`` is the
backward pass, what stands below ``jvp(`` is the forward pass of it. Of the rest, what is computed from
results of the backward pass (clipping, moments, new parameters) is the optimizer's, and all else forward.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from outpace.records import Operator
from outpace.xla import fusion
from outpace.xla.nodes import Node, Value, dtype_name
from outpace.xla.primitives import VIEWS, has_rule, node_of

if TYPE_CHECKING:
    from jax.extend.core import ClosedJaxpr

#: Functions of JAX in whose bodies elementwise operators and reductions are a softmax.
SOFTMAX = ("softmax", "logsumexp", "log_softmax")


@dataclasses.dataclass(frozen=True)
class Place:
    """Where in the step a jaxpr is called: below a mark of a pass, in a softmax."""

    phase: str | None = None
    softmax: bool = False


def operators_of(closed_jaxpr: ClosedJaxpr) -> list[Operator]:
    """The operators of one call, equal ones added up. See `fusion` for what is one kernel."""
    return walk(closed_jaxpr, ())[0]


def walk(closed_jaxpr: Any, from_gradient: Sequence[bool]) -> tuple[list[Operator], list[bool]]:
    """The operators of one call, and which of its results are computed from gradients.

    Args:
        from_gradient: which of the arguments are; missing ones are not.
    """
    arguments = [_value(variable) for variable in closed_jaxpr.jaxpr.invars]
    for argument, mark in zip(arguments, from_gradient, strict=False):
        argument.from_gradient = mark
    found, results = _region(closed_jaxpr, arguments, Place())
    return found, [result.from_gradient for result in results]


def _region(jaxpr: Any, arguments: list[Value], place: Place) -> tuple[list[Operator], list[Value]]:
    """What runs apart from its surroundings: a whole program, the body of a loop, a branch."""
    nodes: list[Node] = []
    results = _flatten(jaxpr, arguments, place, nodes)
    _mark_softmax(nodes)
    return fusion.operators(nodes, results), results


def _value(variable: Any) -> Value:
    aval = variable.aval
    dtype = getattr(aval, "dtype", None)
    if dtype is None:  # a token
        return Value((), "other", 0)
    shape = tuple(int(size) for size in aval.shape)
    return Value(shape, dtype_name(dtype), int(getattr(dtype, "itemsize", 8)))


def _flatten(jaxpr: Any, arguments: list[Value], place: Place, nodes: list[Node]) -> list[Value]:
    """Append the operators of *jaxpr* (closed or open) to *nodes*; returns its results."""
    body = getattr(jaxpr, "jaxpr", jaxpr)
    known: dict[Any, Value] = dict(zip(body.invars, arguments, strict=True))
    known |= {variable: _value(variable) for variable in body.constvars}

    def look_up(atom: Any) -> Value:
        return _value(atom) if hasattr(atom, "val") else known[atom]

    for equation in body.eqns:
        inputs = [look_up(atom) for atom in equation.invars]
        outputs = [_value(variable) for variable in equation.outvars]
        phase, below = _phase(place, equation, inputs)
        made = _call(equation, inputs, below, nodes)
        if made is not None:
            for new, output in zip(made, outputs, strict=True):
                output.base, output.from_gradient = new, new.from_gradient
        else:
            mark = phase == "backward" or any(value.from_gradient for value in inputs)
            for output in outputs:
                output.from_gradient = mark
            _operator(equation, inputs, outputs, phase, below, nodes)
        known |= dict(zip(equation.outvars, outputs, strict=True))
    return [look_up(atom) for atom in body.outvars]


def _phase(place: Place, equation: Any, inputs: list[Value]) -> tuple[str, Place]:
    """The phase of an equation, and the place of what it calls."""
    stack = str(equation.source_info.name_stack)
    name = str(equation.params.get("name", ""))
    softmax = place.softmax or any(word in name for word in SOFTMAX)
    if "transpose(" in stack or place.phase == "backward":
        return "backward", Place("backward", softmax)
    if "jvp(" in stack or place.phase == "forward":
        return "forward", Place("forward", softmax)
    phase = "optimizer" if any(value.from_gradient for value in inputs) else "forward"
    return phase, Place(None, softmax)


def _operator(
    equation: Any, inputs: list[Value], outputs: list[Value], phase: str, place: Place, nodes: list[Node]
) -> None:
    name = equation.primitive.name
    if inputs and (name in VIEWS or _only_drops_ones(name, inputs, outputs)):
        for index, output in enumerate(outputs):
            source = inputs[index] if len(outputs) == len(inputs) else inputs[-1 if name == "tie" else 0]
            output.base = source
        return
    node = node_of(name, inputs, outputs, equation.params, phase)
    node.effect |= bool(equation.effects)
    if place.softmax and (node.fusible or node.absorbs) and node.kind in ("elementwise", "reduction"):
        node.kind = "softmax"
    nodes.append(node)


def _only_drops_ones(name: str, inputs: list[Value], outputs: list[Value]) -> bool:
    """Whether a reduction runs over axes of one element."""
    return name in ("reduce_sum", "reduce_max", "reduce_min") and inputs[0].size == outputs[0].size


def _call(equation: Any, inputs: list[Value], place: Place, nodes: list[Node]) -> list[Value] | None:
    """Look into a call of another jaxpr: its results, or ``None`` if the equation is none."""
    name, params = equation.primitive.name, equation.params
    control = CONTROL.get(name)
    if control is not None:
        children, results = control(params, inputs, place)
        outputs = [_value(variable) for variable in equation.outvars]
        for output, result in zip(outputs, results, strict=True):
            output.from_gradient = result.from_gradient
        node = Node(name, "other", "forward", inputs, outputs, children=children)
        node.effect = bool(equation.effects)
        nodes.append(node)
        return outputs
    if has_rule(name):
        return None
    inside = [value for value in params.values() if _is_jaxpr(value)]
    if len(inside) != 1:
        return None
    variables = getattr(inside[0], "jaxpr", inside[0]).invars
    if len(variables) != len(inputs):
        return None
    # Under shard_map a device sees its part of an array only.
    arguments = [_part(value, variable) for value, variable in zip(inputs, variables, strict=True)]
    return _flatten(inside[0], arguments, place, nodes)


def _is_jaxpr(value: Any) -> bool:
    return hasattr(getattr(value, "jaxpr", value), "eqns")


def _part(value: Value, variable: Any) -> Value:
    inner = _value(variable)
    if inner.shape == value.shape:
        return value
    inner.base, inner.from_gradient = value, value.from_gradient
    return inner


def _fresh(jaxpr: Any, given: list[Value]) -> list[Value]:
    """Arguments of a body, that are from gradients where those *given* to its loop are."""
    arguments = [_value(variable) for variable in getattr(jaxpr, "jaxpr", jaxpr).invars]
    for argument, value in zip(arguments, given, strict=True):
        argument.from_gradient = value.from_gradient
    return arguments


def _scan(params: Any, inputs: list[Value], place: Place) -> tuple[list[Operator], list[Value]]:
    body = params["jaxpr"]
    found, results = _region(body, _fresh(body, inputs), place)
    return fusion.times(found, int(params["length"])), results


def _while(params: Any, inputs: list[Value], place: Place) -> tuple[list[Operator], list[Value]]:
    """How often it runs, only running it tells: once, and marked as guessed."""
    test, body = params["cond_jaxpr"], params["body_jaxpr"]
    first, second = params["cond_nconsts"], params["cond_nconsts"] + params["body_nconsts"]
    found, _ = _region(test, _fresh(test, inputs[:first] + inputs[second:]), place)
    more, results = _region(body, _fresh(body, inputs[first:]), place)
    return fusion.times(found + more, 1, guessed=True), results


def _cond(params: Any, inputs: list[Value], place: Place) -> tuple[list[Operator], list[Value]]:
    """Its dearest branch, guessed unless all cost the same."""
    branches = [_region(branch, _fresh(branch, inputs[1:]), place) for branch in params["branches"]]
    costs = [_cost(found) for found, _ in branches]
    found, results = branches[costs.index(max(costs))]
    return fusion.times(found, 1, guessed=len(set(costs)) > 1), results


def _cost(found: list[Operator]) -> tuple[int, int]:
    flops = sum(operator.flops * operator.count for operator in found)
    return flops, sum((operator.bytes_read + operator.bytes_written) * operator.count for operator in found)


def _pallas(params: Any, inputs: list[Value], place: Place) -> tuple[list[Operator], list[Value]]:
    """A hand-written kernel: its body once per cell of its grid, its arrays read and written once."""
    body = params["jaxpr"]
    found, _ = _region(body, [_value(variable) for variable in body.invars], place)
    cells = 1
    for size in params["grid_mapping"].grid:
        cells *= size if isinstance(size, int) else 1
    outputs = [_value(_Shaped(aval)) for aval in params["out_avals"]]
    kernel = Operator(
        kind="other",
        name="pallas_call",
        phase=place.phase or "forward",
        dtype=max(inputs + outputs, key=lambda value: value.bytes).dtype,
        inputs=tuple(value.shape for value in inputs),
        outputs=tuple(value.shape for value in outputs),
        flops=_cost(found)[0] * cells,
        bytes_read=sum(value.read_bytes for value in inputs),
        bytes_written=sum(value.bytes for value in outputs),
        guessed=True,
    )
    return [kernel], outputs


@dataclasses.dataclass(frozen=True)
class _Shaped:
    aval: Any


CONTROL = {"scan": _scan, "while": _while, "cond": _cond, "pallas_call": _pallas}


def _mark_softmax(nodes: list[Node]) -> None:
    """``exp`` that is summed up is a softmax also where no function's name says so."""
    exponentials = {node.outputs[0]: node for node in nodes if node.name == "exp"}
    for node in nodes:
        if node.name == "reduce_sum" and node.inputs[0].root in exponentials:
            node.kind = exponentials[node.inputs[0].root].kind = "softmax"
