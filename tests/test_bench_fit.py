"""The fit of the coefficients: exact derivatives, and that it finds again what made the times."""

from __future__ import annotations

import math
import random

import msgspec
import pytest

np = pytest.importorskip("numpy")
pytest.importorskip("scipy")

from bench import calibrate, fit, judging, priors, tables, traces  # noqa: E402

from outpace.cards import load  # noqa: E402
from outpace.prediction import coefficients, step  # noqa: E402
from tests.predictions import convolution, light, matmul, recurrent  # noqa: E402

CARDS = [load()[name] for name in ("v100-sxm2-32gb", "t4", "a100-sxm-80gb", "gtx-1080-ti")]


def examples(model: coefficients.Coefficients) -> list[fit.Example]:
    """Steps whose times follow from *model*."""
    chance = random.Random(1)
    found = []
    for card in CARDS:
        for _ in range(12):
            operators = [
                matmul(*(chance.choice([256, 1024, 4096]) for _ in range(3)), count=3),
                convolution(chance.choice([8, 32]), 64),
                light(size=chance.choice([2**20, 2**24])),
                light("softmax", "aten._softmax", phase="backward"),
                recurrent(),
            ]
            seconds = step.of_operators(operators, card, model).seconds
            found.append(fit.Example(operators, card, seconds, fit.NEWEST, 0.02, system="one"))
    return found


def test_derivatives_are_exact() -> None:
    problem = fit.Problem(examples(coefficients.load())[::6])
    chance = np.random.RandomState(0)
    theta = problem.means + 0.1 * chance.randn(len(problem.means))
    before, exact = problem.predicted(theta, derivatives=True)
    assert exact is not None
    for place in range(len(theta)):
        moved = theta.copy()
        moved[place] += 1e-6
        after, _ = problem.predicted(moved, derivatives=False)
        assert np.allclose((after - before) / 1e-6, exact[:, place], atol=1e-4), place


def test_what_made_the_times_is_found_again() -> None:
    truth = coefficients.load()
    made = examples(truth)
    found = fit.coefficients(fit.fit(made))
    logs = [math.log(step.of_operators(one.operators, one.card, found).seconds / one.seconds) for one in made]
    assert judging.errors(logs).mean < 2.5


def test_the_coefficients_follow_from_the_public_operators() -> None:
    if not traces.MEASURED.exists():
        pytest.skip("the public measurements are not beside this checkout")
    kinds = ("matmul", "elementwise", "softmax", "layer norm")
    sample = [
        fit.Example([operator], card, seconds, fit.NEWEST, 0.3, floor=device)
        for device, operator, card, seconds in tables.single_operators(12)
    ]
    assert len(sample) > 500
    found, kept = fit.coefficients(fit.fit(sample)), coefficients.load()
    assert found.traffic["elementwise"] == pytest.approx(kept.traffic["elementwise"], abs=0.15)
    for name in ("v100-pcie-32gb", "a100-pcie-80gb", "p100-pcie-16gb"):
        sustained = []
        for model in (found, kept):
            rate = step.sheet_of(load()[name], [], model, {}).bandwidth
            sustained.append(rate.value)
        assert sustained[0] == pytest.approx(sustained[1], rel=0.2)  # whole steps have a say too
    assert set(kinds) <= set(found.traffic) | set(found.arithmetic["vector"])


def test_what_is_written_is_what_is_read() -> None:
    made = fit.coefficients({})
    text = msgspec.json.encode(calibrate.rounded(msgspec.to_builtins(made)))
    again = msgspec.json.decode(text, type=coefficients.Coefficients)
    assert again.arithmetic.keys() == made.arithmetic.keys()
    assert again.traffic["elementwise"] == priors.TRAFFIC["elementwise"][0]


def test_errors_and_families() -> None:
    found = judging.errors([math.log(1.1), math.log(0.9), 0.0])
    assert found.rows == 3
    assert found.mean == pytest.approx(20 / 3)
    assert found.worst == pytest.approx(10)
    assert tables.family_of("tf_efficientnet_b0") == "efficientnet"
    assert tables.family_of("resnet50d") == "resnet"
