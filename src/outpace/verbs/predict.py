"""The verb: what other cards would bring for a training."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

import msgspec

from outpace import cards
from outpace.cards import prices
from outpace.errors import OutpaceError, UsageError
from outpace.prediction import coefficients, data_parallel, energy, known, one_card, whole
from outpace.prediction.options import Options
from outpace.prediction.step import Missing
from outpace.records import Card, Interval, Measurement, Prediction, Trace, read

#: Predicted for when nobody says which cards.
USUAL = ("v100-sxm2-32gb", "a100-sxm-80gb", "h100-sxm-80gb", "mi300x", "max-1550")


def predict(
    training: Trace | Measurement | Path | str,
    on: str | Sequence[str] = USUAL,
    *,
    measured: Sequence[Measurement | Path | str] = (),
    price: Mapping[str, float] | Sequence[str] = (),
    **options: Any,
) -> Prediction | list[Prediction]:
    """Time, memory, energy and money of *training* on other cards, each with an interval.

    Args:
        training: a trace, a measurement that has one, or the path of either, saved.
        on: a card, or several: ``"h100-sxm-80gb"``, ``["t4", "8xh100-sxm-80gb"]``.
        measured: measurements of any training made on the target cards; each calibrates its card.
        price: US dollars per hour, ``{"t4": 0.35}`` or ``["t4=0.35"]``; else the table of prices is used.
        options: see `outpace.prediction.options.Options`: ``precision``, ``mode``, ``host_microseconds``,
            ``power_limit_watts``, ``samples``, ``epochs``, ``epoch_samples``, ``usd_per_kwh``, ``stack``,
            ``largest_batch``.

    Returns:
        One prediction for one card, a list for a sequence of cards.

    Raises:
        UsageError: an unknown card, a value that makes no sense, a precision that none of the cards has.
        OutpaceError: the training has no trace, or a file cannot be read.
    """
    try:
        asked = Options(**options)
    except TypeError as error:
        raise UsageError(f"predict has no such option: {error}") from error
    asked.check()
    trace, measurement = _training(training)
    _check(trace)
    names = [on] if isinstance(on, str) else list(on)
    if not names:
        raise UsageError("no card to predict for", f"for example {', '.join(USUAL[:3])}")
    found_cards = [(number, cards.find(name)) for number, name in map(data_parallel.split, names)]
    own = dict(map(prices.own_price, price)) if not isinstance(price, Mapping) else _prices(price)
    seen = [_training(one) for one in measured]
    made = [_one(trace, measurement, seen, asked, number, card, own) for number, card in found_cards]
    if asked.precision != "as written" and all(one.missing_because for one in made):
        reasons = list(dict.fromkeys(str(one.missing_because) for one in made))
        raise UsageError(
            f"{asked.precision} is not possible: {'; '.join(reasons)}", "choose another precision"
        )
    return made[0] if isinstance(on, str) else made


def _prices(own: Mapping[str, float]) -> dict[str, float]:
    return dict(prices.own_price(f"{name}={usd}") for name, usd in own.items())


def _check(trace: Trace) -> None:
    """That there is something to predict.

    Raises:
        UsageError: the trace is empty, or its sizes make no sense.
    """
    if not trace.operators:
        raise UsageError(
            f"the trace of {trace.target} has no operators", "trace it again: outpace trace --save"
        )
    if trace.samples is not None and trace.samples <= 0:
        raise UsageError(f"a batch of {trace.samples} samples makes no step", "a positive batch")
    for operator in trace.operators:
        if min(operator.flops, operator.bytes_read, operator.bytes_written) < 0 or operator.count < 1:
            raise UsageError(f"the trace of {trace.target} has a negative size ({operator.name})")


def _training(given: Trace | Measurement | Path | str) -> tuple[Trace, Measurement | None]:
    """The trace, and the measurement that it came with."""
    if isinstance(given, (str, Path)):
        given = load(Path(given))
    if isinstance(given, Trace):
        return given, None
    if given.trace is None:
        raise OutpaceError(
            f"the measurement of {given.target} has no trace of its operators",
            "trace it: outpace trace --save trace.json",
        )
    return given.trace, given


def load(path: Path) -> Trace | Measurement:
    """A saved trace or measurement.

    Raises:
        OutpaceError: neither of the two.
    """
    return read(path, Measurement) if _kind(path) == "measurement" else read(path, Trace)


class _Head(msgspec.Struct):
    record: str = ""


def _kind(path: Path) -> str:
    try:
        return msgspec.json.decode(path.read_bytes(), type=_Head).record
    except (OSError, msgspec.MsgspecError):
        return ""


def is_record(target: str) -> bool:
    """Whether *target* names a saved record, not a script."""
    path = Path(target)
    return path.suffix == ".json" and path.is_file()


def _one(
    trace: Trace,
    measurement: Measurement | None,
    seen: Iterable[tuple[Trace, Measurement | None]],
    asked: Options,
    number: int,
    card: Card,
    own: Mapping[str, float],
) -> Prediction:
    if asked.power_limit_watts is not None:
        energy.check_limit(card, asked.power_limit_watts)
    price = prices.price_of(card, own)
    model = coefficients.load()
    here = [
        (each, record.step_seconds.median)
        for each, record in [*seen, (trace, measurement)]
        if record is not None and record.card == card.name and record.part is None
    ]
    if asked.stack is not None and asked.stack not in model.stacks:
        raise UsageError(f"unknown stack {asked.stack!r}", f"one of {', '.join(model.stacks)}")
    asked = _with_host(asked, measurement)
    as_measured = Options(stack=asked.stack)
    try:
        correction = one_card.corrected(here, card, as_measured, model) if here else known.NOTHING
    except Missing:
        correction = known.NOTHING
    found = whole.predict(
        trace,
        card,
        asked,
        model,
        cards=number,
        correction=correction,
        data_seconds=_data_seconds(measurement),
        usd_per_hour=price.usd_per_hour if price else None,
        price_source=f"{price.provider}, {price.date}" if price else None,
    )
    if (
        measurement is not None
        and measurement.card == card.name
        and asked.precision == "as written"
        and number == 1
    ):
        return _measured(found, measurement)
    return found


def _with_host(asked: Options, measurement: Measurement | None) -> Options:
    """The host that was measured on an accelerator stays what it is; one measured without says nothing of
    launches."""
    if asked.host_microseconds is not None or measurement is None or measurement.card is None:
        return asked
    launch = measurement.launch_seconds
    return msgspec.structs.replace(asked, host_microseconds=launch * 1e6) if launch else asked


def _data_seconds(measurement: Measurement | None) -> float:
    """Waiting for data, where it was measured to be what limits; else loading is hidden behind the card."""
    if measurement is None or measurement.bound_by != "data":
        return 0.0
    return measurement.data_seconds or 0.0


def _measured(found: Prediction, measurement: Measurement) -> Prediction:
    """On the card that was measured, in the precision that was: the measurement itself."""
    span = measurement.step_seconds
    seconds = Interval(low=span.low, mid=span.median, high=span.high)
    rate = seconds.into(found.samples) if found.samples else None
    joules = measurement.joules_per_sample
    return msgspec.structs.replace(
        found,
        basis="measured",
        step_seconds=seconds,
        samples_per_second=rate,
        joules_per_sample=Interval(low=joules, mid=joules, high=joules)
        if joules
        else found.joules_per_sample,
    )


def check_cards(names: Sequence[str]) -> None:
    """That every name is that of a card, before anything takes long.

    Raises:
        UsageError: one is not, or there is none.
    """
    if not names:
        raise UsageError("no card to predict for", f"for example --on {','.join(USUAL[:3])}")
    for name in names:
        cards.find(data_parallel.split(name)[1])


def traced(
    target: str, args: list[str] | None, *, seed: int | None, view: Any, stdout_to_stderr: bool
) -> Trace:
    """The trace of a script: over shapes alone where its framework can, so that no step is too heavy."""
    from outpace.verbs.trace import trace

    return trace(
        target,
        args,
        device="cpu",
        fake=True,
        as_on_card=True,
        seed=seed,
        view=view,
        stdout_to_stderr=stdout_to_stderr,
    )
