"""The step of one card: how long, how sure, on what basis."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import NamedTuple

from outpace.prediction import hardware, intervals, known, launches, precision, step
from outpace.prediction.coefficients import Coefficients
from outpace.prediction.options import Options
from outpace.prediction.step import Missing, Step
from outpace.records import Card, Operator, Trace

#: Frameworks that compute every fp32 product in TF32 where a card has it, unless told otherwise.
_TF32_BY_DEFAULT = ("tensorflow", "jax")


class Timed(NamedTuple):
    """The step of one card, in seconds, before other cards, power and money."""

    step: Step
    operators: list[Operator]
    seconds: float
    """Of the model, or where that knows too little of the roofline."""
    sd: float
    basis: str
    case: str
    """Which class of `Coefficients.coverage` it is."""


def operators_on(trace: Trace, card: Card, asked: str) -> list[Operator]:
    """The operators of *trace* as they would run on *card* in the precision that is *asked* for."""
    parameters = trace.memory.parameters_bytes if trace.memory and trace.memory.parameters_bytes else 0
    written = [
        operator
        for operator in trace.operators
        if operator.attributes.get("device", trace.device) == trace.device
        and operator.kind != "communication"
        and not _on_host(operator)
    ]
    if card.kind != "cpu":
        written = launches.grouped_optimizer(written)
    by_default = any(name in trace.framework for name in _TF32_BY_DEFAULT)
    return precision.of_step(written, asked, card, parameter_bytes=parameters, tf32_by_default=by_default)


def _on_host(operator: Operator) -> bool:
    """The step counters of optimizers lie on the CPU."""
    return operator.phase == "optimizer" and operator.name == "aten._local_scalar_dense"


def timed(
    trace: Trace,
    card: Card,
    options: Options,
    coefficients: Coefficients,
    correction: known.Correction = known.NOTHING,
) -> Timed:
    """The time of one step on *card*.

    Raises:
        Missing: the card has no rate for what the step does.
    """
    refused = precision.why_not(card, options.precision)
    if refused:
        raise Missing(refused)
    operators = operators_on(trace, card, options.precision)
    stack = coefficients.stacks.get(options.stack or coefficients.default_stack, {})
    rates = {
        name: stack.get(name, 0.0) + correction.log_rates.get(name, 0.0)
        for name in (*stack, *correction.log_rates)
    }
    scale = options.host_scale(coefficients.host.smallest_call) * correction.host_scale
    if options.host_microseconds is None:
        scale *= math.exp(stack.get("host", 0.0))
    found = step.of_operators(
        operators,
        card,
        coefficients,
        mode=options.mode or _mode(trace),
        host_scale=scale,
        log_rates=rates,
    )
    if not found.seconds:
        raise Missing("the trace has no operators that take time")
    own_host = options.host_microseconds is not None or correction.host_scale != 1.0
    return _judged(found, operators, card, coefficients, correction, own_host=own_host)


def _mode(trace: Trace) -> str:
    """How the traced script launches: TensorFlow's and JAX's steps are compiled into one call."""
    compiled = trace.settings.get("compiled") or "jax" in trace.framework or "tensorflow" in trace.framework
    return "compiled" if compiled else "eager"


def _judged(
    found: Step,
    operators: list[Operator],
    card: Card,
    coefficients: Coefficients,
    correction: known.Correction,
    *,
    own_host: bool,
) -> Timed:
    """The step with how sure it is, and the roofline in its place where too little is known of the card."""
    launching = found.shares["host launches"]
    seconds = found.seconds
    sd = {**rate_sds(found, card, coefficients), **correction.sd}
    spread = intervals.step_sd(
        found.by_rate,
        sd,
        model=coefficients.model_sd,
        launching=launching,
        host=coefficients.host.sd / 2 if own_host else coefficients.host.sd,
    )
    basis = "calibrated" if correction.sd or found.bases == {"calibrated"} else "datasheet"
    case = "launches" if launching > 0.3 else "rnn" if found.kinds.get("rnn forward", 0.0) > 0.1 else "step"
    if "roofline" in found.bases and not correction.sd:
        # too far from the data: the bare roofline of the operators times what measured steps needed of it
        unit = "matrix" if found.shares["matrix units"] > found.shares["vector units"] else "vector"
        kernels = found.roofline * math.exp(coefficients.roofline[unit])
        seconds = math.hypot(kernels, found.host)
        spread, basis, case = max(spread, coefficients.roofline_sd), "roofline", "roofline"
    return Timed(found, operators, seconds, spread, basis, case)


def rate_sds(found: Step, card: Card, coefficients: Coefficients) -> dict[str, float]:
    """Standard deviation of the logarithm of each sustained rate that a step depends on."""
    sds = {}
    for name in found.by_rate:
        entry = coefficients.bandwidth if name == "bandwidth" else coefficients.peaks.get(name)
        entry = entry or coefficients.peaks["vector fp32"]
        sds[name] = hardware.sustained(card, entry, powered=0.0)[1]
    return sds


def corrected(
    measurements: Sequence[tuple[Trace, float]], card: Card, options: Options, coefficients: Coefficients
) -> known.Correction:
    """What trainings that were measured on *card* say about it.

    Args:
        measurements: each one's trace, and the seconds of its step.

    Raises:
        Missing: the card has no rate for what one of them does.
    """
    seen = []
    sds: dict[str, float] = {}
    for trace, measured_seconds in measurements:
        one = timed(trace, card, options, coefficients)
        sds.update(rate_sds(one.step, card, coefficients))
        seen.append(known.Seen(measured_seconds, one.step))
    return known.correction(seen, sds, coefficients.model_sd)
