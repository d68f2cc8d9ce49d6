"""Attention and recurrent networks where they are one operator, on every device's back-end."""

from __future__ import annotations

from typing import Any

import pytest
import torch
from bench.flops import given
from torch._subclasses import FakeTensorMode
from torch.nn import functional as F

from outpace import flops
from outpace.observe.torch.tracing import Tracer
from outpace.records import Operator
from tests.test_observe_torch_operators import aten, described, meta

#: (batch, heads, length, head_dim), the keys longer than the queries
QUERY, KEY = meta(2, 4, 8, 16, dtype=torch.float16), meta(2, 4, 12, 16, dtype=torch.float16)
SUM, NUMBER = meta(2, 4, 8), meta(1, dtype=torch.int64)
PRODUCT = 2 * (2 * 4) * 8 * 12 * 16

ATTENTION_FORWARD = {
    "flash": (aten._scaled_dot_product_flash_attention.default, (0.0, True)),
    "flash_for_cpu": (aten._scaled_dot_product_flash_attention_for_cpu.default, (0.0, True)),
    "efficient": (aten._scaled_dot_product_efficient_attention.default, (None, True, 0.0, True)),
    "cudnn": (aten._scaled_dot_product_cudnn_attention.default, (None, True, 0.0, True)),
    "overrideable": (aten._scaled_dot_product_fused_attention_overrideable.default, (None, 0.0, True)),
}
ATTENTION_BACKWARD = {
    "flash": (
        aten._scaled_dot_product_flash_attention_backward.default,
        (QUERY, SUM, None, None, 8, 12, 0.0, True, NUMBER, NUMBER),
    ),
    "flash_for_cpu": (
        aten._scaled_dot_product_flash_attention_for_cpu_backward.default,
        (QUERY, SUM, 0.0, True),
    ),
    "efficient": (
        aten._scaled_dot_product_efficient_attention_backward.default,
        (None, QUERY, SUM, NUMBER, NUMBER, 0.0, [True, True, True, False], True),
    ),
    "cudnn": (
        aten._scaled_dot_product_cudnn_attention_backward.default,
        (QUERY, SUM, NUMBER, NUMBER, None, None, None, 8, 12, 0.0, True),
    ),
    "overrideable": (
        aten._scaled_dot_product_fused_attention_overrideable_backward.default,
        (None, [True, True, True, False], QUERY, SUM, None, None, 8, 12, 0.0, True, NUMBER, NUMBER),
    ),
}


@pytest.mark.parametrize("kernel", ATTENTION_FORWARD)
def test_attention_of_every_device_is_counted_in_full(kernel: str) -> None:
    func, rest = ATTENTION_FORWARD[kernel]
    operator = described(func, QUERY, KEY, KEY, *rest, result=(QUERY, SUM))
    assert (operator.kind, operator.dtype, operator.flops) == ("attention", "fp16", 2 * PRODUCT)
    expected = {"causal": True, "heads": 4, "q_len": 8, "kv_len": 12, "head_dim": 16}
    assert operator.attributes == expected
    assert not operator.guessed


@pytest.mark.parametrize("kernel", ATTENTION_BACKWARD)
def test_the_gradient_of_attention_is_five_products(kernel: str) -> None:
    func, rest = ATTENTION_BACKWARD[kernel]
    operator = described(func, QUERY, QUERY, KEY, KEY, *rest, result=(QUERY, KEY, KEY), phase="backward")
    assert (operator.kind, operator.flops) == ("attention", 5 * PRODUCT)
    assert operator.attributes["causal"] is True


def test_kernels_that_take_the_length_first() -> None:
    query, key = QUERY.transpose(1, 2), KEY.transpose(1, 2)
    flash = described(
        aten._flash_attention_forward.default, query, key, key, None, None, 8, 12, 0.0, False, False,
        result=(query, SUM),
    )  # fmt: skip
    assert (flash.flops, flash.attributes["causal"], flash.guessed) == (2 * PRODUCT, False, False)
    efficient = described(
        aten._efficient_attention_forward.default, query, key, key, None, None, None, None, None, 0.0, 1,
        result=(query, SUM),
    )  # fmt: skip
    assert (efficient.flops, efficient.attributes["causal"]) == (2 * PRODUCT, True)


def test_packed_sequences_are_taken_for_equal_ones_and_said_to_be_guessed() -> None:
    packed, starts = meta(20, 4, 16), meta(3, dtype=torch.int32)
    operator = described(
        aten._flash_attention_forward.default, packed, packed, packed, starts, starts, 15, 15,
        0.0, False, False, result=(packed, SUM),
    )  # fmt: skip
    assert operator.flops == flops.attention(2, 4, 10, 10, 16)
    assert operator.guessed


def test_multi_head_attention_in_one_piece() -> None:
    data, square = meta(2, 8, 16), meta(16, 16)
    operator = described(
        aten._native_multi_head_attention.default,
        data, data, data, 16, 4, meta(48, 16), meta(48), square, meta(16), result=(data, None),
    )  # fmt: skip
    assert operator.flops == 4 * 2 * (2 * 8) * 16 * 16 + flops.attention(2, 4, 8, 8, 4)


def _weights(cell: str, features: int, hidden: int, layers: int, directions: int) -> list[torch.Tensor]:
    gates, weights = flops.GATES[cell] * hidden, []
    for layer in range(layers):
        for _ in range(directions):
            width = features if layer == 0 else hidden * directions
            weights += [meta(gates, width), meta(gates, hidden), meta(gates), meta(gates)]
    return weights


@pytest.mark.parametrize(("mode", "cell"), [(0, "rnn"), (1, "rnn"), (2, "lstm"), (3, "gru")])
@pytest.mark.parametrize(("layers", "directions"), [(1, 1), (2, 2)])
def test_recurrent_networks_in_one_piece(mode: int, cell: str, layers: int, directions: int) -> None:
    data, state, weights = (
        meta(7, 4, 3),
        meta(layers * directions, 4, 5),
        _weights(cell, 3, 5, layers, directions),
    )
    expected = flops.recurrent(cell, 4, 7, 3, 5, layers, directions)
    out, both, nothing = meta(7, 4, 5 * directions), directions == 2, None
    sizes: tuple[Any, ...] = (mode, 5, 0, layers, False, 0.0, True, both, [], nothing)
    cudnn = described(aten._cudnn_rnn.default, data, weights, 4, nothing, state, state, *sizes, result=(out,))
    assert (cudnn.kind, cudnn.flops) == ("rnn", expected)
    assert cudnn.attributes.items() >= {
        "cell": cell, "hidden": 5, "layers": layers, "length": 7, "batch": 4, "directions": directions,
    }.items()  # fmt: skip
    gradients = (out, out, state, state)
    for by_weights in (True, False):
        mask = [True, True, True, by_weights]
        backward = described(
            aten._cudnn_rnn_backward.default,
            data, weights, 4, meta(1), state, state, *gradients, *sizes, meta(1), mask,
            result=(data, state, state, weights), phase="backward",
        )  # fmt: skip
        assert backward.flops == expected * (1 + by_weights)
    sizes = (mode, 5, layers, False, 0.0, True, both, [], nothing)
    miopen = described(aten.miopen_rnn.default, data, weights, 4, state, state, *sizes, result=(out,))
    assert miopen.flops == expected


def test_packed_sequences_count_their_tokens() -> None:
    data, state = meta(11, 3), meta(1, 4, 5)
    operator = described(
        aten._cudnn_rnn.default, data, _weights("lstm", 3, 5, 1, 1), 4, None, state, state,
        2, 5, 0, 1, False, 0.0, True, False, [4, 4, 2, 1], None, result=(meta(11, 5),),
    )  # fmt: skip
    assert operator.flops == flops.recurrent("lstm", 1, 11, 3, 5)
    assert (operator.attributes["batch"], operator.attributes["length"]) == (4, 4)


def _trained(network: torch.nn.Module, data: torch.Tensor, *state: torch.Tensor) -> list[Operator]:
    tracer = Tracer(lambda: "forward")
    tracer.start()
    out = network(data, state if len(state) > 1 else state[0])[0]
    out.sum().backward()
    return tracer.stop().operators


@pytest.mark.parametrize("directions", [1, 2])
def test_an_lstm_adds_up_to_its_closed_form_however_it_runs(directions: int) -> None:
    def train() -> int:
        network = torch.nn.LSTM(3, 5, 2, bidirectional=directions == 2)
        first = [given(2 * directions, 4, 5) for _ in range(2)]
        operators = _trained(network, given(7, 4, 3), *first)
        return sum(o.flops * o.count for o in operators if o.kind in ("matmul", "rnn"))

    expected = 3 * flops.recurrent("lstm", 4, 7, 3, 5, 2, directions)
    assert train() == expected  # on a CPU with oneDNN: one operator per layer and direction
    torch._C._set_mkldnn_enabled(False)
    try:
        assert train() == expected  # in pieces
    finally:
        torch._C._set_mkldnn_enabled(True)
    with FakeTensorMode(allow_non_fake_inputs=True):
        assert train() == expected


def test_attention_on_the_cpu_is_what_its_products_are() -> None:
    def forward(backend: torch.nn.attention.SDPBackend) -> int:
        query = torch.randn(2, 4, 8, 16)
        tracer = Tracer(lambda: "forward")
        with torch.nn.attention.sdpa_kernel(backend):
            tracer.start()
            F.scaled_dot_product_attention(query, query, query)
            operators = tracer.stop().operators
        return sum(o.flops * o.count for o in operators if o.kind in ("matmul", "attention"))

    fused = forward(torch.nn.attention.SDPBackend.FLASH_ATTENTION)
    assert fused == forward(torch.nn.attention.SDPBackend.MATH) == 2 * 2 * 8 * 8 * 8 * 16
