"""The amount of arithmetic, against brute-force counts."""

from __future__ import annotations

import itertools

from hypothesis import given
from hypothesis import strategies as st

from outpace import flops

few = st.integers(1, 4)


@given(few, few, few)
def test_a_product_is_counted_by_its_loops(m: int, n: int, k: int) -> None:
    assert flops.matmul(m, n, k) == sum(2 for _ in range(m) for _ in range(n) for _ in range(k))


@given(few, few, few, few)
def test_one_by_one_convolution_is_a_product(batch: int, inside: int, outside: int, positions: int) -> None:
    assert flops.convolution(batch, inside, outside, (1, 1), positions) == flops.matmul(
        batch * positions, outside, inside
    )


@given(
    few, few, few, st.integers(1, 3), st.integers(1, 3), st.integers(1, 2), st.integers(1, 2), st.booleans()
)
def test_a_convolution_is_counted_by_its_loops(
    batch: int, inside: int, outside: int, kernel: int, stride: int, dilation: int, groups: int, flat: bool
) -> None:
    inside, outside, size = inside * groups, outside * groups, 6
    window = (kernel,) if flat else (kernel, kernel)
    positions = (size - dilation * (kernel - 1) - 1) // stride + 1
    places = [range(positions)] * len(window)
    counted = 0
    for _ in itertools.product(range(batch), range(outside), *places):  # each number of the output
        for _ in itertools.product(range(inside // groups), *map(range, window)):
            counted += 2
    assert flops.convolution(batch, inside, outside, window, positions ** len(window), groups) == counted


def test_depthwise_has_one_channel_in() -> None:
    assert flops.convolution(1, 8, 8, (3, 3), 100, groups=8) * 8 == flops.convolution(1, 8, 8, (3, 3), 100)


def test_attention_is_two_products_and_its_gradient_five() -> None:
    two = flops.matmul(5, 7, 16, batch=6) + flops.matmul(5, 16, 7, batch=6)
    assert flops.attention(2, 3, 5, 7, 16) == two
    assert flops.attention_backward(2, 3, 5, 7, 16) * 2 == 5 * two


def test_an_lstm_is_eight_products_per_step() -> None:
    assert flops.recurrent("lstm", 2, 10, 3, 5) == 10 * 4 * (flops.matmul(2, 5, 3) + flops.matmul(2, 5, 5))
    both = flops.recurrent("gru", 2, 10, 3, 5, layers=2, directions=2)
    first = 2 * 10 * 3 * (flops.matmul(2, 5, 3) + flops.matmul(2, 5, 5))
    second = 2 * 10 * 3 * (flops.matmul(2, 5, 10) + flops.matmul(2, 5, 5))
    assert both == first + second


def test_a_projection_narrows_the_state() -> None:
    plain = flops.recurrent("lstm", 2, 10, 3, 2)
    narrowed = flops.recurrent("lstm", 2, 10, 3, 5, projection=2)
    assert plain == 10 * flops.matmul(2, 4 * 2, 3 + 2)
    assert narrowed == 10 * (flops.matmul(2, 4 * 5, 3 + 2) + flops.matmul(2, 2, 5))
