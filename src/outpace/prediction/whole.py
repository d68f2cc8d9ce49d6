"""A whole prediction for one kind of card: time, memory, energy, money, and what they depend on."""

from __future__ import annotations

import math

import msgspec

import outpace
from outpace.prediction import data_parallel, energy, intervals, known, memory, sentences
from outpace.prediction.coefficients import Coefficients
from outpace.prediction.one_card import Timed, timed
from outpace.prediction.options import Options
from outpace.prediction.step import Missing
from outpace.records import Card, Interval, Prediction, Trace


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
        precision=_precision(trace, options),
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


def _precision(trace: Trace, options: Options) -> str:
    """As asked, or else as a model was traced."""
    traced = trace.settings.get("precision", options.precision)
    return traced if options.precision == "as written" else options.precision


def _missing(blank: Prediction, reason: str) -> Prediction:
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
    exchanged = data_parallel.exchange(
        card, blank.cards, _gradient_bytes(trace), _backward(one), coefficients.links
    )
    shares = _with_waits(one, exchanged.exposed, data_seconds)
    busy = (
        one.step.kernels
        / max(one.step.seconds, one.step.kernels)
        * (1 - shares["data"] - shares["interconnect"])
    )
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
    total = (
        seconds.times(options.all_samples / blank.samples) if options.all_samples and blank.samples else None
    )
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
    return msgspec.structs.replace(
        prediction, advice=sentences.advice(prediction, one.operators, one.step, card)
    )


def _gradient_bytes(trace: Trace) -> float:
    kept = trace.memory
    return float(kept.gradients_bytes or kept.parameters_bytes or 0) if kept else 0.0


def _backward(one: Timed) -> float:
    """About two thirds of the kernels of a training step; what counts is only what an all-reduce can hide
    behind."""
    backward = sum(
        operator.flops * operator.count for operator in one.operators if operator.phase == "backward"
    )
    forward = sum(
        operator.flops * operator.count for operator in one.operators if operator.phase == "forward"
    )
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
    return Interval(
        **{name: sum(getattr(one, name) for one in parts) for name in ("low", "mid", "high")}
    ), samples
