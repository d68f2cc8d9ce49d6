"""Steady state found where it is known by construction."""

from __future__ import annotations

import random

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
