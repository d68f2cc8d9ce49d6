"""What each operator of TensorFlow is: its kind, its arithmetic, its memory traffic."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

from outpace.observe.keras import graph_products as products
from outpace.xla.nodes import Node, Value

Rule = Callable[[Node, Any], None]
Shape = tuple[int, ...]

#: No kernel, or one that only the host runs.
FREE = {
    *("Const", "Placeholder", "PlaceholderWithDefault", "NoOp", "Identity", "IdentityN", "StopGradient"),
    *("PreventGradient", "Reshape", "Squeeze", "ExpandDims", "Bitcast", "ReadVariableOp", "Shape", "ShapeN"),
    *("Size", "Rank", "BroadcastGradientArgs", "VarHandleOp", "EnsureShape", "Snapshot"),
    *("TensorListReserve", "EmptyTensorList", "TensorListGetItem", "TensorListSetItem", "TensorListPushBack"),
    *("TensorListPopBack", "TensorListLength", "TensorListElementShape", "TensorListResize", "OptionalNone"),
    *("OptionalFromValue", "OptionalGetValue", "OptionalHasValue", "IteratorGetNext", "IteratorGetNextSync"),
    *("IteratorGetNextAsOptional", "Assert", "CheckNumerics", "StatelessRandomGetKeyCounter", "PyFunc"),
    *("EagerPyFunc", "IsVariableInitialized", "ControlTrigger", "DeleteIterator", "AnonymousIterator"),
    *("StatelessRandomGetAlg", "FakeParam", "CollectiveInitializeCommunicator"),
}
#: Of those, another way to read an array.
VIEWS = {
    *("Identity", "IdentityN", "StopGradient", "PreventGradient", "Reshape", "Squeeze", "ExpandDims"),
    *("Bitcast", "EnsureShape", "Snapshot", "CheckNumerics"),
}
#: Of those, what tells how large something is.
SIZES = {
    "Shape",
    "ShapeN",
    "Size",
    "Rank",
    "BroadcastGradientArgs",
    "TensorListElementShape",
    "TensorListLength",
}
#: A kernel of their own, and in what XLA compiles another way to read.
LAYOUT = {
    "Transpose",
    "BroadcastTo",
    "StridedSlice",
    "Slice",
    "Split",
    "SplitV",
    "Unpack",
    "Tile",
    "ReverseV2",
}
#: Elementwise without arithmetic.
MOVES = {
    *("Cast", "Fill", "ZerosLike", "OnesLike", "ConcatV2", "Pack", "Pad", "PadV2", "MirrorPad", "Copy"),
    *("TensorListStack", "TensorListFromTensor", "TensorListConcatV2", "OneHot", "SpaceToBatchND"),
    *("BatchToSpaceND", "StridedSliceGrad", "Range", "GatherNd", "Where", "DynamicStitch", "Roll"),
}
REDUCTIONS = {
    *("Sum", "Mean", "Max", "Min", "Prod", "All", "Any", "ArgMax", "ArgMin", "L2Loss", "BiasAddGrad"),
    *("EuclideanNorm", "Cumsum", "Cumprod"),
}
POOLING = {
    f"{kind}Pool{rest}" for kind in ("Max", "Avg") for rest in ("", "V2", "3D", "Grad", "3DGrad", "GradV2")
}
SOFTMAX = {
    *("Softmax", "LogSoftmax", "SoftmaxCrossEntropyWithLogits", "SparseSoftmaxCrossEntropyWithLogits"),
}
NORMALIZATION = {
    "FusedBatchNorm",
    "FusedBatchNormV2",
    "FusedBatchNormV3",
    "_FusedBatchNormEx",
    "LRN",
    "LRNGrad",
}
SORTS = {"TopK", "TopKV2", "InTopKV2", "Unique", "UniqueV2", "UniqueWithCounts", "Bucketize"}


def node_of(operation: Any, inputs: list[Value], outputs: list[Value], phase: str) -> Node:
    """The operator *operation*, one that is not `FREE`.

    Args:
        operation: of a graph; only its type and its attributes are asked.
        inputs, outputs: with the shapes that it runs on.
    """
    name = operation.type
    node = Node(name, "elementwise", phase, inputs, outputs, dtype=_arithmetic(inputs, outputs))
    rule = RULES.get(name) or next((act for part, act in PARTS if part in name), _elementwise)
    rule(node, operation)
    return node


def _arithmetic(inputs: list[Value], outputs: list[Value]) -> str:
    values = [value for value in outputs + inputs if value.itemsize]
    numbers = [value for value in values if value.dtype not in ("bool", "int32", "int64")]
    return (numbers or values or [Value((), "other", 0)])[0].dtype


def _elementwise(node: Node, _operation: Any) -> None:
    """Also what is not known here, if its shapes are those of an elementwise operator."""
    shapes = {output.shape for output in node.outputs}
    shape = max(shapes, key=math.prod, default=())
    if any(value.itemsize and not _broadcasts(value.shape, shape) for value in node.inputs):
        node.kind, node.guessed = "other", True
        return
    node.fusible, node.flops = True, math.prod(shape) * max(len(node.inputs) - 1, 1)


def _broadcasts(shape: Shape, to: Shape) -> bool:
    return len(shape) <= len(to) and all(a in (1, b) for a, b in zip(shape[::-1], to[::-1], strict=False))


def _move(node: Node, _operation: Any) -> None:
    node.kind, node.fusible = "copy", True
    read = sum(value.read_bytes for value in node.inputs)
    if node.name in ("StridedSlice", "Slice", "Split", "SplitV", "GatherNd", "Unpack", "Fill", "BroadcastTo"):
        node.bytes_read = min(sum(value.bytes for value in node.outputs), read)
    elif node.name == "TensorListStack":
        node.bytes_read = node.outputs[0].bytes
    elif node.name == "TensorListFromTensor":
        node.bytes_read = node.bytes_written = read


def _update(node: Node, _operation: Any) -> None:
    """``variable += value``."""
    node.kind = "optimizer" if node.phase == "optimizer" else "elementwise"
    node.fusible, node.effect, node.flops = True, True, node.outputs[0].size


def _reduction(node: Node, _operation: Any) -> None:
    node.kind, node.absorbs, node.flops = "reduction", True, node.inputs[0].size


def _normalization(node: Node, _operation: Any) -> None:
    """Mean, variance, and what is made of them, as they are computed one by one."""
    node.kind = "normalization"
    node.flops = node.inputs[0].size * (11 if "Grad" in node.name else 7)


def _softmax(node: Node, _operation: Any) -> None:
    """Largest, difference, exponential, sum, quotient."""
    node.kind, node.flops = "softmax", 5 * node.inputs[0].size


def _gather(node: Node, _operation: Any) -> None:
    """Rows of a table of numbers are an embedding; it reads what it returns."""
    table, made = node.inputs[0], node.outputs[0]
    rows = len(table.shape) > 1 and made.shape[-len(table.shape) + 1 :] == table.shape[1:]
    rows |= node.name == "ResourceGather" and len(made.shape) > len(node.inputs[1].shape)
    node.kind = "embedding" if rows and "int" not in made.dtype else "copy"
    node.dtype = made.dtype
    node.bytes_read = made.bytes + sum(value.read_bytes for value in node.inputs[1:])


def _segments(node: Node, _operation: Any) -> None:
    """The gradients of an embedding's rows added up into a table."""
    node.kind, node.flops = "embedding", node.inputs[0].size


def _scatter(node: Node, _operation: Any) -> None:
    """Rows of a variable or a copy of it changed."""
    updates = node.inputs[-1]
    node.kind, node.effect, node.flops, node.dtype = (
        "embedding",
        not node.outputs,
        updates.size,
        updates.dtype,
    )
    node.bytes_read = updates.read_bytes * 2 + sum(value.read_bytes for value in node.inputs[1:-1])
    node.bytes_written = updates.bytes


def _apply(node: Node, _operation: Any) -> None:
    """A whole update of a variable in one kernel; its gradient comes with the variable's shape."""
    gradient = max((value for value in node.inputs if value.itemsize), key=lambda value: value.size)
    slots = sum(value.itemsize == 0 for value in node.inputs)
    node.kind, node.phase, node.effect, node.dtype = "optimizer", "optimizer", True, gradient.dtype
    node.flops = 4 * slots * gradient.size
    node.bytes_read, node.bytes_written = (slots + 1) * gradient.bytes, slots * gradient.bytes


def _kind(kind: str, *, fusible: bool = False) -> Rule:
    def rule(node: Node, _operation: Any) -> None:
        node.kind, node.fusible = kind, fusible

    return rule


RULES: dict[str, Rule] = {
    **dict.fromkeys(MOVES | LAYOUT, _move),
    **dict.fromkeys(REDUCTIONS, _reduction),
    **dict.fromkeys(SOFTMAX, _softmax),
    **dict.fromkeys(POOLING, products.pooling),
    **dict.fromkeys(SORTS, _kind("sort")),
    **dict.fromkeys(("AssignAddVariableOp", "AssignSubVariableOp"), _update),
    **dict.fromkeys(("MatMul", "BatchMatMul", "BatchMatMulV2", "BatchMatMulV3"), products.matmul),
    **dict.fromkeys(("Gather", "GatherV2", "ResourceGather"), _gather),
    "Einsum": products.einsum,
}
#: By what the name holds, after `RULES`.
PARTS: tuple[tuple[str, Rule], ...] = (
    ("Conv2D", products.convolution),
    ("Conv3D", products.convolution),
    ("DepthwiseConv2d", products.convolution),
    ("BatchNorm", _normalization),
    ("CudnnRNN", products.recurrent),
    ("ResourceApply", _apply),
    ("ResourceSparseApply", _apply),
    ("Segment", _segments),
    ("Scatter", _scatter),
    ("Random", _kind("random", fusible=True)),
    ("Collective", _kind("communication")),
    ("Nccl", _kind("communication")),
)
