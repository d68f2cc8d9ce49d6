"""What the verb does with runs: repeats, turns, refusals. No training is run here."""

from __future__ import annotations

import math
import random
from typing import Any

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from outpace import measured, protocol
from outpace.collect import Collector
from outpace.errors import OutpaceError, UsageError
from outpace.records import Measurement
from outpace.verbs import measure as verb
from outpace.verbs.settings import Effort, Setting
from tests.measurements import measurement, several, step_seconds
from tests.simulated import BLANK

paces = st.lists(st.floats(1e-4, 10), min_size=2, max_size=12)


def test_one_process_is_as_it_is() -> None:
    one = measurement()
    assert verb.joined([one]) is one


@given(paces)
def test_several_processes_are_joined_to_the_middle_one(seconds: list[float]) -> None:
    limit = {"limit_seconds": min(seconds) / 2, "flops_per_second": 1e12}
    runs = [measurement(one, **limit, share_of_limit=min(seconds) / 2 / one) for one in seconds]
    found = verb.joined(runs)
    span = found.step_seconds
    assert span.least <= span.low or span.low < min(seconds)
    assert span.low <= span.median <= span.high
    assert min(seconds) <= span.median <= max(seconds)
    assert [one.median for one in found.repeated] == seconds
    assert found.method.repeats == len(seconds)
    assert "Student's t" in found.method.interval
    assert found.share_of_limit is not None
    assert found.share_of_limit * span.median == pytest.approx(found.limit_seconds)
    assert found.share_of_limit <= 1
    assert found.samples_per_second is not None
    if len(seconds) % 2:
        assert found.samples_per_second * span.median == pytest.approx(64)
    assert verb.joined(runs[::-1]).step_seconds.median == span.median


def test_the_interval_is_that_between_processes() -> None:
    source = random.Random(3)
    hits = 0
    for _ in range(400):
        runs = several(*(0.01 * math.exp(source.gauss(0, 0.03)) for _ in range(4)))
        span = verb.joined(runs).step_seconds
        hits += span.low <= 0.01 <= span.high
    assert 0.92 <= hits / 400 <= 0.98


def test_a_rate_that_one_process_lacks_is_none() -> None:
    found = verb.joined([measurement(), measurement(samples_per_second=None)])
    assert found.samples_per_second is None


def seen(monkeypatch: pytest.MonkeyPatch, pace: dict[str, float]) -> list[str]:
    order: list[str] = []

    def once(setting: Setting, _effort: Effort, _view: object, **_more: object) -> Measurement:
        order.append(setting.target)
        return measurement(pace[setting.target])

    monkeypatch.setattr(verb, "once", once)
    return order


@pytest.mark.parametrize(("pairs", "turns"), [(2, "a b b a"), (3, "a b b a a b"), (5, "a b b a a b b a a b")])
def test_turns_are_interleaved(pairs: int, turns: str, monkeypatch: pytest.MonkeyPatch) -> None:
    order = seen(monkeypatch, {"a": 0.02, "b": 0.01})
    found = verb.versus(Setting("a"), Setting("b"), effort=Effort(repeat=pairs))
    assert order == turns.split()
    assert (found.pairs, found.verdict) == (pairs, "faster")
    assert found.ratio.median == pytest.approx(2)
    assert (found.a, found.b) == ("a", "b")
    assert len(found.measurements) == 2 * pairs


def test_one_pair_tells_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    order = seen(monkeypatch, {})
    with pytest.raises(UsageError, match="1 pair tells nothing"):
        verb.versus(Setting("a"), Setting("b"), effort=Effort(repeat=1))
    assert order == []


def test_repeats_are_fresh_runs(monkeypatch: pytest.MonkeyPatch) -> None:
    order = seen(monkeypatch, {"cnn": 0.01})
    assert verb.measure("cnn", repeat=3).method.repeats == 3
    assert order == ["cnn"] * 3


def collected(*events: protocol.AnyEvent) -> Collector:
    collector = Collector(BLANK)
    for event in events:
        collector.take(event)
    return collector


def framework(name: str, version: str = "1") -> protocol.Framework:
    return protocol.Framework(name=name, version=version)


@pytest.mark.parametrize(
    ("events", "found"),
    [
        ([framework("torch", "2.9")], ("torch", "2.9")),
        (
            [framework("tensorflow", "2.20"), framework("keras on jax", "3.12"), framework("jax", "0.8")],
            ("jax", "0.8"),
        ),
        (
            [
                framework("torch"),
                framework("jax", "0.8"),
                protocol.Traced(framework="jax", device="cpu", operators=[]),
            ],
            ("jax", "0.8"),
        ),
        (
            [
                framework("keras on tensorflow", "3.12"),
                framework("tensorflow", "2.20"),
                protocol.Traced(framework="keras on tensorflow", device="cpu", operators=[]),
            ],
            ("tensorflow", "2.20"),
        ),
        ([], ("torch", "")),
    ],
)
def test_who_computes(events: list[protocol.AnyEvent], found: tuple[str, str]) -> None:
    assert verb.trainer(collected(*events)) == found


def ended(**known: Any) -> Any:
    return msgspec.structs.replace(BLANK, **({"state": "done", "steps": 10} | known))


@pytest.mark.parametrize("state", ["done", "stopped"])
def test_runs_that_can_be_measured(state: str) -> None:
    verb.check(ended(state=state))


@pytest.mark.parametrize(
    ("known", "said", "code"),
    [
        ({"state": "failed", "error": "ValueError: no", "hint": "do"}, "t.py: ValueError: no", 1),
        ({"state": "killed", "error": "memory ran out"}, "t.py: memory ran out", 1),
        ({"steps": 0}, "t.py ended without a training step", 1),
        ({"state": "interrupted"}, "nothing is written", 130),
    ],
)
def test_runs_that_cannot_be_measured(known: dict[str, Any], said: str, code: int) -> None:
    with pytest.raises(OutpaceError, match=said) as refused:
        verb.check(ended(**known))
    assert refused.value.exit_code == code
    assert refused.value.hint == known.get("hint")


def test_limits_that_a_training_beats_are_measured_again(monkeypatch: pytest.MonkeyPatch) -> None:
    asked: list[bool] = []

    def ceilings_of(*_args: object, again: bool, **_how: object) -> tuple[None, str]:
        asked.append(again)
        return None, "still too low" if not again else "not known"

    def of_run(*_args: object, no_ceilings_because: str, **_known: object) -> Measurement:
        return measurement(limit_missing_because=no_ceilings_because)

    monkeypatch.setattr(verb, "ceilings_of", ceilings_of)
    monkeypatch.setattr(measured, "of_run", of_run)
    device: Any = object()
    found = verb.against_limits(ended(), collected(), device, {})
    assert asked == [False, True]
    assert found.limit_missing_because == "not known"
    assert verb.against_limits(ended(), collected(), None, {}).limit_missing_because == (
        "the device that trains could not be seen"
    )
    assert asked == [False, True]


def test_the_spread_of_two_windows_is_not_that_of_processes() -> None:
    tight = [measurement(one, step_seconds=step_seconds(one, 1e-6)) for one in (0.010, 0.012)]
    span = verb.joined(tight).step_seconds
    assert span.high / span.low > 1.5
