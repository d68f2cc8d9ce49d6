"""The verb: how fast a training is, what it costs, how far it is from the limit of its device."""

from __future__ import annotations

import contextlib
import math
import os
import statistics
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import Any

import msgspec

from outpace import measured, protocol, stats
from outpace.collect import Collector
from outpace.comparison import paired
from outpace.errors import OutpaceError, UsageError
from outpace.records import Comparison, Device, Measurement, Run, Span, StepSeconds
from outpace.verbs import running
from outpace.verbs.ceilings import ceilings_of
from outpace.verbs.metering import Metering, with_estimated_energy
from outpace.verbs.running import Silent, View
from outpace.verbs.settings import Effort, Setting

#: A step can be traced only when there are so many: the first ones make the optimizer's state.
FEWEST_TO_TRACE = 4


def measure(
    target: str,
    args: list[str] | None = None,
    *,
    device: str = "auto",
    steps: int | None = None,
    seconds: float | None = None,
    repeat: int = 1,
    seed: int | None = None,
    trace: bool = True,
    measured_ceilings: bool = False,
    estimate_energy: bool = False,
    speedups: Iterable[str] = (),
    view: View = Silent(),  # noqa: B008 - it has no state
    stdout_to_stderr: bool = False,
) -> Measurement:
    """Run *target* only as long as it takes to know its pace, and stop it.

    Args:
        target: a built-in name or the path of a training script.
        args: the script's own arguments.
        device: ``auto``, ``cpu``, ``cuda[:N]``, ``xpu[:N]`` or ``mps``.
        steps, seconds: how much to measure after warm-up; without either until the pace is known to 1 %,
            within 3 to 10 s on a CPU and 10 to 15 s on a card.
        repeat: fresh processes; the interval is then that between them.
        seed: seeds Python, NumPy and the framework.
        trace: record the operators of a step, which the limit is computed from.
        measured_ceilings: measure the limits of a card instead of taking them from its datasheet.
        estimate_energy: where there is no counter, a figure of a model, marked as such.
        speedups: names of those that shall act.
        view: shows progress.
        stdout_to_stderr: send the script's standard output to standard error.

    Raises:
        UsageError: no such target or device.
        OutpaceError: the script failed, was interrupted, or trained for too few steps.
    """
    effort = Effort(steps, seconds, repeat, seed, trace, measured_ceilings, estimate_energy)
    setting = Setting(target, args or [], device, speedups=tuple(speedups))
    return repeated(setting, effort=effort, view=view, stdout_to_stderr=stdout_to_stderr)


def repeated(setting: Setting, *, effort: Effort, view: View, stdout_to_stderr: bool = False) -> Measurement:
    """Measure *setting* in as many fresh processes as *effort* says."""
    return joined(
        [once(setting, effort, view, stdout_to_stderr=stdout_to_stderr) for _ in range(effort.repeat)]
    )


def versus(
    a: Setting,
    b: Setting,
    *,
    effort: Effort = Effort(repeat=3),  # noqa: B008 - frozen
    view: View = Silent(),  # noqa: B008 - it has no state
    stdout_to_stderr: bool = False,
) -> Comparison:
    """Measure *a* and *b* in turns (A B, B A, A B …), each in fresh processes.

    Args:
        effort: ``repeat`` is the number of pairs; at least two.

    Raises:
        UsageError: as `measure`, or fewer than two pairs.
        OutpaceError: as `measure`.
    """
    if effort.repeat < 2:
        raise UsageError(f"{effort.repeat} pair tells nothing about spread", "--repeat 3, or more")
    found: dict[str, list[Measurement]] = {"a": [], "b": []}
    for index in range(effort.repeat):
        turn = [("a", a), ("b", b)]
        for name, setting in turn if index % 2 == 0 else turn[::-1]:
            found[name].append(once(setting, effort, view, stdout_to_stderr=stdout_to_stderr))
    return paired(found["a"], found["b"], names=(str(a), str(b)))


def once(setting: Setting, effort: Effort, view: View, *, stdout_to_stderr: bool = False) -> Measurement:
    """Measure *setting* in one fresh process."""
    with _environment(setting.variables):
        return _once(setting, effort, view, stdout_to_stderr=stdout_to_stderr)


@contextlib.contextmanager
def _environment(variables: Mapping[str, str]) -> Iterator[None]:
    """While inside, the worker and the measurement of limits get these *variables* too."""
    before = {name: os.environ.get(name) for name in variables}
    os.environ.update(variables)
    try:
        yield
    finally:
        for name, value in before.items():
            if value is None:
                del os.environ[name]
            else:
                os.environ[name] = value


def _once(setting: Setting, effort: Effort, view: View, *, stdout_to_stderr: bool) -> Measurement:
    plan = protocol.Plan(steps=effort.steps, seconds=effort.seconds, trace=effort.trace)
    blank = running.blank_run(
        setting.target, setting.args, device=setting.device, seed=effort.seed, speedups=setting.speedups
    )
    with Metering() as metering:
        run, collector = running.run(
            blank, view=view, stdout_to_stderr=stdout_to_stderr, plan=plan, on_event=metering.take
        )
        check(run)
        metering.idle()
        span = measured.span_of(collector)
        metered = metering.between(collector, span, measured.samples_in(collector, span))
    if collector.traced is None and effort.trace and run.steps >= FEWEST_TO_TRACE:
        collector.traced = _traced_apart(blank, view, stdout_to_stderr=stdout_to_stderr)
    found = against_limits(
        run, collector, metering.device, metered, measured_ceilings=effort.measured_ceilings
    )
    if effort.estimate_energy and found.joules_per_sample is None:
        found = with_estimated_energy(found)
    return found


def against_limits(
    run: Run,
    collector: Collector,
    device: Device | None,
    metered: Mapping[str, Any],
    *,
    measured_ceilings: bool = False,
) -> Measurement:
    """The measurement of a run, its limits looked up or measured."""

    def measurement(*, again: bool) -> Measurement:
        ceilings, missing = None, "the device that trains could not be seen"
        if device is not None:
            ceilings, reason = ceilings_of(
                device, *trainer(collector), measured=measured_ceilings, again=again, asked=run.device_asked
            )
            missing = reason or missing
        return measured.of_run(
            run, collector, device=device, ceilings=ceilings, no_ceilings_because=missing, metered=metered
        )

    found = measurement(again=False)
    too_low = found.limit_missing_because is not None and "too low" in found.limit_missing_because
    return measurement(again=True) if too_low else found


def _traced_apart(blank: Run, view: View, *, stdout_to_stderr: bool) -> protocol.Traced | None:
    """A step of a second run, of a script that was over before one could be traced."""
    plan = protocol.Plan(measure=False)
    _, collector = running.run(blank, view=view, stdout_to_stderr=stdout_to_stderr, plan=plan)
    return collector.traced


def check(run: Run) -> None:
    """That *run* can be measured.

    Raises:
        OutpaceError: it failed, was interrupted, or no step was seen.
    """
    if run.state == "interrupted":
        raise Interrupted("interrupted before enough was seen; nothing is written")
    if run.state not in ("done", "stopped"):
        raise OutpaceError(f"{Path(run.target).name}: {run.error}", run.hint)
    if not run.steps:
        raise OutpaceError(f"{Path(run.target).name} ended without a training step", run.hint)


class Interrupted(OutpaceError):
    """The user pressed Ctrl-C."""

    exit_code = 130


def trainer(collector: Collector) -> tuple[str, str]:
    """The framework that computes, and its version: of ``keras on jax`` it is JAX."""
    frameworks = collector.frameworks
    keras = next((name for name in frameworks if name.startswith("keras on ")), None)
    traced = collector.traced.framework if collector.traced else None
    name = (traced or keras or next(iter(frameworks), "torch")).removeprefix("keras on ")
    return name, frameworks.get(name, "")


def joined(found: list[Measurement]) -> Measurement:
    """Several measurements of the same training as one: the middle one, with the spread between processes."""
    if len(found) == 1:
        return found[0]
    by_pace = sorted(found, key=lambda one: one.step_seconds.median)
    middle = by_pace[(len(by_pace) - 1) // 2]
    medians = [one.step_seconds.median for one in found]
    median = statistics.median(medians)
    logs = [math.log(one) for one in medians]
    half = stats.t_quantile(len(logs) - 1) * statistics.stdev(logs) / math.sqrt(len(logs))
    center = statistics.fmean(logs)
    rates = [one.samples_per_second for one in found if one.samples_per_second is not None]
    return msgspec.structs.replace(
        middle,
        samples_per_second=statistics.median(rates) if len(rates) == len(found) else None,
        step_seconds=StepSeconds(
            median=median,
            low=min(math.exp(center - half), median),
            high=max(math.exp(center + half), median),
            least=min(one.step_seconds.least for one in found),
            most=max(one.step_seconds.most for one in found),
        ),
        repeated=[
            Span(median=one.step_seconds.median, low=one.step_seconds.low, high=one.step_seconds.high)
            for one in found
        ],
        method=msgspec.structs.replace(
            middle.method, repeats=len(found), interval="mean over fresh processes, Student's t, 95 %"
        ),
        share_of_limit=middle.limit_seconds / median if middle.limit_seconds else None,
        flops_per_second=middle.flops_per_second * middle.step_seconds.median / median
        if middle.flops_per_second
        else None,
    )
