"""What holds an operator back, in one plain sentence."""

from __future__ import annotations

from outpace import units
from outpace.findings import MOSTLY, is_small
from outpace.limits import ON_MATRIX_UNITS, Limit
from outpace.records import Ceilings, Operator


def of_operator(operator: Operator, limit: Limit, seconds: float | None, ceilings: Ceilings) -> str:
    """One sentence on what holds all calls of *operator* back.

    Args:
        seconds: that they take in a step, if known.
    """
    if limit.limited_by == "compute":
        aim = f"{units.si(operator.flops, 'FLOP')} per call"
    elif limit.limited_by == "memory":
        aim = f"{units.byte_count(operator.bytes_read + operator.bytes_written)} moved per call"
    else:
        aim = "small enough to stay in a cache"
    if seconds is None:
        return f"{aim}; needs {units.seconds(limit.seconds)} at the limit"
    launch = ceilings.launch_seconds or 0.0
    each = units.seconds(seconds / operator.count)
    if is_small(operator, limit, seconds, launch):
        return f"{_calls(operator.count)} of {each}: mostly the cost of calling"
    if limit.seconds < operator.count * launch:
        return (
            f"{_calls(operator.count)} of {each}, where next to nothing is needed: threads, or a slow kernel"
        )
    share = limit.seconds / seconds if seconds else 0.0
    if share > 1:
        return f"{aim}; faster than the limit that was measured, so that limit is too low"
    if share >= MOSTLY:
        more = _way_on(operator, limit)
        return f"{aim}, at {share:.0%} of the limit: {more}"
    return f"{aim}, at {share:.0%} of the limit: {_why_far(operator, limit)}"


def _calls(count: int) -> str:
    return f"{count:,} calls" if count > 1 else "1 call"


def _way_on(operator: Operator, limit: Limit) -> str:
    if limit.limited_by == "memory":
        return "only moving less would help (fusion, a smaller type)"
    if operator.dtype == "fp32":
        return "a smaller type would raise the limit"
    return "well used"


def _why_far(operator: Operator, limit: Limit) -> str:
    if operator.kind == "convolution" and int(operator.attributes.get("groups", 1)) > 1:  # type: ignore[arg-type]
        return "grouped convolutions leave most of the units idle"
    if operator.kind == "rnn":
        return "one time step waits for the one before"
    if operator.kind in ON_MATRIX_UNITS and limit.limited_by == "compute":
        narrow, what = _narrowest(operator)
        if narrow < 32:
            return f"{narrow} {what} are too few to fill the units"
        return "the library's kernel is far from the peak for these shapes"
    if operator.kind == "pooling":
        return "its kernel does not use the bandwidth (indices, scattered writes)"
    return "its kernel does not use the bandwidth"


def _narrowest(operator: Operator) -> tuple[int, str]:
    """The smallest side of the product that *operator* is, and what it counts."""
    if operator.kind == "convolution":
        axis = -1 if operator.attributes.get("channels_last") else 1
        channels = {shape[axis] for shape in operator.inputs if len(shape) > 2}
        return min(channels, default=32), "channels"
    sides = [size for shape in operator.inputs for size in shape[-2:]]
    return min(sides, default=32), "rows or columns"
