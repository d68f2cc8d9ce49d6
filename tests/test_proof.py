"""Non-inferiority over seeds."""

from __future__ import annotations

import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from outpace import proof
from outpace.proof import Training
from outpace.records import Host, Run


def training(
    metrics: dict[str, float | None],
    losses: list[float | None],
    *,
    seed: int = 0,
    rate: float | None = 100.0,
    joules: float | None = None,
) -> Training:
    host = Host(name="h", system="s", cpu="c", cores=1, memory_bytes=1)
    run = Run(
        outpace="0",
        target="t",
        script="t",
        args=[],
        state="done",
        started_at="",
        seconds=1.0,
        host=host,
        seed=seed,
        metrics=metrics,
        losses=losses,
        steps=len(losses),
        nonfinite_losses=[index for index, loss in enumerate(losses) if loss is None],
        samples_per_second=rate,
    )
    return Training(run, joules, "a meter" if joules else None)


@pytest.mark.parametrize(
    ("name", "better"),
    [
        ("test_accuracy", "higher"),
        ("val_auc", "higher"),
        ("F1", "higher"),
        ("mean loss", "lower"),
        ("perplexity", "lower"),
        ("top5_error", "lower"),
        ("testAccuracy", "higher"),
        ("AUC", "higher"),
        ("mAP@50", "unknown"),
        ("val_mape", "lower"),
        ("RMSE", "lower"),
        ("confidence", "unknown"),
        ("mean_power", "unknown"),
        ("certainty", "unknown"),
        ("temperature", "unknown"),
    ],
)
def test_the_direction_by_the_name(name: str, better: str) -> None:
    assert proof.direction(name) == better


def test_the_figures_of_a_training() -> None:
    losses: list[float | None] = [4.0, *[1.0] * 18, 0.5]
    found = proof.figures(training({"accuracy": 0.9, "other": None}, losses).run)
    assert found == {"accuracy": 0.9, "mean loss": pytest.approx(22.5 / 20), "final loss": 0.75}
    assert proof.figures(training({}, losses).run, 10)["mean loss"] == pytest.approx(1.3)
    assert proof.figures(training({}, [1.0, None]).run)["mean loss"] == math.inf


def test_a_score_holds_within_the_spread_and_not_beyond() -> None:
    baseline = [0.960, 0.962, 0.964]
    near = proof.score("accuracy", baseline, [0.959, 0.962, 0.963])
    assert near.held
    assert near.worse_by == pytest.approx(0.002 / 3)
    assert near.bound is not None
    assert near.bound > 0.002 / 3
    far = proof.score("accuracy", baseline, [0.90, 0.902, 0.904])
    assert not far.held
    better = proof.score("accuracy", baseline, [0.99, 0.992, 0.994])
    assert better.held
    assert not proof.score("temperature", baseline, [0.99, 0.992, 0.994]).held


def test_a_recipe_that_spreads_widely_does_not_widen_its_margin() -> None:
    assert not proof.score("loss", [1.0, 1.001, 1.002], [0.5, 1.0, 1.5]).held


def test_without_spread_half_a_percent_counts_as_the_same() -> None:
    assert proof.score("loss", [1.0, 1.0, 1.0], [1.004, 1.004, 1.004]).held
    assert not proof.score("loss", [1.0, 1.0, 1.0], [1.006, 1.006, 1.006]).held


def test_what_is_not_finite_fails_unless_it_always_was() -> None:
    failed = proof.score("loss", [1.0, 1.0], [1.0, math.inf])
    assert not failed.held
    assert failed.recipe == [1.0, None]
    assert proof.score("loss", [math.inf, 1.0], [math.inf, 1.0]).held


@given(st.lists(st.floats(-1e6, 1e6), min_size=2, max_size=6), st.sampled_from(["loss", "accuracy"]))
def test_more_seeds_of_the_very_same_never_fail_for_their_mean(values: list[float], name: str) -> None:
    found = proof.score(name, values, values)
    assert found.worse_by == 0
    if len(values) >= 3:
        assert found.held


@given(st.lists(st.floats(0.1, 1.0), min_size=2, max_size=6))
def test_a_huge_worsening_never_holds(values: list[float]) -> None:
    assert not proof.score("loss", values, [value + 100 for value in values]).held


def test_more_seeds_detect_less() -> None:
    found = [proof.detectable(count) for count in (3, 5, 10, 100)]
    assert found == sorted(found, key=lambda one: abs(one - proof.MARGIN_DEVIATIONS), reverse=True) or all(
        one <= proof.MARGIN_DEVIATIONS for one in found
    )


def sides(shift: float = 0.0) -> tuple[list[Training], list[Training]]:
    before = [
        training({"accuracy": 0.9 + seed / 100}, [2.0, 1.0 + seed / 10], seed=seed, joules=2.0)
        for seed in range(3)
    ]
    after = [
        training(
            {"accuracy": 0.9 + seed / 100 - shift}, [2.0, 1.0 + seed / 10], seed=seed, rate=300.0, joules=0.5
        )
        for seed in range(3)
    ]
    return before, after


def test_a_proof_has_gain_energy_and_scores() -> None:
    found = proof.of(*sides(), whole=True)
    assert found.held
    assert found.seeds == [0, 1, 2]
    assert found.gain is not None
    assert found.gain.median == pytest.approx(3.0)
    assert found.energy_ratio == pytest.approx(0.25)
    assert found.energy_source == "a meter"
    assert [one.name for one in found.scores] == ["accuracy", "mean loss", "final loss"]
    assert found.notes == []
    assert not proof.of(*sides(0.5), whole=True).held


def test_where_seeds_make_no_difference_it_is_said() -> None:
    one = training({}, [1.0, 0.5])
    found = proof.of([one, one], [one, one], whole=False, notes=["short"])
    assert found.notes[0] == "short"
    assert "could not be changed from outside" in found.notes[1]


def test_without_anything_to_compare_nothing_is_proven() -> None:
    one = training({}, [])
    found = proof.of([one, one], [one, one], whole=True)
    assert not found.held
    assert "no loss and no metric" in found.notes[0]


def test_a_metric_of_some_trainings_only_is_not_compared() -> None:
    before, after = sides()
    after[1] = training({}, [2.0, 1.1])
    found = proof.of(before, after, whole=True)
    assert "accuracy is not known of every training, and is not compared" in found.notes


def test_the_first_losses_are_the_same_or_not() -> None:
    assert proof.reproduces([1.0, 0.5, None], [1.0, 0.5000001, None])
    assert not proof.reproduces([1.0, 0.5], [1.0, 0.51])
    assert not proof.reproduces([1.0, 0.5], [1.0, None])
    assert not proof.reproduces([], [])
    assert proof.reproduces([1.0] * 5 + [2.0], [1.0] * 5 + [3.0])
