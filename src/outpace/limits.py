"""The least time that the operators of a step need on a device: the roofline, operator by operator.

Williams, Waterman, Patterson, "Roofline: an insightful visual performance model", CACM 52(4), 2009. An
operator needs at least the time of its arithmetic at the device's peak for its dtype, and at least the time
of its bytes at the bandwidth for that much data; the larger of the two. What stays in a cache between two
operators is not known, so small operators are held against the bandwidth of caches, or against nothing.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import NamedTuple

from outpace.records import Ceilings, Operator

#: Kinds that run on matrix units.
ON_MATRIX_UNITS = ("matmul", "convolution", "attention", "rnn")


class Limit(NamedTuple):
    """The least time of all calls of an operator in a step."""

    seconds: float
    limited_by: str
    """``compute``, ``memory`` or ``nothing`` (no arithmetic, and small enough for a cache)."""
    compute_seconds: float
    memory_seconds: float


def of_operator(operator: Operator, ceilings: Ceilings, settings: Mapping[str, str] | None = None) -> Limit:
    """The limit of all calls of *operator*.

    Args:
        settings: ``matmul_fp32`` and ``convolution_fp32`` say which units compute fp32 products.
    """
    peak = peak_of(operator, ceilings, settings or {})
    compute = operator.flops / peak if peak else 0.0
    touched = operator.bytes_read + operator.bytes_written
    memory = 0.0
    if ceilings.bandwidths and not (ceilings.cache_bytes and touched <= ceilings.cache_bytes):
        memory = touched / bandwidth(touched, ceilings)
    seconds = max(compute, memory)
    limited_by = "nothing" if not seconds else "compute" if compute >= memory else "memory"
    return Limit(seconds * operator.count, limited_by, compute * operator.count, memory * operator.count)


def bandwidth(touched: int, ceilings: Ceilings) -> float:
    """Bytes per second for an operator that touches so many bytes."""
    found = ceilings.bandwidths[0][1]
    for size, rate in ceilings.bandwidths:
        if size <= touched:
            found = rate
    return found


def peak_of(operator: Operator, ceilings: Ceilings, settings: Mapping[str, str]) -> float | None:
    """FLOPs per second for the arithmetic of *operator*; ``None`` where nothing is known for its dtype."""
    dtype = operator.dtype
    if operator.kind in ON_MATRIX_UNITS:
        asked = settings.get("convolution_fp32" if operator.kind in ("convolution", "rnn") else "matmul_fp32")
        if dtype == "fp32" and asked == "tf32" and "tf32" in ceilings.matrix_flops_per_second:
            dtype = "tf32"
        if dtype in ceilings.matrix_flops_per_second:
            return ceilings.matrix_flops_per_second[dtype]
    vector = ceilings.vector_flops_per_second
    return vector.get(dtype) or (vector.get("fp32") if dtype in ("bf16", "fp16") else None)


def of_step(
    operators: Sequence[Operator], ceilings: Ceilings, settings: Mapping[str, str] | None = None
) -> float:
    """Seconds that the step needs at least, its operators one after the other."""
    return sum(of_operator(operator, ceilings, settings).seconds for operator in operators)
