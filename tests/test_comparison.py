"""Ratios with an interval that holds the truth, and "not different" as an answer."""

from __future__ import annotations

import math
import random

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from outpace import comparison
from outpace.records import Environment, Measurement
from tests.measurements import HOST, measurement, several, span, step_seconds

NAMES = ("a", "b")
paces = st.floats(1e-4, 10)
sides = st.lists(st.tuples(paces, paces), min_size=2, max_size=8)


@given(sides)
def test_the_other_way_round_is_the_reciprocal(pairs: list[tuple[float, float]]) -> None:
    a, b = several(*(one for one, _ in pairs)), several(*(two for _, two in pairs))
    forth = comparison.paired(a, b, names=NAMES)
    back = comparison.paired(b, a, names=NAMES[::-1])
    assert forth.ratio.median == pytest.approx(1 / back.ratio.median)
    assert forth.ratio.low == pytest.approx(1 / back.ratio.high)
    assert forth.ratio.high == pytest.approx(1 / back.ratio.low)
    opposite = {"faster": "slower", "slower": "faster", "not different": "not different"}
    assert back.verdict == opposite[forth.verdict]
    assert (forth.a, forth.b) == (back.b, back.a)


@given(st.lists(paces, min_size=2, max_size=8), st.floats(0.1, 10))
def test_a_steady_ratio_is_found_and_equal_sides_are_not_different(
    seconds: list[float], times: float
) -> None:
    a = several(*seconds)
    assert comparison.paired(a, a, names=NAMES).verdict == "not different"
    found = comparison.paired(a, several(*(one / times for one in seconds)), names=NAMES)
    assert found.ratio.median == pytest.approx(times)
    assert found.ratio.low <= found.ratio.median <= found.ratio.high
    assert found.pairs == len(seconds)


@pytest.mark.parametrize("pairs", [2, 3, 5, 10])
@pytest.mark.parametrize("truth", [1.0, 1.7])
def test_the_interval_holds_the_truth_95_times_in_100(pairs: int, truth: float) -> None:
    source = random.Random(pairs)
    hits = 0
    trials = 600
    for _ in range(trials):
        turns = [math.exp(source.gauss(0, 0.05)) for _ in range(pairs)]  # what both of a pair meet
        a = several(*(0.01 * turn * math.exp(source.gauss(0, 0.02)) for turn in turns))
        b = several(*(0.01 / truth * turn * math.exp(source.gauss(0, 0.02)) for turn in turns))
        ratio = comparison.paired(a, b, names=NAMES).ratio
        hits += ratio.low <= truth <= ratio.high
    assert 0.925 <= hits / trials <= 0.975


def test_noise_is_rarely_taken_for_a_gain() -> None:
    source = random.Random(1)
    verdicts = []
    for _ in range(400):
        a = several(*(0.01 * math.exp(source.gauss(0, 0.02)) for _ in range(5)))
        b = several(*(0.01 * math.exp(source.gauss(0, 0.02)) for _ in range(5)))
        verdicts.append(comparison.paired(a, b, names=NAMES).verdict)
    assert verdicts.count("not different") / 400 > 0.92


def test_measured_apart_the_spread_between_processes_is_not_forgotten() -> None:
    one = measurement(0.0100, step_seconds=step_seconds(0.0100, 0.0001))
    two = measurement(0.0099, step_seconds=step_seconds(0.0099, 0.0001))
    found = comparison.apart(one, two, names=NAMES)
    assert found.verdict == "not different"
    assert found.pairs == 0
    assert "one process each" in found.notes[0]
    many = [msgspec.structs.replace(each, repeated=[span(0.01)] * 3) for each in (one, two)]
    sure = comparison.apart(*many, names=NAMES)
    assert (sure.verdict, sure.notes) == ("faster", [])
    assert sure.ratio.high - sure.ratio.low < found.ratio.high - found.ratio.low


@given(paces, paces, st.floats(0, 0.2), st.floats(0, 0.2))
def test_apart_the_other_way_round(a: float, b: float, spread_a: float, spread_b: float) -> None:
    one = measurement(a, step_seconds=step_seconds(a, spread_a))
    two = measurement(b, step_seconds=step_seconds(b, spread_b))
    forth = comparison.apart(one, two, names=NAMES)
    back = comparison.apart(two, one, names=NAMES)
    assert forth.ratio.low == pytest.approx(1 / back.ratio.high)
    assert forth.ratio.median == pytest.approx(1 / back.ratio.median)


def test_without_samples_steps_are_compared() -> None:
    a, b = several(0.02, 0.02), several(0.01, 0.01, samples_per_second=None)
    found = comparison.paired(a, b, names=NAMES)
    assert found.unit == "steps"
    assert found.ratio.median == pytest.approx(2)
    assert comparison.paired(a, a, names=NAMES).unit == "samples"


def test_samples_not_steps_are_compared_where_they_are_known() -> None:
    a, b = several(0.01, 0.01), several(0.02, 0.02, samples_per_second=128 / 0.01, samples_per_step=256)
    found = comparison.paired(a, b, names=NAMES)
    assert found.ratio.median == pytest.approx(2)
    assert "samples per step: 64 / 256" in found.differs


def counted(joules: float | None, **known: str) -> list[Measurement]:
    facts = {"energy_source": "NVML energy counter", "energy_scope": "card"} | known
    return several(0.01, 0.01, joules_per_sample=joules, **facts)


def test_energy_is_compared_where_both_are_measured_alike() -> None:
    def ratio(a: list[Measurement], b: list[Measurement]) -> float | None:
        return comparison.paired(a, b, names=NAMES).energy_ratio

    assert ratio(counted(2.0), counted(3.0)) == pytest.approx(1.5)
    assert ratio(counted(2.0), counted(None)) is None
    assert ratio(counted(2.0), counted(3.0, energy_source="RAPL")) is None
    assert ratio(counted(2.0), counted(3.0, energy_scope="card (of which this is a part)")) is None
    model = "model: 65% of the board's 400 W"
    assert ratio(counted(2.0, energy_source=model), counted(3.0, energy_source=model)) is None
    bare = several(0.01, 0.01)
    assert ratio(bare, bare) is None


def test_memory_is_compared_where_the_same_allocator_tells_it() -> None:
    def ratio(**b: object) -> float | None:
        return comparison.paired(several(0.01, 0.01), several(0.01, 0.01, **b), names=NAMES).memory_ratio

    assert ratio(peak_bytes=216 * 2**20) == pytest.approx(0.5)
    assert ratio(peak_bytes_source="jax") is None
    assert ratio(peak_bytes=None) is None
    process = several(0.01, 0.01, peak_bytes_source="process")
    assert comparison.paired(process, process, names=NAMES).memory_ratio is None


def test_what_else_is_different_is_said() -> None:
    other = Environment(
        host=msgspec.structs.replace(HOST, name="there"), versions={"torch": "2.8", "timm": "1"}
    )
    two = measurement(
        0.01,
        args=["--amp"],
        script_sha256="cd",
        device_name="NVIDIA L4",
        environment=other,
        samples_per_step=32,
    )
    assert comparison.apart(measurement(), two, names=NAMES).differs == [
        "script",
        "arguments: none / --amp",
        "device: NVIDIA H100 80GB HBM3 / NVIDIA L4",
        "host: here / there",
        "samples per step: 64 / 32",
        "timm: none / 1",
        "torch: 2.9 / 2.8",
    ]
    assert comparison.apart(measurement(), measurement(), names=NAMES).differs == []
