"""How many times as fast one training is as another, with an interval, and "not different" as an answer."""

from __future__ import annotations

import math
import statistics
from collections.abc import Sequence

from outpace import __version__, stats
from outpace.records import Comparison, Measurement, Span

#: Standard deviation of the pace between two processes on the same machine, where only one of each was
#: measured. Equal machines differ by 0.6 to 3.9 % (39 H100 nodes, Lambda's public table).
RUN_TO_RUN = 0.01


def paired(a: Sequence[Measurement], b: Sequence[Measurement], *, names: tuple[str, str]) -> Comparison:
    """Of measurements that were taken in turns.

    Args:
        a, b: as many of each, two at least, in the order of their turns.
        names: what A and B are called.

    The interval is Student's t of the logarithms of the pairs' ratios.
    """
    unit = _unit([*a, *b])
    logs = [math.log(_pace(two, unit) / _pace(one, unit)) for one, two in zip(a, b, strict=True)]
    center = statistics.fmean(logs)
    half = stats.t_quantile(len(logs) - 1) * statistics.stdev(logs) / math.sqrt(len(logs))
    return _comparison(a, b, names, center, half, unit, pairs=len(logs), notes=[])


def apart(a: Measurement, b: Measurement, *, names: tuple[str, str]) -> Comparison:
    """Of two measurements that were taken apart, such as on two machines.

    Their own intervals are combined. Where only one process of each was measured, the spread between
    processes was not seen, and `RUN_TO_RUN` stands for it.
    """
    unit = _unit([a, b])
    center = math.log(_pace(b, unit) / _pace(a, unit))
    notes = []
    half = math.hypot(_relative_half(a), _relative_half(b))
    if not (a.repeated and b.repeated):
        half = math.hypot(half, 1.96 * RUN_TO_RUN * math.sqrt(2))
        notes.append(
            "measured apart, one process each: the spread between processes was not seen and is taken as "
            f"{RUN_TO_RUN:.0%}; --versus measures in turns"
        )
    return _comparison([a], [b], names, center, half, unit, pairs=0, notes=notes)


def _comparison(
    a: Sequence[Measurement],
    b: Sequence[Measurement],
    names: tuple[str, str],
    center: float,
    half: float,
    unit: str,
    *,
    pairs: int,
    notes: list[str],
) -> Comparison:
    low, high = math.exp(center - half), math.exp(center + half)
    return Comparison(
        outpace=__version__,
        a=names[0],
        b=names[1],
        ratio=Span(median=math.exp(center), low=low, high=high),
        verdict="faster" if low > 1 else "slower" if high < 1 else "not different",
        pairs=pairs,
        unit=unit,
        energy_ratio=_energy(a, b),
        memory_ratio=_memory(a, b),
        differs=_differs(a[0], b[0]),
        notes=notes,
        measurements=[*a, *b],
    )


def _unit(measurements: Sequence[Measurement]) -> str:
    return "steps" if any(one.samples_per_second is None for one in measurements) else "samples"


def _pace(one: Measurement, unit: str) -> float:
    if unit == "samples":
        assert one.samples_per_second is not None
        return one.samples_per_second
    return 1 / one.step_seconds.median


def _relative_half(one: Measurement) -> float:
    span = one.step_seconds
    return (span.high - span.low) / 2 / span.median


def _energy(a: Sequence[Measurement], b: Sequence[Measurement]) -> float | None:
    sources = {one.energy_source for one in (*a, *b)}
    scopes = {one.energy_scope for one in (*a, *b)}
    each = [[one.joules_per_sample for one in side if one.joules_per_sample] for side in (a, b)]
    measured = not any(source is None or source.startswith("model") for source in sources)
    if len(scopes) != 1 or len(sources) != 1 or not measured or not all(each):
        return None
    return statistics.median(each[1]) / statistics.median(each[0])


def _memory(a: Sequence[Measurement], b: Sequence[Measurement]) -> float | None:
    if a[0].peak_bytes_source != b[0].peak_bytes_source or a[0].peak_bytes_source == "process":
        return None
    if not (a[0].peak_bytes and b[0].peak_bytes):
        return None
    return b[0].peak_bytes / a[0].peak_bytes


def _differs(a: Measurement, b: Measurement) -> list[str]:
    """In what A and B differ besides their pace."""
    found = []
    pairs = (
        ("script", a.script_sha256 or a.script, b.script_sha256 or b.script),
        ("arguments", " ".join(a.args) or "none", " ".join(b.args) or "none"),
        ("device", a.device_name or a.device, b.device_name or b.device),
        ("host", a.environment.host.name, b.environment.host.name),
        ("samples per step", a.samples_per_step, b.samples_per_step),
    )
    for name, one, two in pairs:
        if one != two:
            found.append(name if name == "script" else f"{name}: {one} / {two}")
    versions = a.environment.versions, b.environment.versions
    for library in sorted({*versions[0], *versions[1]}):
        one, two = (version.get(library, "none") for version in versions)
        if one != two:
            found.append(f"{library}: {one} / {two}")
    return found
