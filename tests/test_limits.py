"""The roofline, operator by operator, by hand."""

from __future__ import annotations

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from outpace import limits
from outpace.records import Ceilings, Operator
from tests.measurements import CEILINGS
from tests.simulated import product

SHEET = msgspec.structs.replace(CEILINGS, bandwidths=[(0, 1e12)], cache_bytes=2**20, launch_seconds=None)

operators = st.builds(
    Operator,
    kind=st.sampled_from(["matmul", "convolution", "rnn", "elementwise", "copy", "optimizer"]),
    name=st.just("op"),
    phase=st.just("forward"),
    dtype=st.sampled_from(["fp32", "bf16", "fp16", "fp64", "int64"]),
    flops=st.integers(0, 10**13),
    bytes_read=st.integers(0, 10**10),
    bytes_written=st.integers(0, 10**10),
    count=st.integers(1, 1000),
)


def test_compute_and_memory() -> None:
    large = product(flops=10**12, bytes_read=10**9, bytes_written=10**9, count=3)
    found = limits.of_operator(large, CEILINGS)
    assert found.limited_by == "compute"
    assert found.seconds == found.compute_seconds == pytest.approx(3 * 0.1)
    assert found.memory_seconds == pytest.approx(3 * 2e9 / 1e12)
    thin = limits.of_operator(product(flops=10**9, bytes_read=2 * 10**9, bytes_written=0), CEILINGS)
    assert thin.limited_by == "memory"
    assert thin.seconds == pytest.approx(2e-3)


def test_no_arithmetic_and_small_is_limited_by_nothing() -> None:
    copy = product(kind="copy", flops=0, bytes_read=2**18, bytes_written=2**18)
    assert limits.of_operator(copy, SHEET) == (0.0, "nothing", 0.0, 0.0)
    assert limits.of_operator(copy, CEILINGS).limited_by == "memory"


def test_the_bandwidth_of_what_is_touched_is_never_that_of_more() -> None:
    assert limits.bandwidth(1, CEILINGS) == 4e12
    assert limits.bandwidth(2**22 - 1, CEILINGS) == 4e12
    assert limits.bandwidth(2**22, CEILINGS) == 2e12
    assert limits.bandwidth(2**40, CEILINGS) == 1e12


@pytest.mark.parametrize(
    ("kind", "dtype", "settings", "peak"),
    [
        ("matmul", "fp32", {}, 10e12),
        ("matmul", "fp32", {"matmul_fp32": "tf32"}, 80e12),
        ("matmul", "fp32", {"convolution_fp32": "tf32"}, 10e12),
        ("attention", "fp32", {"matmul_fp32": "tf32"}, 80e12),
        ("convolution", "fp32", {"convolution_fp32": "tf32"}, 80e12),
        ("rnn", "fp32", {"convolution_fp32": "tf32"}, 80e12),
        ("matmul", "bf16", {"matmul_fp32": "tf32"}, 160e12),
        ("elementwise", "fp32", {"matmul_fp32": "tf32"}, 10e12),
        ("elementwise", "bf16", {}, 10e12),
        ("elementwise", "fp64", {}, None),
        ("matmul", "fp64", {}, None),
    ],
)
def test_peaks(kind: str, dtype: str, settings: dict[str, str], peak: float | None) -> None:
    assert limits.peak_of(product(kind=kind, dtype=dtype), CEILINGS, settings) == peak


@given(st.lists(operators, max_size=10), st.sampled_from([CEILINGS, SHEET]))
def test_the_limit_of_a_step_is_the_sum_and_each_the_larger_of_two(
    step: list[Operator], ceilings: Ceilings
) -> None:
    each = [limits.of_operator(operator, ceilings) for operator in step]
    assert limits.of_step(step, ceilings) == pytest.approx(sum(limit.seconds for limit in each))
    for limit in each:
        assert limit.seconds == pytest.approx(max(limit.compute_seconds, limit.memory_seconds))
        assert (limit.limited_by == "nothing") == (limit.seconds == 0)


@given(operators, st.floats(1.0, 10.0))
def test_a_better_device_has_no_higher_limit(operator: Operator, times: float) -> None:
    better = msgspec.structs.replace(
        CEILINGS,
        matrix_flops_per_second={k: times * v for k, v in CEILINGS.matrix_flops_per_second.items()},
        vector_flops_per_second={k: times * v for k, v in CEILINGS.vector_flops_per_second.items()},
        bandwidths=[(size, times * rate) for size, rate in CEILINGS.bandwidths],
    )
    here = limits.of_operator(operator, CEILINGS).seconds
    assert limits.of_operator(operator, better).seconds == pytest.approx(here / times)


def test_without_a_known_bandwidth_only_arithmetic_counts() -> None:
    bare = msgspec.structs.replace(CEILINGS, bandwidths=[])
    assert limits.of_operator(product(bytes_read=10**12), bare).limited_by == "compute"
