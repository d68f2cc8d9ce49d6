"""From what was seen of a run to a `Measurement`."""

from __future__ import annotations

import bisect
import dataclasses
import itertools
import os
import statistics
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import msgspec

from outpace import __version__, findings, limits, stats, windows
from outpace.collect import Collector
from outpace.errors import OutpaceError
from outpace.operators import of_step, shares
from outpace.protocol import Edge
from outpace.records import (
    Ceilings,
    Device,
    Environment,
    Measurement,
    Method,
    Operator,
    Run,
    StepSeconds,
    Trace,
)
from outpace.windows import Steps, Window

#: Environment variables that change how fast a training is.
VARIABLES = (
    *("OMP_NUM_THREADS", "MKL_NUM_THREADS", "KMP_AFFINITY", "CUDA_VISIBLE_DEVICES", "CUDA_LAUNCH_BLOCKING"),
    *("HIP_VISIBLE_DEVICES", "ZE_AFFINITY_MASK", "XLA_FLAGS", "TF_XLA_FLAGS", "TF_NUM_INTRAOP_THREADS"),
    *("KERAS_BACKEND", "NVIDIA_TF32_OVERRIDE", "TORCH_COMPILE_DISABLE", "PYTORCH_CUDA_ALLOC_CONF"),
)


@dataclass(frozen=True)
class Span:
    """The part of a run that was measured. Seconds since the spawn."""

    start: float
    end: float
    settled: bool


def span_of(collector: Collector) -> Span:
    """What the worker called measuring; of a script that ended before that, what comes after its warm-up."""
    ends = collector.ends
    at = {phase.name: phase for phase in reversed(collector.phases)}
    last = max([ends[-1], *(edge.at for edge in collector.edges[-1:])])
    if "measuring" in at:
        stop = at.get("over")
        return Span(at["measuring"].at, stop.at if stop else last, at["measuring"].settled)
    warm_up = max(stats.warm_up_steps(collector.step_seconds()), min(1, len(ends) - 1))
    return Span(ends[warm_up - 1] if warm_up else (collector.began_at or 0.0), last, settled=False)


def samples_in(collector: Collector, span: Span) -> int | None:
    """All samples of the steps within *span*, partial batches too; ``None`` where they are not known."""
    inside = [
        samples
        for end, samples in zip(collector.ends, collector.samples, strict=True)
        if span.start < end <= span.end
    ]
    known = [samples for samples in inside if samples is not None]
    return sum(known) if known and len(known) == len(inside) else None


def of_run(
    run: Run,
    collector: Collector,
    *,
    device: Device | None,
    ceilings: Ceilings | None,
    no_ceilings_because: str | None = None,
    metered: Mapping[str, Any] | None = None,
) -> Measurement:
    """The measurement of one run in one process.

    Args:
        run: its record.
        collector: all that the worker said.
        device: where it ran, with its card.
        ceilings: the device's limits, or ``None`` and why there are none.
        metered: fields of the measurement that the energy meter knows.

    Raises:
        OutpaceError: too few steps were seen.
    """
    span = span_of(collector)
    steps = Steps(collector.ends, collector.samples, collector.interrupted, collector.began_at or 0.0)
    synchronous = bool(collector.place and collector.place.synchronous)
    found, clock = _windows(steps, collector, span, synchronous=synchronous)
    full = stats.full_batch((samples, 1) for samples in collector.samples)
    paces = [window.step_seconds for window in found]
    middle = stats.median_with_interval(paces)
    trace = trace_of(run, collector)
    metered = dict(metered or {})
    facts = _facts(run, collector, span, found, synchronous=synchronous)
    facts = dataclasses.replace(facts, throttled=metered.get("throttled", {}), host_clock=clock == "host")
    operators = _timed_as_they_ran(trace) if trace else []
    settings = trace.settings if trace else {}
    each = [limits.of_operator(operator, ceilings, settings) for operator in operators] if ceilings else []
    launch = ceilings.launch_seconds if ceilings and _one_by_one(trace) else None
    calls = findings.calls_of(operators, each, launch) if each else None
    flops = sum(operator.flops * operator.count for operator in operators)
    limit = of_step(operators, each, ceilings, settings, middle.median, no_ceilings_because)
    losses = [value for value in run.losses if value is not None]
    return Measurement(
        outpace=__version__,
        target=run.target,
        script=run.script,
        args=run.args,
        script_sha256=run.script_sha256,
        started_at=run.started_at,
        device=run.device,
        device_name=run.device_name,
        device_driver=run.device_driver,
        card=device.card if device else None,
        part=device.part if device else None,
        speedups=dict(collector.speedups),
        frameworks=dict(collector.frameworks),
        environment=Environment(host=run.host, versions=run.versions, variables=_variables()),
        method=Method(
            warm_up_steps=facts.warm_up_steps,
            warm_up_seconds=facts.warm_up,
            settled=span.settled,
            windows=len(found),
            steps=sum(window.steps for window in found),
            seconds=sum(window.seconds for window in found),
            clock=clock,
        ),
        samples_per_second=windows.rate(found),
        samples_per_step=full,
        step_seconds=StepSeconds(
            median=middle.median, low=middle.low, high=middle.high, least=min(paces), most=max(paces)
        ),
        startup_seconds=run.startup_seconds,
        first_step_seconds=facts.first_step,
        data_seconds=facts.data,
        waited_seconds=facts.waited if clock == "waited" else None,
        bound_by=findings.bound_by(facts, calls),
        launch_seconds=launch,
        calls=sum(operator.count for operator in operators) or None,
        flops_per_sample=flops / trace.samples if trace and trace.samples and flops else None,
        flops_per_second=flops / middle.median if flops else None,
        operators=shares(operators, each, middle.median, ceilings) if ceilings else [],
        peak_bytes=run.peak_bytes,
        peak_bytes_source=run.peak_bytes_source,
        memory=trace.memory if trace else None,
        loss_first=losses[0] if losses else None,
        loss_last=losses[-1] if losses else None,
        nonfinite_losses=len(run.nonfinite_losses),
        skipped_steps=run.skipped_steps,
        findings=findings.findings(facts, calls),
        notes=[*run.notes, *(trace.notes if trace else []), *_compiled_note(trace)],
        window_seconds=[round(pace, 9) for pace in paces],
        trace=trace,
        **limit,
        joules_per_epoch=_per_epoch(metered, collector, full),
        **metered,
    )


def _timed_as_they_ran(trace: Trace) -> list[Operator]:
    """The operators; of compiled code without their times, which are those of the uncompiled ones."""
    if "compiled" not in trace.settings:
        return trace.operators
    return [msgspec.structs.replace(operator, seconds=None) for operator in trace.operators]


def _one_by_one(trace: Trace | None) -> bool:
    """Whether the host starts each operator; compiled graphs (XLA, TensorFlow) start many at once."""
    return trace is not None and trace.framework == "torch" and "compiled" not in trace.settings


def _compiled_note(trace: Trace | None) -> list[str]:
    if trace is None or "compiled" not in trace.settings:
        return []
    return ["the script compiles code: its operators were recorded as they are before compilation"]


def _per_epoch(metered: Mapping[str, Any], collector: Collector, full: int | None) -> float | None:
    """Joules per pass over the data, where the script tells how long one is."""
    joules, steps = metered.get("joules_per_sample"), collector.steps_per_epoch
    return joules * steps * full if joules and steps and full else None


def _windows(
    steps: Steps, collector: Collector, span: Span, *, synchronous: bool
) -> tuple[list[Window], str]:
    """The windows, and the clock that they are of."""
    found = [] if synchronous else windows.of_edges(steps, collector.edges, span.start, span.end)
    if found:
        return found, "waited"
    found = windows.of_synchronous_device(steps, span.start, span.end)
    if not found:
        raise OutpaceError(
            f"only {len(steps.ends)} training steps were seen, too few to measure",
            "let the script train longer: more epochs, or more data",
        )
    return found, "host"


def _facts(
    run: Run, collector: Collector, span: Span, found: Sequence[Window], *, synchronous: bool
) -> findings.Facts:
    seconds = sum(window.seconds for window in found)
    steps = sum(window.steps for window in found)
    warm_up = sum(end <= span.start for end in collector.ends)
    full = stats.full_batch((samples, 1) for samples in collector.samples)
    partial = Counter(
        samples
        for samples in collector.samples
        if samples is not None and full is not None and samples < full
    )
    inside = [edge for edge in collector.edges if span.start <= edge.at <= span.end]
    waited = [window.waited for window in found]
    host_step = (seconds - sum(waited)) / steps
    return findings.Facts(
        step=statistics.median(window.step_seconds for window in found),
        device=run.device or "device",
        synchronous=synchronous,
        data=_data(inside, collector),
        waited=sum(waited) / len(waited),
        host_step=None if synchronous else host_step,
        window=seconds / len(found),
        first_step=run.step_seconds[0] if run.step_seconds else None,
        warm_up_steps=warm_up,
        warm_up=max(span.start - (collector.began_at or 0.0), 0.0),
        settled=span.settled,
        full=full,
        partial=dict(partial),
        steps=len(collector.ends),
        slow_windows=windows.outliers(found) if len(found) >= 10 else 0,
        windows=len(found),
        nonfinite=len(run.nonfinite_losses),
        skipped=run.skipped_steps,
    )


def _data(edges: Sequence[Edge], collector: Collector) -> float | None:
    """Seconds per step that the training waited for data, where it can be seen; not those of evaluations."""
    if len(edges) < 2 or not edges[-1].fetching:
        return None
    steps = 0
    seconds = 0.0
    for opening, closing in itertools.pairwise(edges):
        if not closing.opens:
            before, until = (bisect.bisect_right(collector.ends, edge.at) for edge in (opening, closing))
            steps += until - before
            seconds += closing.fetching - opening.fetching
    return seconds / steps if steps else None


def trace_of(run: Run, collector: Collector) -> Trace | None:
    """The traced step as a record of its own."""
    traced = collector.traced
    if traced is None:
        return None
    return Trace(
        outpace=__version__,
        target=run.target,
        script=run.script,
        args=run.args,
        script_sha256=run.script_sha256,
        framework=traced.framework,
        versions=run.versions,
        host=run.host,
        device=traced.device,
        samples=traced.samples or stats.full_batch((samples, 1) for samples in collector.samples),
        operators=traced.operators,
        memory=traced.memory,
        settings=traced.settings,
        notes=traced.notes,
    )


def _variables() -> dict[str, str]:
    return {name: value for name in VARIABLES if (value := os.environ.get(name)) is not None}
