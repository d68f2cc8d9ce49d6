"""A whole prediction for one kind of card."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import NamedTuple

import outpace
from outpace.prediction import (
    data_parallel,
    energy,
    hardware,
    intervals,
    known,
    launches,
    memory,
    precision,
    sentences,
    step,
)
from outpace.prediction.coefficients import Coefficients
from outpace.prediction.options import Options
from outpace.prediction.step import Missing, Step
from outpace.records import Card, Interval, Operator, Prediction, Trace

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
    return precision.of_step(
        written, asked, card, parameter_bytes=parameters, tf32_by_default=by_default
    )


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
    scale = options.host_scale(coefficients.host.forward) * correction.host_scale
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
    return _judged(found, operators, card, options, coefficients, correction, own_host=own_host)


def _mode(trace: Trace) -> str:
    """How the traced script launches: TensorFlow's and JAX's steps are compiled into one call."""
    compiled = trace.settings.get("compiled") or "jax" in trace.framework or "tensorflow" in trace.framework
    return "compiled" if compiled else "eager"


def _judged(
    found: Step,
    operators: list[Operator],
    card: Card,
    options: Options,
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
        host=coefficients.host.sd / 3 if own_host else coefficients.host.sd,
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


def predict(
    trace: Trace,
    card: Card,
    options: Options,
    coefficients: Coefficients,
    *,
    cards: int = 1,
    correction: known.Correction = known.NOTHING,
    data_seconds: float = 0.0,
    usd_per_hour: float | None = None,
    price_source: str | None = None,
) -> Prediction:
    """What the training of *trace* would take on *cards* cards of this kind.

    Args:
        correction: what measurements on this card gave; see `known`.
        data_seconds: of each step waiting for data, as measured; it stays what it is.
        usd_per_hour: of one card.
    """
    blank = Prediction(
        outpace=outpace.__version__,
        target=trace.target,
        card=card.name,
        cards=cards,
        precision=options.precision,
        stack=options.stack or coefficients.default_stack,
        samples=trace.samples * cards if trace.samples else None,
        interval=intervals.NOMINAL,
    )
    try:
        one = timed(trace, card, options, coefficients, correction)
    except Missing as reason:
        return _missing(blank, str(reason))
    return _whole(
        blank,
        trace,
        card,
        options,
        coefficients,
        one,
        data_seconds=data_seconds,
        usd_per_hour=usd_per_hour,
        price_source=price_source,
    )


def _missing(blank: Prediction, reason: str) -> Prediction:
    import msgspec

    return msgspec.structs.replace(blank, missing_because=reason)


def _whole(
    blank: Prediction,
    trace: Trace,
    card: Card,
    options: Options,
    coefficients: Coefficients,
    one: Timed,
    *,
    data_seconds: float,
    usd_per_hour: float | None,
    price_source: str | None,
) -> Prediction:
    import msgspec

    exchanged = data_parallel.exchange(
        card, blank.cards, _gradient_bytes(trace), _backward(one), coefficients.links
    )
    shares = _with_waits(one, exchanged.exposed, data_seconds)
    busy = one.step.kernels / max(one.step.seconds, one.step.kernels) * (1 - shares["data"] - shares["interconnect"])
    rates = {name: value * busy for name, value in one.step.used.items()}
    drawn = energy.draw(rates, busy, card, coefficients.energy, options.power_limit_watts)
    slowdown = drawn.slowdown if drawn else 1.0
    middle = one.seconds * slowdown + exchanged.exposed + data_seconds
    widen = coefficients.coverage.get(one.case, 1.0)
    sd = math.hypot(one.sd * one.seconds * slowdown, coefficients.links.sd * exchanged.exposed) / middle
    seconds = intervals.around(middle, sd, widen)
    held = memory.footprint(trace, one.operators, options.precision, card, coefficients.memory)
    peak = memory.peak(held, coefficients.memory) if held else None
    rate = seconds.into(blank.samples) if blank.samples else None
    watts = intervals.around(drawn.watts, coefficients.energy.sd) if drawn else None
    joules = None
    if watts and blank.samples:
        joules = intervals.around(
            drawn.watts * middle * blank.cards / blank.samples if drawn else 0.0,
            math.hypot(coefficients.energy.sd, sd * widen * 0.7),
        )
    total = seconds.times(options.all_samples / blank.samples) if options.all_samples and blank.samples else None
    dollars, of_samples = _usd(blank, options, rate, joules, usd_per_hour)
    limited_by = max(shares, key=lambda name: shares[name])
    prediction = msgspec.structs.replace(
        blank,
        step_seconds=seconds,
        samples_per_second=rate,
        peak_bytes=peak,
        fits=memory.fits(peak, card) if peak else None,
        largest_batch=memory.largest_batch(held, trace.samples, card, coefficients.memory)
        if held and trace.samples and options.largest_batch
        else None,
        joules_per_sample=joules,
        watts=watts,
        usd=dollars,
        usd_samples=of_samples,
        usd_per_hour=usd_per_hour,
        price_source=price_source,
        total_seconds=total,
        limited_by=limited_by,
        shares={name: share for name, share in shares.items() if share > 0},
        basis=one.basis,
        warnings=sentences.warnings(one.step, one.operators, card, one.basis, trace, exchanged),
    )
    return msgspec.structs.replace(prediction, advice=sentences.advice(prediction, one.operators, one.step, card))


def _gradient_bytes(trace: Trace) -> float:
    kept = trace.memory
    return float(kept.gradients_bytes or kept.parameters_bytes or 0) if kept else 0.0


def _backward(one: Timed) -> float:
    """About two thirds of the kernels of a training step; what counts is only what an all-reduce can hide behind."""
    backward = sum(operator.flops * operator.count for operator in one.operators if operator.phase == "backward")
    forward = sum(operator.flops * operator.count for operator in one.operators if operator.phase == "forward")
    return one.seconds * backward / (backward + forward) if backward + forward else 0.0


def _with_waits(one: Timed, exposed: float, data_seconds: float) -> dict[str, float]:
    """The shares of the step, with those that are no work of the card."""
    total = one.seconds + exposed + data_seconds
    shares = {name: share * one.seconds / total for name, share in one.step.shares.items()}
    shares["data"] = data_seconds / total
    shares["interconnect"] = exposed / total
    return shares


def _usd(
    blank: Prediction,
    options: Options,
    rate: Interval | None,
    joules: Interval | None,
    usd_per_hour: float | None,
) -> tuple[Interval | None, int | None]:
    """Dollars for the training, or without its length for a million samples."""
    if rate is None or (usd_per_hour is None and not options.usd_per_kwh):
        return None, None
    samples = options.all_samples or 1_000_000
    hours = rate.into(samples / 3600)
    parts: list[Interval] = []
    if usd_per_hour is not None:
        parts.append(hours.times(usd_per_hour * blank.cards))
    if joules is not None and options.usd_per_kwh:
        parts.append(joules.times(samples * options.usd_per_kwh / 3.6e6))
    if not parts:
        return None, None
    return Interval(**{name: sum(getattr(one, name) for one in parts) for name in ("low", "mid", "high")}), samples


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
