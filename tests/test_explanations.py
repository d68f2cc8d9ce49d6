"""A sentence for each way in which an operator can be held back."""

from __future__ import annotations

import re

from hypothesis import given
from hypothesis import strategies as st

from outpace import explanations, limits
from outpace.records import Operator
from tests.measurements import CEILINGS
from tests.simulated import product


def sentence(operator: Operator, seconds: float | None) -> str:
    return explanations.of_operator(operator, limits.of_operator(operator, CEILINGS), seconds, CEILINGS)


def test_a_sentence_for_each_kind_of_operator() -> None:
    big = {"flops": 10**11, "bytes_read": 10**6, "bytes_written": 10**6}
    at_limit = 10**11 / 10e12
    assert sentence(product(**big), None) == "100 GFLOP per call; needs 10.0 ms at the limit"
    assert sentence(product(**big), 1.25 * at_limit).endswith(
        "80% of the limit: a smaller type would raise the limit"
    )
    assert sentence(product(**big, dtype="bf16"), 0.001).endswith("62% of the limit: well used")
    assert sentence(product(**big), 4 * at_limit).endswith(
        "the library's kernel is far from the peak for these shapes"
    )
    narrow = product(**big, inputs=((4096, 8), (8, 4096)))
    assert sentence(narrow, 4 * at_limit).endswith("8 rows or columns are too few to fill the units")
    grouped = product(**big, kind="convolution", attributes={"groups": 32})
    assert "grouped convolutions" in sentence(grouped, 4 * at_limit)
    three = product(**big, kind="convolution", inputs=((64, 3, 32, 32), (64, 3, 7, 7)))
    assert sentence(three, 4 * at_limit).endswith("3 channels are too few to fill the units")
    last = product(
        **big,
        kind="convolution",
        inputs=((64, 7, 7, 512), (3, 3, 512, 512)),
        attributes={"channels_last": True},
    )
    assert sentence(last, 4 * at_limit).endswith("far from the peak for these shapes")
    assert "one time step waits" in sentence(product(**big, kind="rnn"), 4 * at_limit)
    moved = {"flops": 0, "bytes_read": 10**9, "bytes_written": 10**9}
    assert "only moving less would help" in sentence(product(**moved, kind="elementwise"), 0.003)
    assert "does not use the bandwidth" in sentence(product(**moved, kind="elementwise"), 0.02)
    assert "indices, scattered writes" in sentence(product(**moved, kind="pooling"), 0.02)
    tiny = product(flops=10, bytes_read=40, bytes_written=40, kind="elementwise", count=100)
    assert sentence(tiny, 100 * 8e-6) == "100 calls of 8.00 µs: mostly the cost of calling"
    assert "mostly the cost" not in sentence(tiny, 100 * 1e-3)


@given(st.floats(1e-9, 10.0) | st.none(), st.integers(0, 10**13), st.integers(0, 10**10), st.integers(1, 100))
def test_no_sentence_tells_of_more_than_all_of_the_limit(
    seconds: float | None, flops: int, moved: int, count: int
) -> None:
    operator = product(flops=flops, bytes_read=moved, bytes_written=0, count=count)
    shares = [int(one) for one in re.findall(r"(\d+)% of the limit", sentence(operator, seconds))]
    assert all(share <= 100 for share in shares)
