"""Steady state found where it is known by construction."""

from __future__ import annotations

import math
import random
import statistics

import pytest
from hypothesis import given
from hypothesis import strategies as st

from outpace import stats


def noisy(mean: float, count: int, seed: int = 0, spread: float = 0.05) -> list[float]:
    source = random.Random(seed)
    return [mean * (1 + spread * source.uniform(-1, 1)) for _ in range(count)]


@pytest.mark.parametrize("seed", range(5))
@pytest.mark.parametrize("compile_step", [2.0, 30.0])
def test_compile_steps_are_not_training(seed: int, compile_step: float) -> None:
    seconds = [compile_step, compile_step / 4, 0.4, *noisy(0.010, 200, seed)]
    pace = stats.steady_pace(seconds, [64] * len(seconds))
    assert pace is not None
    assert pace.samples_per_second == pytest.approx(6400, rel=0.02)


def test_a_slow_ramp_is_warm_up() -> None:
    seconds = [0.030 - 0.0002 * index for index in range(100)] + noisy(0.010, 300)
    assert 60 <= stats.warm_up_steps(seconds) <= 200


@pytest.mark.parametrize("seed", range(5))
def test_steady_steps_are_kept(seed: int) -> None:
    # MSER may cut some steady steps, never the half that it may not touch
    assert stats.warm_up_steps(noisy(0.01, 400, seed)) <= 200


def test_a_rare_outlier_late_is_not_warm_up() -> None:
    late = noisy(0.010, 400)
    late[390] = 0.5
    pace = stats.steady_pace(late, [8] * 400)
    assert pace is not None
    assert pace.steps >= 200, "an outlier is part of the pace, not a reason to drop what came before"


def test_partial_batches_and_interruptions_stay_out() -> None:
    seconds: list[float] = []
    samples: list[int] = []
    interrupted: list[int] = []
    for epoch in range(5):
        for step in range(20):
            if epoch and step == 0:
                interrupted.append(len(seconds))
            seconds.append(3.0 if step == 0 else 0.010)
            samples.append(64)
        seconds.append(0.001)
        samples.append(3)
    pace = stats.steady_pace(seconds, samples, interrupted)
    assert pace is not None
    assert pace.samples_per_second == pytest.approx(6400)
    assert pace.step_seconds == pytest.approx(0.010)


def test_no_steady_state_without_steps_or_samples() -> None:
    assert stats.steady_pace([], []) is None
    assert stats.steady_pace([0.1] * 5, [8] * 5) is None
    assert stats.steady_pace([0.1] * 50, [None] * 50) is None
    assert stats.steady_pace([0.0] * 50, [8] * 50) is None


def test_full_batch() -> None:
    assert stats.full_batch([(64, 9), (32, 1), (None, 100)]) == 64
    assert stats.full_batch([(None, 3)]) is None


@given(st.lists(st.floats(1e-6, 1e3), max_size=200))
def test_warm_up_is_at_most_half(seconds: list[float]) -> None:
    assert 0 <= stats.warm_up_steps(seconds) <= len(seconds) // 2


@given(
    st.lists(st.tuples(st.floats(1e-6, 10), st.integers(1, 512)), min_size=1, max_size=100),
    st.floats(0.5, 20),
)
def test_twice_the_time_is_half_the_pace(steps: list[tuple[float, int]], factor: float) -> None:
    seconds, samples = [step[0] for step in steps], [step[1] for step in steps]
    one = stats.steady_pace(seconds, samples)
    other = stats.steady_pace([factor * value for value in seconds], samples)
    assert (one is None) == (other is None)
    if one is not None and other is not None and one.steps == other.steps:
        assert one.samples_per_second == pytest.approx(factor * other.samples_per_second, rel=1e-6)


def drifting(mean: float, count: int, seed: int, like: float) -> list[float]:
    """Gaussian noise of 1 %, neighbours alike by *like*."""
    source = random.Random(seed)
    state, values = source.gauss(0, 1), []
    for _ in range(count):
        state = like * state + math.sqrt(1 - like**2) * source.gauss(0, 1)
        values.append(mean * (1 + 0.01 * state))
    return values


@pytest.mark.parametrize(
    ("confidence", "table"),
    [
        (
            0.95,
            {1: 12.706, 2: 4.303, 3: 3.182, 4: 2.776, 5: 2.571, 9: 2.262, 19: 2.093, 30: 2.042, 120: 1.980},
        ),
        (0.90, {1: 6.314, 2: 2.920, 4: 2.132, 9: 1.833, 30: 1.697}),
    ],
)
def test_t_quantiles_of_the_table(confidence: float, table: dict[int, float]) -> None:
    for degrees, value in table.items():
        assert stats.t_quantile(degrees, confidence) == pytest.approx(value, rel=2e-3)


@given(st.integers(1, 500))
def test_t_quantiles_fall_towards_the_normal_ones(degrees: int) -> None:
    assert stats.t_quantile(degrees) > stats.t_quantile(degrees + 1) > 1.9599


@given(st.lists(st.floats(1e-6, 1e3), min_size=1, max_size=60))
def test_the_interval_holds_the_median(values: list[float]) -> None:
    found = stats.median_with_interval(values, resamples=100)
    assert min(values) <= found.low <= found.median <= found.high <= max(values)
    assert found.median == statistics.median(values)
    assert found == stats.median_with_interval(values, resamples=100), "with a fixed seed"


@pytest.mark.parametrize("count", [6, 10, 20, 50, 100])
@pytest.mark.parametrize(("like", "least"), [(0.0, 0.92), (0.5, 0.80)])
def test_the_interval_holds_the_truth_as_often_as_it_says(count: int, like: float, least: float) -> None:
    hits = 0
    for seed in range(200):
        found = stats.median_with_interval(drifting(1.0, count, seed, like), resamples=200)
        hits += found.low <= 1.0 <= found.high
    assert hits / 200 >= least


def test_the_interval_of_many_values_is_narrow() -> None:
    found = stats.median_with_interval(drifting(1.0, 1500, 0, 0.0), resamples=200)
    assert 0 < found.high - found.low < 0.004


@given(st.lists(st.floats(1e-6, 1e3), min_size=1, max_size=200), st.integers(1, 20))
def test_batch_means_weigh_each_value_once(values: list[float], batches: int) -> None:
    means = stats.batch_means(values, batches)
    assert len(means) == min(batches, len(values))
    assert min(values) * (1 - 1e-9) <= min(means) <= max(means) <= max(values) * (1 + 1e-9)
    if len(values) % batches == 0:
        assert statistics.fmean(means) == pytest.approx(statistics.fmean(values))


def test_relative_error() -> None:
    assert stats.relative_error([]) == math.inf
    assert stats.relative_error([1.0]) == math.inf
    assert stats.relative_error([2.0] * 30) == 0
    loose, tight = drifting(1.0, 10, 1, 0.0), drifting(1.0, 1000, 1, 0.0)
    assert stats.relative_error(tight) < stats.relative_error(loose) < 0.02
    alike = drifting(1.0, 1000, 1, 0.95)
    assert stats.relative_error(alike) > 2 * stats.relative_error(tight), (
        "neighbours that are alike tell less"
    )


@pytest.mark.parametrize("like", [0.0, 0.5])
def test_the_relative_error_covers_the_truth(like: float) -> None:
    hits = 0
    for seed in range(300):
        values = drifting(1.0, 200, seed, like)
        hits += abs(statistics.fmean(values) - 1) <= stats.relative_error(values) * statistics.fmean(values)
    assert 0.90 <= hits / 300 <= 0.99


@pytest.mark.parametrize("seed", range(5))
def test_a_steady_pace_is_settled_and_a_falling_one_is_not(seed: int) -> None:
    assert stats.settled(noisy(0.01, 12, seed, 0.02))
    assert not stats.settled([0.01 * 0.8**index for index in range(12)])
    assert not stats.settled([0.01] * 5), "too few to tell"
    assert not stats.settled([5.0, 1.0, 0.5, 0.2, 0.1, 0.05])
    assert stats.settled([5.0, 1.0, 0.1, *noisy(0.01, 20, seed, 0.02)])


def test_interruptions_of_most_steps_are_a_part_of_them() -> None:
    assert stats.real_interruptions([3, 7], 10) == {3, 7}
    assert stats.real_interruptions([3, 3, 7], 10) == {3, 7}
    assert stats.real_interruptions(range(5), 10) == set(range(5))
    assert stats.real_interruptions(range(6), 10) == set()
    assert stats.real_interruptions([], 0) == set()
