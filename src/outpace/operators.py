"""The operators of a measured step against the limits of the device."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from outpace import explanations, limits, units
from outpace.limits import Limit
from outpace.records import Ceilings, Operator, OperatorShare

#: How many operators a measurement names.
MOST_OPERATORS = 12


def of_step(
    operators: Sequence[Operator],
    each: Sequence[Limit],
    ceilings: Ceilings | None,
    settings: Mapping[str, str],
    step_seconds: float,
    missing: str | None,
) -> dict[str, Any]:
    """The fields of a measurement that tell the limit of the step and its source, or why there is none."""
    if not operators:
        return {"limit_missing_because": "no operators of the step could be recorded"}
    if ceilings is None:
        return {"limit_missing_because": missing or "the limits of this device are not known"}
    without = sorted(
        {
            operator.dtype
            for operator in operators
            if operator.kind in limits.ON_MATRIX_UNITS
            and operator.flops
            and limits.peak_of(operator, ceilings, settings) is None
        }
    )
    if without:
        return {"limit_missing_because": f"no peak is known for {', '.join(without)} ({ceilings.source})"}
    seconds = sum(limit.seconds for limit in each)
    if seconds > step_seconds:  # nothing is faster than its limit, so the limit is wrong
        return {
            "limit_missing_because": f"the step takes {units.seconds(step_seconds)}, less than the "
            f"{units.seconds(seconds)} of the limits {ceilings.source}: they are too low"
            + (" (was the machine busy?)" if ceilings.measured else "")
        }
    return {
        "limit_seconds": seconds,
        "share_of_limit": seconds / step_seconds,
        "limit_source": ceilings.source,
    }


def shares(
    operators: Sequence[Operator], each: Sequence[Limit], step_seconds: float, ceilings: Ceilings
) -> list[OperatorShare]:
    """The operators that take most of the step, equal calls of different shapes apart.

    Timing them one by one makes a step longer: if they took longer than a step, all are shortened alike.
    """
    timed = sum(operator.seconds or 0.0 for operator in operators)
    scale = min(1.0, step_seconds / timed) if timed else 0.0
    found = []
    for operator, limit in zip(operators, each, strict=True):
        seconds = operator.seconds * scale if timed and operator.seconds is not None else None
        share = None if seconds is None else seconds / step_seconds
        found.append(
            OperatorShare(
                kind=operator.kind,
                name=operator.name,
                phase=operator.phase,
                dtype=operator.dtype,
                inputs=operator.inputs,
                count=operator.count,
                flops=operator.flops * operator.count,
                bytes=(operator.bytes_read + operator.bytes_written) * operator.count,
                share_of_step=share,
                seconds=seconds,
                limit_seconds=limit.seconds,
                limited_by=limit.limited_by,
                sentence=explanations.of_operator(operator, limit, seconds, ceilings),
            )
        )
    found.sort(key=lambda one: one.limit_seconds if one.seconds is None else one.seconds, reverse=True)
    return found[:MOST_OPERATORS]
