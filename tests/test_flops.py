"""The amount of arithmetic, against brute-force counts."""

from __future__ import annotations

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
