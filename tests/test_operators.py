"""The operators of a step against the limits of a device."""

from __future__ import annotations

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from outpace import limits, operators
from outpace.records import Operator
from tests.measurements import CEILINGS
from tests.simulated import product
from tests.test_limits import operators as any_operator


def against(step: list[Operator], seconds: float = 0.010, **known: object) -> dict[str, object]:
    ceilings = msgspec.structs.replace(CEILINGS, **known)
    each = [limits.of_operator(operator, ceilings) for operator in step]
    return operators.of_step(step, each, ceilings, {}, seconds, None)


def test_the_share_of_the_limit() -> None:
    step = [product(flops=2 * 10**10), product(flops=10**10, count=2)]
    found = against(step)
    assert found["limit_seconds"] == pytest.approx(4e-3)
    assert found["share_of_limit"] == pytest.approx(0.4)
    assert found["limit_source"] == CEILINGS.source


@given(st.lists(any_operator, min_size=1, max_size=12), st.floats(1.0, 50.0))
def test_no_share_is_above_one_when_operators_take_at_least_their_limit(
    step: list[Operator], slower: float
) -> None:
    each = [limits.of_operator(operator, CEILINGS) for operator in step]
    timed = [
        msgspec.structs.replace(operator, seconds=slower * limit.seconds + 1e-9)
        for operator, limit in zip(step, each, strict=True)
    ]
    seconds = sum(operator.seconds or 0.0 for operator in timed)
    found = operators.of_step(timed, each, CEILINGS, {}, seconds, None)
    if "share_of_limit" in found:
        assert 0 <= found["share_of_limit"] <= 1
    else:
        assert "no peak is known" in found["limit_missing_because"], "only that is a reason"
    for share in operators.shares(timed, each, seconds, CEILINGS):
        assert share.seconds is not None
        assert share.limit_seconds <= share.seconds
        assert "too low" not in share.sentence


def test_a_step_that_is_faster_than_its_limit_has_no_share() -> None:
    found = against([product(flops=10**12)], seconds=0.010)
    assert found.get("share_of_limit") is None
    assert "too low" in str(found["limit_missing_because"])


def test_why_there_is_no_limit() -> None:
    assert "no operators" in operators.of_step([], [], CEILINGS, {}, 0.01, None)["limit_missing_because"]
    unknown = operators.of_step([product()], [], None, {}, 0.01, "no datasheet facts of X are known")
    assert unknown == {"limit_missing_because": "no datasheet facts of X are known"}
    assert operators.of_step([product()], [], None, {}, 0.01, None)["limit_missing_because"]
    fp8 = against([product(dtype="fp8"), product(dtype="fp8")])
    assert fp8["limit_missing_because"] == f"no peak is known for fp8 ({CEILINGS.source})"


@given(st.lists(st.floats(1e-6, 1.0), min_size=1, max_size=30), st.floats(1e-4, 1.0))
def test_shares_are_of_the_measured_step_and_add_up(times: list[float], seconds: float) -> None:
    step = [product(seconds=one, count=index + 1) for index, one in enumerate(times)]
    each = [limits.of_operator(operator, CEILINGS) for operator in step]
    found = operators.shares(step, each, seconds, CEILINGS)
    assert len(found) == min(len(step), operators.MOST_OPERATORS)
    known = [share.share_of_step or 0.0 for share in found]
    assert known == sorted(known, reverse=True)
    assert sum(known) <= 1 + 1e-9
    if len(found) == len(step):
        spent = sum(share.seconds or 0.0 for share in found)
        assert spent == pytest.approx(min(seconds, sum(times))), (
            "never more than the step, and not made longer"
        )
    assert {share.flops for share in found} <= {operator.flops * operator.count for operator in step}


def test_without_times_the_limit_ranks() -> None:
    step = [product(flops=10**9), product(flops=10**11), product(flops=10**10)]
    each = [limits.of_operator(operator, CEILINGS) for operator in step]
    found = operators.shares(step, each, 0.1, CEILINGS)
    assert [share.flops for share in found] == [10**11, 10**10, 10**9]
    assert all(share.seconds is None and share.share_of_step is None for share in found)
