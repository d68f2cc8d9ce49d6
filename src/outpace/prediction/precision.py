"""A traced step in another precision, as automatic mixed precision would run it.

PyTorch's lists of what autocast computes in 16 bits and in 32 (https://pytorch.org/docs/stable/amp.html),
applied
to operators that are already traced: what lies between them follows the types of what it reads, told by
    shape.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

import msgspec

from outpace.prediction.parts import ON_MATRIX_UNITS
from outpace.records import Card, Operator

PRECISIONS = ("as written", "fp32", "tf32", "fp16-amp", "bf16-amp")

_HALF = {"fp16-amp": "fp16", "bf16-amp": "bf16"}
#: Autocast computes these in 32 bits, by kind or by name.
_FULL_KINDS = ("softmax", "sort")
_FULL_NAMES = frozenset(
    name
    for line in (
        "layer_norm group_norm instance_norm rms_norm cumsum cumprod exp log pow prod sum linalg_vector_norm",
        "mse_loss l1_loss smooth_l1_loss binary_cross_entropy _cdist_forward tan sinh cosh erfinv rsqrt",
        "reciprocal",
    )
    for name in line.split()
)


def why_not(card: Card, precision: str) -> str | None:
    """Why *card* cannot train in *precision*, or ``None``."""
    if precision == "tf32" and "tf32" not in card.matrix_flops_per_second:
        return f"{card.title} has no TF32"
    if precision == "bf16-amp" and not _has(card, "bf16"):
        return f"{card.title} has no bf16 arithmetic"
    if precision == "fp16-amp" and not _has(card, "fp16"):
        return f"no fp16 rate of {card.title} is known"
    return None


def _has(card: Card, dtype: str) -> bool:
    return dtype in card.matrix_flops_per_second or dtype in card.vector_flops_per_second


def of_step(
    operators: Sequence[Operator], precision: str, card: Card, *, parameter_bytes: int, tf32_by_default: bool
) -> list[Operator]:
    """*operators* as they would run on *card* in *precision*.

    Args:
        parameter_bytes: of the weights, which autocast casts in every step.
        tf32_by_default: the framework computes every fp32 product in TF32 where a card has it (TensorFlow,
            JAX);
            PyTorch does so for convolutions.
    """
    has_tf32 = card.vendor == "nvidia" and "tf32" in card.matrix_flops_per_second
    products = {operator.dtype for operator in operators if operator.kind in ON_MATRIX_UNITS}
    if precision in _HALF and not products & {"fp16", "bf16"}:  # else it was traced so
        return _Autocast(_HALF[precision]).step(operators, parameter_bytes, scaled=precision == "fp16-amp")
    return [_single(operator, precision, has_tf32, tf32_by_default) for operator in operators]


def _single(operator: Operator, precision: str, has_tf32: bool, always: bool) -> Operator:
    if operator.kind not in ON_MATRIX_UNITS or operator.dtype != "fp32":
        return operator
    wanted = precision == "tf32" or (
        precision == "as written" and (always or bool(operator.attributes.get("tf32")))
    )
    if wanted and (has_tf32 or precision == "tf32"):
        return msgspec.structs.replace(operator, dtype="tf32")
    return operator


class _Autocast:
    def __init__(self, half: str) -> None:
        self._half = half
        self._in_half: dict[tuple[int, ...], bool] = {}
        """Shapes of activations, and whether the latest of that shape has 16 bits."""

    def step(self, operators: Sequence[Operator], parameter_bytes: int, *, scaled: bool) -> list[Operator]:
        found: list[Operator] = []
        casts: dict[tuple[str, tuple[int, ...]], int] = {}
        for operator in operators:
            if operator.phase == "optimizer" or operator.dtype not in ("fp32", "tf32"):
                found.append(operator)
                continue
            if self._computes_in_half(operator):
                activation = operator.inputs[:1]
                if operator.phase == "forward" and self._full(activation):
                    casts[operator.phase, activation[0]] = operator.count
                found.append(self._halved(operator))
            else:
                found.append(operator)
        found += [_cast(phase, shape, count) for (phase, shape), count in casts.items()]
        products = sum(op.count for op in operators if op.kind in ON_MATRIX_UNITS and op.phase == "forward")
        if products and parameter_bytes:
            found += _weight_casts(parameter_bytes, products)
            if scaled:
                found.append(_unscaling(parameter_bytes))
        return found

    def _computes_in_half(self, operator: Operator) -> bool:
        half = self._decide(operator)
        for shape in operator.outputs:
            if len(shape) > 1:
                self._in_half[shape] = half
        return half

    def _decide(self, operator: Operator) -> bool:
        if operator.kind in ON_MATRIX_UNITS:
            return True
        if operator.kind in _FULL_KINDS or _stem(operator.name) in _FULL_NAMES:
            return False
        activations = [shape for shape in operator.inputs if len(shape) > 1]
        if operator.kind == "normalization":  # of batches: 16 bits in and out, statistics in 32
            activations = activations[:1]
        return bool(activations) and all(self._in_half.get(shape, False) for shape in activations)

    def _full(self, shapes: Iterable[tuple[int, ...]]) -> bool:
        return any(not self._in_half.get(shape, False) for shape in shapes)

    def _halved(self, operator: Operator) -> Operator:
        return msgspec.structs.replace(
            operator,
            dtype=self._half,
            bytes_read=operator.bytes_read // 2,
            bytes_written=operator.bytes_written // 2,
        )


def _stem(name: str) -> str:
    """``aten.native_layer_norm_backward`` as ``layer_norm``."""
    return name.removeprefix("aten.").removeprefix("native_").removesuffix("_backward")


def _cast(phase: str, shape: tuple[int, ...], count: int) -> Operator:
    elements = 1
    for size in shape:
        elements *= size
    return Operator(
        kind="copy",
        name="autocast of activations",
        phase=phase,
        dtype="fp32",
        inputs=(shape,),
        outputs=(shape,),
        bytes_read=4 * elements,
        bytes_written=2 * elements,
        count=count,
    )


def _weight_casts(parameter_bytes: int, products: int) -> list[Operator]:
    """Every weight is cast once per step, and its gradient cast back."""
    each = parameter_bytes // products
    return [
        Operator(
            kind="copy",
            name="autocast of weights",
            phase=phase,
            dtype="fp32",
            bytes_read=read,
            bytes_written=written,
            count=products,
        )
        for phase, read, written in (("forward", each, each // 2), ("backward", each // 2, each))
    ]


def _unscaling(parameter_bytes: int) -> Operator:
    """A `GradScaler` divides every gradient and looks for infinities."""
    return Operator(
        kind="optimizer",
        name="aten._amp_foreach_non_finite_check_and_unscale",
        phase="optimizer",
        dtype="fp32",
        flops=parameter_bytes // 2,
        bytes_read=parameter_bytes,
        bytes_written=parameter_bytes,
    )
