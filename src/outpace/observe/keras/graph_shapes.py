"""The shapes in a graph of TensorFlow when it runs on a batch of known size.

Graphs are made for batches of any size. Each operator is built anew in an empty graph on inputs of real
shapes, so that TensorFlow's own rules tell what comes out; nothing is computed. Where shapes come out of
lists or variables, those that the graph promises are taken, and the batch for what it leaves open.
"""

from __future__ import annotations

from typing import Any

import tensorflow

Shape = tuple[int, ...]

#: What comes out of them is known to the graph only by what went in elsewhere.
OPAQUE = {
    *("Placeholder", "PlaceholderWithDefault", "ReadVariableOp", "IteratorGetNext", "IteratorGetNextSync"),
    *("OptionalGetValue", "TensorListGetItem", "TensorListPopBack", "TensorListStack", "StackPopV2"),
    *("PartitionedCall", "StatefulPartitionedCall", "While", "StatelessWhile", "If", "StatelessIf", "Case"),
    *("StatelessCase", "ResourceGather", "VarHandleOp", "CudnnRNN", "CudnnRNNV2", "CudnnRNNV3"),
    "CudnnRNNBackpropV3",
}


class Shapes:
    """A copy of a graph, operator by operator, on real shapes.

    Args:
        batch: the size of dimensions that the graph leaves open; 1 stands for unknown.
    """

    def __init__(self, batch: int | None) -> None:
        self.batch = batch or 1
        self._graph = tensorflow.Graph()
        self._copies: dict[str, Any] = {}
        self._filled: set[str] = set()

    def __contains__(self, name: str) -> bool:
        return name in self._copies

    def copy(self, operation: Any) -> None:
        """Build *operation*, whose inputs have been built before."""
        outputs = None
        if operation.type not in OPAQUE:
            outputs = self._built(operation)
        for index, tensor in enumerate(operation.outputs):
            if outputs is None or not outputs[index].shape.is_fully_defined():
                self.put(tensor, self._promised(tensor, None if outputs is None else outputs[index].shape))
            else:
                self._copies[tensor.name] = outputs[index]

    def _built(self, operation: Any) -> Any:
        try:
            inputs = [self._copies[tensor.name] for tensor in operation.inputs]
            # The public one looks at its own signature each time, which takes as long as all the rest.
            build = getattr(self._graph, "_create_op_internal", self._graph.create_op)
            with self._graph.as_default():
                return build(
                    operation.type,
                    inputs,
                    [tensor.dtype for tensor in operation.outputs],
                    attrs={
                        name: value
                        for name, value in operation.node_def.attr.items()
                        if not name.startswith("_")
                    },
                    op_def=operation.op_def,
                ).outputs
        except Exception:  # an operator that needs more than its inputs: its promises must do
            return None

    def put(self, tensor: Any, shape: Shape | None) -> None:
        """*tensor* has *shape*."""
        with self._graph.as_default():
            self._copies[tensor.name] = tensorflow.compat.v1.placeholder(tensor.dtype, shape)

    def put_value(self, tensor: Any, value: int) -> None:
        """*tensor* is a scalar that is known."""
        with self._graph.as_default():
            self._copies[tensor.name] = tensorflow.constant(value, tensor.dtype)

    def of(self, tensor: Any) -> Shape:
        """The shape of *tensor*; that of one that was not built is what the graph promises."""
        copy = self._copies.get(tensor.name)
        if copy is not None and copy.shape.is_fully_defined():
            return tuple(copy.shape.as_list())
        return self._promised(tensor, None)

    def guessed(self, tensor: Any) -> bool:
        """Whether several dimensions were open, or even their number."""
        return tensor.name in self._filled

    def value(self, tensor: Any) -> Any:
        """The value of *tensor* (NumPy), if it is a constant once shapes are known, else ``None``."""
        from tensorflow.python.framework.smart_cond import smart_constant_value

        copy = self._copies.get(tensor.name)
        try:
            return None if copy is None else smart_constant_value(copy)
        except Exception:
            return None

    def _promised(self, tensor: Any, built: Any) -> Shape:
        shape = tensor.shape if built is None else tensor.shape.merge_with(built)
        if tensor.op.type == "Sum" and not shape.is_fully_defined():
            # Gradients of broadcasts sum over axes known when they run, then take the shape of what was.
            reshaped = [use.outputs[0].shape for use in tensor.consumers() if use.type == "Reshape"]
            shape = next((one for one in reshaped if one.rank is not None), shape)
        if shape.rank is None:
            self._filled.add(tensor.name)
            return ()
        dimensions = shape.as_list()
        if dimensions.count(None) > 1:
            self._filled.add(tensor.name)
        return tuple(self.batch if size is None else size for size in dimensions)
