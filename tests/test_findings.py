"""What holds a training back, in sentences."""

from __future__ import annotations

import dataclasses
from typing import Any

import msgspec
import pytest

from outpace import findings, limits
from outpace.findings import Calls, Facts
from tests.measurements import CEILINGS
from tests.simulated import product

FACTS = Facts(step=0.010, device="cuda:0", synchronous=False, windows=30, window=0.1, steps=300)
HOST_BOUND = Calls(calls=1000, small=900, small_share=0.9, launch=5e-6, limit=0.001)
DEVICE_BOUND = Calls(calls=10, small=1, small_share=0.01, launch=5e-6, limit=0.008)


def facts(**known: Any) -> Facts:
    return dataclasses.replace(FACTS, **known)


def said(found: Facts, calls: Calls | None = None) -> dict[str, str]:
    return {finding.what: finding.sentence for finding in findings.findings(found, calls)}


@pytest.mark.parametrize(
    ("known", "calls", "bound"),
    [
        ({"data": 0.006}, HOST_BOUND, "data"),
        ({"data": 0.004}, None, None),
        ({"waited": 0.008}, HOST_BOUND, "device"),
        ({"waited": 0.001}, HOST_BOUND, "host"),
        ({"waited": 0.001}, DEVICE_BOUND, "device"),
        ({}, None, None),
        ({"synchronous": True}, HOST_BOUND, "host"),
        ({"synchronous": True}, Calls(10, 1, 0.01, 5e-6, 0.001), "device"),
        ({}, Calls(10, 1, 0.01, 5e-6, 0.001), "host"),
    ],
)
def test_what_a_step_waits_for(known: dict[str, Any], calls: Calls | None, bound: str | None) -> None:
    assert findings.bound_by(facts(**known), calls) == bound


def test_nothing_to_say_of_a_healthy_training() -> None:
    assert said(FACTS) == {}
    assert said(facts(data=0.0001, waited=0.009, first_step=0.3, host_step=0.009), DEVICE_BOUND) == {}


def test_data() -> None:
    assert "data" not in said(facts(data=0.0019))
    assert said(facts(data=0.003))["data"] == "30% of each step (3.00 ms) is spent waiting for the next batch"
    assert said(facts(data=0.009))["data"].endswith("the data loading is the limit, not the card")
    assert said(facts(data=0.009, device="cpu"))["data"].endswith("not the CPU")
    assert said(facts(data=0.5))["data"].startswith("100% of each step")


def test_launches() -> None:
    sentence = said(FACTS, HOST_BOUND)["launches"]
    assert sentence.startswith("each step makes 1,000 operator calls of 10.0 µs on average; 900 of them")
    assert sentence.endswith("the host is the limit, not the card")
    assert "launches" not in said(FACTS, DEVICE_BOUND)


def test_time_outside_of_operators_is_the_scripts_unless_calling_them_explains_it() -> None:
    few = Calls(20, 20, None, 5e-6, 0.00002, timed=0.0002)
    own = said(facts(step=0.0007, data=None), few)
    assert own["script"].startswith("71% of each step (500 µs) passes outside of operators")
    assert "launches" not in own
    many = Calls(2000, 2000, None, 5e-6, 0.0001, timed=0.008)
    calling = said(facts(step=0.02, data=None), many)
    assert "script" not in calling
    assert "operator calls" in calling["launches"]


def test_a_clock_that_does_not_wait() -> None:
    assert "1.00 ms per step, and a step takes 10.0 ms" in said(facts(host_step=0.001))["ahead"]
    assert "ahead" not in said(facts(host_step=0.009))
    assert "ahead" not in said(facts(host_step=None, synchronous=True))
    assert "the step time is the host's" in said(facts(host_clock=True))["ahead"]
    assert "ahead" not in said(facts(host_clock=True, synchronous=True))


def test_compilation() -> None:
    sentence = said(facts(first_step=60.0, warm_up_steps=1200, warm_up=75.0))["compilation"]
    assert sentence.startswith("the first step took 1 min 00 s, 6,000 times a later one")
    assert "1,200 steps of warm-up (1 min 15 s) are not in the rate" in sentence
    assert "compilation" not in said(facts(first_step=0.4)), "less than half a second is no news"
    assert "compilation" not in said(facts(step=20.0, first_step=60.0))


def test_unsteady() -> None:
    assert "never became steady" in said(facts(settled=False))["unsteady"]
    assert said(facts(slow_windows=3))["unsteady"].startswith("3 of 30 windows")


def test_throttling_names_every_reason_and_its_share() -> None:
    sentence = said(facts(throttled={"temperature": 0.5, "power limit": 0.12}))["throttling"]
    assert sentence == (
        "the device was held back: temperature (50% of the time), power limit (12% of the time)"
    )


def test_partial_batches() -> None:
    found = said(facts(full=64, partial={10: 3, 54: 2}, steps=1500))["partial batches"]
    assert found.startswith("5 of 1,500 steps seen had a partial batch (10, 54 instead of 64 samples)")


def test_losses() -> None:
    assert said(facts(nonfinite=2, skipped=1))["loss"] == (
        "the loss was not finite in 2 steps and loss scaling skipped 1 optimizer steps"
    )


def test_the_weightiest_comes_first() -> None:
    everything = facts(
        data=0.006,
        host_step=0.001,
        first_step=60.0,
        settled=False,
        throttled={"temperature": 1.0},
        full=64,
        partial={3: 1},
        nonfinite=1,
    )
    assert list(said(everything)) == [
        *("data", "ahead", "compilation", "unsteady", "throttling", "partial batches", "loss")
    ]


def test_calls_against_the_cost_of_a_call() -> None:
    small = product(
        kind="elementwise", flops=10, bytes_read=40, bytes_written=40, count=90, seconds=90 * 6e-6
    )
    large = product(flops=10**11, count=10, seconds=0.2)
    step = [small, large]
    each = [limits.of_operator(one, CEILINGS) for one in step]
    found = findings.calls_of(step, each, 5e-6)
    assert found is not None
    assert (found.calls, found.small) == (100, 90)
    assert found.small_share == pytest.approx(90 * 6e-6 / (0.2 + 90 * 6e-6))
    assert found.limit == pytest.approx(sum(limit.seconds for limit in each))
    untimed = [msgspec.structs.replace(one, seconds=None) for one in step]
    assert (findings.calls_of(untimed, each, 5e-6) or found).small_share is None
    assert findings.calls_of(step, each, None) is None
    assert findings.calls_of([], [], 5e-6) is None


def test_a_training_at_its_limit_is_not_bound_by_calls() -> None:
    assert not Calls(1000, 1000, 1.0, 5e-6, 0.006).bound(0.010)
    assert Calls(1000, 1000, None, 5e-6, 0.001).bound(0.010)
    assert not Calls(1000, 1000, None, 5e-6, 0.001).bound(10.0), "calls of 10 ms are no launches"
