"""Measurements and comparisons as text, within 80 columns where names allow."""

from __future__ import annotations

import textwrap
from collections.abc import Iterator

from outpace import units
from outpace.records import Comparison, Measurement, OperatorShare, StepMemory, Trace

WIDTH = 80
#: Operators shown; the record holds more.
MOST_OPERATORS = 5


def measurement(found: Measurement) -> str:
    """What was measured, in the manner of hyperfine: few numbers, aligned, then what to know about them."""
    rows = list(_rows(found))
    width = max(len(name) for name, _ in rows)
    lines = _wrapped(f"{' '.join([found.target, *found.args])} on {_device(found)}", "")
    for name, value in rows:
        lines += _wrapped(value, f"  {name:<{width}}  ")
    operators = found.operators[:MOST_OPERATORS]
    if operators:
        lines += ["", _operators_title(operators)]
        for one in operators:
            lines += _operator(one)
    if found.findings or found.notes:
        lines.append("")
    for finding in found.findings:
        lines += _wrapped(finding.sentence, "- ")
    for note in found.notes:
        lines += _wrapped(note, "note: ")
    return "\n".join(lines)


def _rows(found: Measurement) -> Iterator[tuple[str, str]]:
    if found.speedups:
        yield "with", "; ".join(found.speedups.values())
    yield "speed", _speed(found)
    if found.share_of_limit is not None and found.limit_seconds is not None:
        yield (
            "limit",
            f"{units.seconds(found.limit_seconds)} per step, so {found.share_of_limit:.1%} of the limit is "
            f"reached ({found.limit_source})",
        )
    else:
        yield "limit", f"not known: {found.limit_missing_because}"
    if found.bound_by:
        yield "waits for", BOUND[found.bound_by]
    yield "start-up", _startup(found)
    if found.data_seconds is not None:
        share = found.data_seconds / found.step_seconds.median
        yield "data", f"{units.seconds(found.data_seconds)} per step waiting for batches ({share:.0%})"
    memory = _memory(found)
    if memory:
        yield "memory", memory
    yield "energy", _energy(found)
    if found.loss_first is not None and found.loss_last is not None:
        yield "loss", f"{units.significant(found.loss_first)} → {units.significant(found.loss_last)}"
    method = found.method
    several = f", the middle one of {method.repeats} processes" if method.repeats > 1 else ""
    measured = f"{method.steps:,} steps in {method.windows:,} windows, {units.seconds(method.seconds)}"
    yield "measured", measured + several


#: What a training mostly waits for.
BOUND = {
    "data": "data: the next batch is not ready in time",
    "host": "the host: the script, or the calls of operators, take longer than computing",
    "device": "the device: computing and moving data",
}


def _device(found: Measurement) -> str:
    if found.device is None:
        return "a device that was not seen"
    if found.device == "cpu":
        host = found.environment.host
        return f"cpu ({host.cpu}, {host.cores:g} cores)"
    card = f"{found.part} of {found.card}" if found.part else found.card
    details = ", ".join(filter(None, (found.device_name, found.device_driver, card or "unknown card")))
    return f"{found.device} ({details})"


def _speed(found: Measurement) -> str:
    span = found.step_seconds
    size = f" of {found.samples_per_step:,}" if found.samples_per_step else ""
    step = (
        f"{units.seconds(span.median)} per step{size} "
        f"({units.seconds(span.low)} to {units.seconds(span.high)} at 95%)"
    )
    if found.samples_per_second is None:
        return step
    return f"{units.per_second(found.samples_per_second, 'samples')}; {step}"


def _startup(found: Measurement) -> str:
    parts = []
    if found.startup_seconds is not None:
        parts.append(f"{units.seconds(found.startup_seconds)} before the first step")
    method = found.method
    parts.append(f"{method.warm_up_steps:,} steps of warm-up ({units.seconds(method.warm_up_seconds)})")
    return ", ".join(parts)


def _memory(found: Measurement) -> str:
    parts = []
    if found.peak_bytes is not None:
        where = "of the process" if found.peak_bytes_source == "process" else f"({found.peak_bytes_source})"
        parts.append(f"{units.byte_count(found.peak_bytes)} peak {where}")
    if found.memory is not None:
        parts.append(_uses(found.memory))
    return "; ".join(filter(None, parts))


def _uses(memory: StepMemory) -> str:
    uses = (
        ("parameters", memory.parameters_bytes),
        ("gradients", memory.gradients_bytes),
        ("optimizer", memory.optimizer_state_bytes),
        ("activations", memory.activations_bytes),
    )
    return ", ".join(f"{name} {units.byte_count(size)}" for name, size in uses if size is not None)


def _energy(found: Measurement) -> str:
    if found.mean_watts is None and found.joules_per_sample is None:
        return f"not measured: {found.energy_missing_because}"
    parts = []
    if found.joules_per_sample is not None:
        parts.append(f"{units.si(found.joules_per_sample, 'J')} per sample")
    if found.joules_per_epoch is not None:
        parts.append(f"{units.si(found.joules_per_epoch, 'J')} per epoch")
    if found.mean_watts is not None:
        idle = f" ({units.significant(found.idle_watts)} W idle)" if found.idle_watts is not None else ""
        parts.append(f"{units.significant(found.mean_watts)} W{idle}")
    source = ", ".join(filter(None, (found.energy_source, found.energy_scope)))
    caveat = f"; {found.energy_caveat}" if found.energy_caveat else ""
    return f"{', '.join(parts)} ({source}{caveat})"


def _operators_title(operators: list[OperatorShare]) -> str:
    timed = operators[0].share_of_step is not None
    return "Most of the time goes to:" if timed else "Most of the limit is:"


def _operator(one: OperatorShare) -> list[str]:
    share = f"{one.share_of_step:4.0%}  " if one.share_of_step is not None else "  "
    times = f"{one.count:,} x " if one.count > 1 else ""
    shape = "x".join(map(str, one.inputs[0])) if one.inputs else ""
    head = f"{share}{times}{one.name.removeprefix('aten.')} {shape} {one.dtype}, {one.phase}"
    return [*_wrapped(head, "  "), *_wrapped(one.sentence, "        ")]


def _wrapped(text: str, prefix: str) -> list[str]:
    return textwrap.wrap(
        text,
        WIDTH,
        initial_indent=prefix,
        subsequent_indent=" " * len(prefix),
        break_long_words=False,
        break_on_hyphens=False,
    )


def comparison(found: Comparison) -> str:
    """How B compares to A."""
    ratio = found.ratio
    interval = f"{_times(ratio.low)} to {_times(ratio.high)}"
    what = {
        "faster": f"B is {_times(ratio.median)} times as fast as A ({interval} at 95%)",
        "slower": f"B is slower: {_times(ratio.median)} times as fast as A ({interval} at 95%)",
        "not different": f"not different: B is {interval} times as fast as A (95%)",
    }[found.verdict]
    lines = [*_wrapped(found.a, "A: "), *_wrapped(found.b, "B: "), *_wrapped(what, "")]
    half = len(found.measurements) // 2
    for name, sides in (("A", found.measurements[:half]), ("B", found.measurements[half:])):
        steps = ", ".join(units.seconds(one.step_seconds.median) for one in sides)
        lines += _wrapped(f"{steps} per step", f"  {name}       ")
    if found.energy_ratio is not None:
        lines.append(f"  energy  B takes {_times(found.energy_ratio)} times the joules per {found.unit[:-1]}")
    if found.memory_ratio is not None:
        lines.append(f"  memory  B takes {_times(found.memory_ratio)} times the memory")
    for difference in found.differs:
        lines += _wrapped(f"also different: {difference}", "  ")
    for note in found.notes:
        lines += _wrapped(note, "note: ")
    return "\n".join(lines)


def _times(value: float) -> str:
    return units.significant(value, 3)


def trace(found: Trace, most: int = 10) -> str:
    """A trace in short: totals by phase, and the operators with most FLOPs."""
    what = " ".join([found.target, *found.args])
    lines = _wrapped(f"{what}: one training step, {found.framework}, on {found.device}", "")
    operators = found.operators
    flops = sum(one.flops * one.count for one in operators)
    moved = sum((one.bytes_read + one.bytes_written) * one.count for one in operators)
    calls = sum(one.count for one in operators)
    rows = [("samples", f"{found.samples:,}" if found.samples else "not known"), ("calls", f"{calls:,}")]
    rows.append(("arithmetic", units.si(flops, "FLOP")))
    if found.samples:
        rows.append(("per sample", units.si(flops / found.samples, "FLOP")))
    rows.append(("traffic", f"{units.byte_count(moved)} read and written"))
    if found.memory is not None:
        rows.append(("memory", _uses(found.memory)))
    for name, value in rows:
        lines += _wrapped(value, f"  {name:<10}  ")
    lines.append("")
    for phase in ("forward", "backward", "optimizer"):
        part = sum(one.flops * one.count for one in operators if one.phase == phase)
        count = sum(one.count for one in operators if one.phase == phase)
        lines.append(f"  {phase:<10}  {units.si(part, 'FLOP')} in {count:,} calls")
    lines.append("")
    for one in sorted(operators, key=lambda one: one.flops * one.count, reverse=True)[:most]:
        times = f"{one.count:,} x " if one.count > 1 else ""
        shapes = " ".join("x".join(map(str, shape)) for shape in one.inputs[:2])
        share = one.flops * one.count / flops if flops else 0.0
        guess = " (guessed)" if one.guessed else ""
        lines += _wrapped(f"{share:4.0%}  {times}{one.name} {shapes} {one.dtype}, {one.phase}{guess}", "  ")
    for note in found.notes:
        lines += _wrapped(note, "note: ")
    return "\n".join(lines)
