"""What the host does: calls that launch kernels, by class, and how a card groups the optimizer's calls."""

from __future__ import annotations

import math
from collections.abc import Sequence

import msgspec

from outpace.prediction.coefficients import Host
from outpace.prediction.parts import ON_MATRIX_UNITS
from outpace.records import Operator

#: How the calls of a step reach the card.
MODES = ("eager", "compiled", "graphs")
CLASSES = ("forward_heavy", "forward_light", "backward_heavy", "backward_light", "optimizer")
#: Tensors that one call of PyTorch's ``foreach`` optimizers takes: its argument buffer holds about so many.
_TENSORS_PER_CALL = 40


def class_of(operator: Operator) -> str:
    """One of `CLASSES`: a heavy call goes through a library of kernels, with modules of Python around it."""
    if operator.phase == "optimizer":
        return "optimizer"
    heavy = operator.kind in (*ON_MATRIX_UNITS, "normalization")
    return f"{operator.phase}_{'heavy' if heavy else 'light'}"


def host_seconds(operators: Sequence[Operator], host: Host, *, mode: str, scale: float = 1.0) -> float:
    """Seconds of the host for one step.

    Args:
        mode: one of `MODES`.
        scale: of this host over the one that the coefficients are of.
    """
    factor = {"eager": 1.0, "compiled": host.compiled, "graphs": host.graphs}[mode]
    each = {name: float(getattr(host, name)) for name in CLASSES}
    return scale * factor * sum(each[class_of(operator)] * operator.count for operator in operators)


def calls(operators: Sequence[Operator]) -> int:
    """Operator calls in a step."""
    return sum(operator.count for operator in operators)


def grouped_optimizer(operators: Sequence[Operator]) -> list[Operator]:
    """The step as an accelerator runs it: PyTorch's optimizers take many tensors per call there.

    On a CPU, where the step may have been traced, they take one; ``foreach`` is their default on
    accelerators.
    """
    kept: list[Operator] = []
    apart: dict[str, list[Operator]] = {}
    for operator in operators:
        own = operator.name.partition(".")[2]
        single = operator.phase == "optimizer" and operator.kind in ("elementwise", "copy", "reduction")
        if (
            single
            and not own.startswith(("_foreach", "_fused", "_amp"))
            and operator.name.startswith("aten.")
        ):
            apart.setdefault(operator.name, []).append(operator)
        else:
            kept.append(operator)
    return kept + [_foreach(name, group) for name, group in apart.items()]


def _foreach(name: str, group: list[Operator]) -> Operator:
    number = sum(operator.count for operator in group)
    times = math.ceil(number / _TENSORS_PER_CALL)

    def of_each(field: str) -> int:
        return sum(int(getattr(operator, field)) * operator.count for operator in group) // times

    return msgspec.structs.replace(
        group[0],
        kind="optimizer",
        name=name.replace("aten.", "aten._foreach_", 1),
        inputs=(),
        outputs=(),
        attributes={},
        flops=of_each("flops"),
        bytes_read=of_each("bytes_read"),
        bytes_written=of_each("bytes_written"),
        count=times,
        seconds=None,
    )
