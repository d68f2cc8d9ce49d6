"""The peak of a card's memory: what a step keeps, and what no tensor accounts for."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import NamedTuple

from outpace.prediction.coefficients import Memory
from outpace.prediction.intervals import around
from outpace.prediction.parts import ON_MATRIX_UNITS
from outpace.records import Card, Operator, Trace
from outpace.records.prediction import Interval, MostBatch

#: Of the card's memory: kept free by whoever wants no surprise (fragmentation, an evaluation, a display).
RESERVE = 0.05


class Footprint(NamedTuple):
    """Bytes of one card by use."""

    fixed: float
    """Parameters, gradients, optimizer state, 16-bit copies of the weights."""
    per_step: float
    """Activations and what the kernels at the peak work in: proportional to the batch."""
    context: float


def footprint(
    trace: Trace, written: Sequence[Operator], precision: str, card: Card, coefficients: Memory
) -> Footprint | None:
    """What the step of *trace* keeps on *card*; ``None`` where the trace does not know its memory.

    Args:
        written: the operators in the precision of the prediction.
    """
    kept = trace.memory
    if kept is None or kept.parameters_bytes is None or kept.activations_bytes is None:
        return None
    parameters = kept.parameters_bytes
    gradients = kept.gradients_bytes if kept.gradients_bytes is not None else parameters
    fixed = parameters + gradients + (kept.optimizer_state_bytes or 0)
    activations = float(kept.activations_bytes)
    if precision.endswith("-amp"):
        activations *= _saved_share(trace.operators, written)
        fixed += parameters // 2
    working = max((_working(operator) for operator in written if operator.phase == "backward"), default=0.0)
    per_step = (activations + working) * (1 + coefficients.rounding)
    context = coefficients.context.get(card.vendor, coefficients.context["nvidia"])
    if any(operator.kind in ON_MATRIX_UNITS for operator in written):
        context += coefficients.workspace
    return Footprint(fixed * (1 + coefficients.rounding), per_step, context)


def _working(operator: Operator) -> float:
    """What a backward kernel holds besides what was kept: the gradient that comes, and the one it makes."""
    return float(operator.bytes_written + operator.bytes_read) / 2


def _saved_share(before: Sequence[Operator], after: Sequence[Operator]) -> float:
    """How much less the forward pass writes in the new precision."""

    def forward(operators: Sequence[Operator]) -> float:
        return float(sum(op.bytes_written * op.count for op in operators if op.phase == "forward"))

    old = forward(before)
    return forward(after) / old if old else 1.0


def peak(found: Footprint, coefficients: Memory, batch: float = 1.0) -> Interval:
    """Bytes at the peak of a step whose batch is *batch* times the traced one."""
    return around(found.fixed + found.per_step * batch + found.context, coefficients.sd)


def fits(peak_bytes: Interval, card: Card) -> str | None:
    """``yes``: even the high end; ``tight``: the middle does, but not with a reserve; ``no``."""
    if not card.memory_bytes:
        return None
    if peak_bytes.high <= card.memory_bytes * (1 - RESERVE / 2):
        return "yes"
    return "tight" if peak_bytes.mid <= card.memory_bytes * (1 - RESERVE / 2) else "no"


def largest_batch(found: Footprint, samples: int, card: Card, coefficients: Memory) -> MostBatch | None:
    """The most samples for which even the high end of the interval leaves the reserve free; ``None``:
    none."""
    if not card.memory_bytes or found.per_step <= 0:
        return None
    wide = peak(found, coefficients)
    reserve = RESERVE * card.memory_bytes
    room = (card.memory_bytes - reserve) / (wide.high / wide.mid) - found.fixed - found.context
    most = math.floor(room / found.per_step * samples)
    if most < 1:
        return None
    at_most = peak(found, coefficients, most / samples)
    return MostBatch(samples=most, peak_bytes=at_most.mid, reserve_bytes=card.memory_bytes - at_most.high)
