"""The operators of a graph of TensorFlow: functions are looked into, loops of fixed length counted.

What stands below ``gradient_tape/`` or ``gradients/`` is the backward pass. Of the rest, what is computed
from its results is the optimizer's, and all else forward. Each operator is a kernel, except in functions that
XLA compiles, where elementwise neighbours are one. Sizes, which the host computes, are left out.
"""

from __future__ import annotations

import dataclasses
from typing import Any

from outpace.observe.keras import graph_costs
from outpace.observe.keras import graph_functions as functions
from outpace.observe.keras.graph_shapes import Shape, Shapes
from outpace.records import Operator
from outpace.xla import fusion
from outpace.xla.nodes import Node, Value, dtype_name

CALLS = {"PartitionedCall", "StatefulPartitionedCall"}
LOOPS = {"While", "StatelessWhile"}
BRANCHES = {"If", "StatelessIf", "Case", "StatelessCase"}
#: A host keeps such small integers, which are sizes and axes.
HOST_ELEMENTS = 16


@dataclasses.dataclass(frozen=True)
class Setting:
    """What holds for a graph because of where it is called from."""

    batch: int | None
    compiled: bool = False
    backward: bool = False


@dataclasses.dataclass
class Result:
    """What runs in a graph, and what it returns."""

    operators: list[Operator]
    shapes: list[Shape]
    from_gradient: list[bool]


def operators_of_graph(
    graph: Any, batch: int | None, shapes: list[Shape] | None = None, *, compiled: bool = False
) -> list[Operator]:
    """The operators of one call of a function's *graph*, equal ones added up.

    Args:
        batch: what dimensions that the graph leaves open are.
        shapes: those of the first inputs, where more than that is known.
        compiled: whether XLA compiles the whole of it.
    """
    given = list(shapes or [])
    return Walk(graph, Setting(batch, compiled), given, []).result().operators


def shapes_of_inputs(concrete: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> list[Shape] | None:
    """The real shapes of a function's inputs, if they are the arrays among its arguments one by one."""
    import tensorflow

    leaves = tensorflow.nest.flatten((args, kwargs), expand_composites=True)
    arrays = [leaf for leaf in leaves if hasattr(leaf, "shape") and hasattr(leaf, "dtype")]
    given = [tuple(map(int, leaf.shape)) for leaf in arrays]
    wanted = concrete.inputs[: len(concrete.inputs) - len(concrete.captured_inputs)]
    if len(given) != len(wanted):
        return None
    fits = all(tensor.shape.is_compatible_with(shape) for tensor, shape in zip(wanted, given, strict=True))
    return given if fits else None


class Walk:
    """One pass over a graph.

    Args:
        shapes: of its inputs; missing ones are as promised.
        values: of its inputs, for what a variable holds and what is from gradients; missing ones are new.
    """

    def __init__(self, graph: Any, setting: Setting, shapes: list[Shape], values: list[Value]) -> None:
        self.graph = graph
        self.setting = setting
        self.shapes = Shapes(setting.batch)
        self.values: dict[str, Value] = {}
        self.variables: dict[str, Value] = {}
        """What a variable holds now, by the handle."""
        self.nodes: list[Node] = []
        self.sizes: set[Value] = set()
        """What only says how large something is, or which axes, and stays on the host."""
        self.kept: list[Value] = []
        """Results that leave the graph otherwise than by being returned."""
        for tensor, shape in zip(graph.inputs, shapes, strict=False):
            if tensor.dtype.name not in ("resource", "variant"):
                self.shapes.put(tensor, shape)
        for tensor, value in zip(graph.inputs, values, strict=False):
            if tensor.dtype.name == "resource" and value.itemsize:
                self.variables[tensor.name] = value
            else:
                fresh = self._new(tensor)
                fresh.from_gradient = value.from_gradient
                self.values[tensor.name] = fresh

    def put_value(self, index: int, value: int) -> None:
        """The input at *index* is a scalar that is known."""
        self.shapes.put_value(self.graph.inputs[index], value)

    def result(self, unread: frozenset[int] = frozenset()) -> Result:
        """Walk to the end.

        Args:
            unread: which outputs nobody reads; TensorFlow does not compute them.
        """
        known = {tensor.name for tensor in self.graph.inputs if tensor.name in self.shapes}
        for operation in self.graph.get_operations():
            if operation.type not in ("Placeholder",) or operation.outputs[0].name not in known:
                self.shapes.copy(operation)
            self._visit(operation)
        returned = [self._value(tensor) for tensor in self.graph.outputs]
        wanted = [value for index, value in enumerate(returned) if index not in unread]
        operators = fusion.operators(self.nodes, wanted + self.kept, fuse=self.setting.compiled)
        return Result(
            operators,
            [self.shapes.of(tensor) for tensor in self.graph.outputs],
            [value.from_gradient for value in returned],
        )

    def _new(self, tensor: Any) -> Value:
        name = tensor.dtype.name
        if name in ("resource", "variant", "string"):
            return Value((), name, 0)
        return Value(self.shapes.of(tensor), dtype_name(name.removesuffix("_ref")), int(tensor.dtype.size))

    def _value(self, tensor: Any) -> Value:
        value = self.values.get(tensor.name)
        if value is None:
            value = self.values[tensor.name] = self._new(tensor)
        return value

    def _visit(self, operation: Any) -> None:
        inputs = [self._value(tensor) for tensor in operation.inputs]
        tainted = any(value.from_gradient for value in inputs)
        # Gradients that several operators send to one are added up outside of the tape's name.
        backward = self.setting.backward or (tainted and operation.type == "AddN")
        backward |= any(mark in operation.name for mark in ("gradient_tape/", "gradients/"))
        if operation.type in CALLS | LOOPS | BRANCHES:
            self._call(operation, inputs, dataclasses.replace(self.setting, backward=backward))
            return
        outputs = [self._value(tensor) for tensor in operation.outputs]
        for output in outputs:
            output.from_gradient = backward or tainted
        phase = "backward" if backward else "optimizer" if tainted else "forward"
        self._operator(operation, inputs, outputs, phase)

    def _operator(self, operation: Any, inputs: list[Value], outputs: list[Value], phase: str) -> None:
        kind = operation.type
        if kind == "ReadVariableOp":
            self._read(operation, outputs[0])
        elif kind == "AssignVariableOp":
            self.kept.append(inputs[1])
            self.variables[operation.inputs[0].name] = inputs[1]
        elif kind in ("AssignAddVariableOp", "AssignSubVariableOp"):
            handle, value = operation.inputs[0].name, inputs[1]
            before = self.variables.get(handle) or Value(value.shape, value.dtype, value.itemsize)
            after = Value(value.shape, value.dtype, value.itemsize, from_gradient=value.from_gradient)
            self.variables[handle] = after
            self.kept.append(after)
            if value.size > 1:
                self.nodes.append(graph_costs.node_of(operation, [value, before], [after], phase))
        elif kind in graph_costs.FREE or (self.setting.compiled and kind in graph_costs.LAYOUT):
            self._view(kind, inputs, outputs)
        elif kind in ("Sum", "Mean") and inputs[0].size == outputs[0].size:
            outputs[0].base = inputs[0]
        elif _on_host(inputs, outputs):
            self.sizes |= {output for output in outputs if _small(output)}
        else:
            node = graph_costs.node_of(operation, inputs, outputs, phase)
            node.inputs = [value for value in inputs if value.root not in self.sizes]
            node.guessed |= any(self.shapes.guessed(tensor) for tensor in operation.outputs)
            self.nodes.append(node)

    def _read(self, operation: Any, output: Value) -> None:
        held = self.variables.setdefault(
            operation.inputs[0].name, Value(output.shape, output.dtype, output.itemsize)
        )
        output.base, output.from_gradient = held, held.from_gradient

    def _view(self, kind: str, inputs: list[Value], outputs: list[Value]) -> None:
        if kind in graph_costs.SIZES or not inputs:
            self.sizes |= {output for output in outputs if _small(output)}
            return
        if kind not in graph_costs.VIEWS | graph_costs.LAYOUT:
            self.kept += [value for value in inputs if value.itemsize]  # it leaves in a list, say
            return
        for index, output in enumerate(outputs):
            output.base = inputs[index if kind == "IdentityN" else kind == "Split"]

    def _call(self, operation: Any, inputs: list[Value], setting: Setting) -> None:
        kind = operation.type
        if kind in CALLS:
            inside = self._walk(operation, functions.function(operation, "f"), inputs, setting)
            result = inside.result(self._unread(operation))
        elif kind in LOOPS:
            result = self._loop(operation, inputs, setting)
        else:
            result = self._branch(operation, inputs, setting)
        outputs = []
        for index, tensor in enumerate(operation.outputs):
            if kind not in LOOPS and tensor.dtype.name not in ("resource", "variant"):
                self.shapes.put(tensor, result.shapes[index])
            output = self._new(tensor)
            output.from_gradient = result.from_gradient[index] or setting.backward
            self.values[tensor.name] = output
            outputs.append(output)
        held = [self.variables[t.name] for t in operation.inputs if t.name in self.variables]
        node = Node(kind, "other", "forward", inputs + held, outputs, children=result.operators)
        node.effect = True  # variables may be changed in it
        self.nodes.append(node)

    def _unread(self, operation: Any) -> frozenset[int]:
        returned = {tensor.name for tensor in self.graph.outputs}
        return frozenset(
            index
            for index, tensor in enumerate(operation.outputs)
            if not tensor.consumers() and tensor.name not in returned
        )

    def _walk(self, operation: Any, graph: Any, inputs: list[Value], setting: Setting, skip: int = 0) -> Walk:
        """A pass over a function that is called with the inputs of *operation* from *skip* on."""
        tensors = list(operation.inputs)[skip:]
        values = [
            self.variables.get(tensor.name, value)
            for tensor, value in zip(tensors, inputs[skip:], strict=True)
        ]
        compiled = setting.compiled or functions.compiled(operation)
        setting = dataclasses.replace(setting, compiled=compiled)
        return Walk(graph, setting, [self.shapes.of(tensor) for tensor in tensors], values)

    def _loop(self, operation: Any, inputs: list[Value], setting: Setting) -> Result:
        """Its body as often as it runs, or once and guessed."""
        rounds, counters = functions.rounds(operation, self.shapes)
        result = self._walk(operation, functions.function(operation, "body"), inputs, setting).result()
        result.operators = fusion.times(result.operators, rounds or 1, guessed=rounds is None)
        for index, tensor in enumerate(operation.outputs):
            if index in counters and rounds is not None:
                self.shapes.put_value(tensor, rounds)
            elif tensor.dtype.name not in ("resource", "variant"):
                self.shapes.put(tensor, result.shapes[index])
        return result

    def _branch(self, operation: Any, inputs: list[Value], setting: Setting) -> Result:
        """The dearest one, guessed if they differ."""
        names = ["then_branch", "else_branch"] if "If" in operation.type else []
        graphs = [functions.function(operation, name) for name in names] or functions.functions(
            operation, "branches"
        )
        unread = self._unread(operation)
        results = [self._walk(operation, graph, inputs, setting, skip=1).result(unread) for graph in graphs]
        costs = [_cost(result.operators) for result in results]
        dearest = results[costs.index(max(costs))]
        dearest.operators = fusion.times(dearest.operators, 1, guessed=len(set(costs)) > 1)
        return dearest


def _cost(found: list[Operator]) -> tuple[int, int]:
    flops = sum(operator.flops * operator.count for operator in found)
    return flops, sum((operator.bytes_read + operator.bytes_written) * operator.count for operator in found)


def _on_host(inputs: list[Value], outputs: list[Value]) -> bool:
    """Whether it makes sizes of sizes."""
    made = [output for output in outputs if output.itemsize]
    return all(map(_small, made)) and all(value.size <= HOST_ELEMENTS for value in inputs)


def _small(value: Value) -> bool:
    return value.dtype in ("int32", "int64", "bool") and value.size <= HOST_ELEMENTS
