"""An LSTM, GRU or RNN over a whole sequence as one operator, forward and backward, as cuDNN and MIOpen have
it.

Only for tensors that have shapes and no values: nothing is computed.
"""

from __future__ import annotations

# ruff: noqa: ARG001 - operators without values need every argument for their schema
from collections.abc import Sequence
from typing import Any

import torch

#: PyTorch's functions, by the name of the cell that they compute.
CELLS = {"lstm": "lstm", "gru": "gru", "rnn_tanh": "rnn", "rnn_relu": "rnn"}


def call(name: str, *args: Any) -> tuple[torch.Tensor, ...]:
    """What ``torch.lstm`` and its like return for the same arguments (not of packed sequences)."""
    data, states, weights, has_biases, layers, _dropout, train, bidirectional, batch_first = args
    first = states[0] if isinstance(states, (list, tuple)) else states
    output, hidden = _rnn(
        data,
        first,
        list(weights),
        CELLS[name],
        int(layers),
        bool(bidirectional),
        bool(batch_first),
        bool(has_biases),
        bool(train),
    )
    return (output, hidden, states[1].clone()) if name == "lstm" else (output, hidden)


@torch.library.custom_op("outpace::rnn", mutates_args=())
def _rnn(
    data: torch.Tensor,
    state: torch.Tensor,
    weights: Sequence[torch.Tensor],
    cell: str,
    layers: int,
    bidirectional: bool,
    batch_first: bool,
    has_biases: bool,
    train: bool,
) -> tuple[torch.Tensor, torch.Tensor]:
    raise NotImplementedError("for tensors without values only")


@_rnn.register_fake
def _shapes(
    data: torch.Tensor,
    state: torch.Tensor,
    weights: Sequence[torch.Tensor],
    cell: str,
    layers: int,
    bidirectional: bool,
    batch_first: bool,
    has_biases: bool,
    train: bool,
) -> tuple[torch.Tensor, torch.Tensor]:
    width = state.shape[-1] * (2 if bidirectional else 1)
    return data.new_empty(*data.shape[:-1], width), data.new_empty(state.shape)


@torch.library.custom_op("outpace::rnn_backward", mutates_args=())
def _rnn_backward(
    gradient: torch.Tensor,
    output: torch.Tensor,
    data: torch.Tensor,
    state: torch.Tensor,
    weights: Sequence[torch.Tensor],
    cell: str,
    layers: int,
    bidirectional: bool,
    batch_first: bool,
) -> list[torch.Tensor]:
    raise NotImplementedError("for tensors without values only")


@_rnn_backward.register_fake
def _backward_shapes(
    gradient: torch.Tensor,
    output: torch.Tensor,
    data: torch.Tensor,
    state: torch.Tensor,
    weights: Sequence[torch.Tensor],
    cell: str,
    layers: int,
    bidirectional: bool,
    batch_first: bool,
) -> list[torch.Tensor]:
    return [torch.empty_like(tensor) for tensor in (data, state, *weights)]


def _keep(ctx: Any, inputs: Any, output: Any) -> None:
    data, state, weights, cell, layers, bidirectional, batch_first, _, _ = inputs
    ctx.save_for_backward(output[0], data, state, *weights)
    ctx.sizes = (cell, layers, bidirectional, batch_first)


def _back(ctx: Any, gradient: torch.Tensor, _hidden: torch.Tensor) -> Any:
    output, data, state, *weights = ctx.saved_tensors
    found = _rnn_backward(gradient, output, data, state, weights, *ctx.sizes)
    return found[0], found[1], found[2:], None, None, None, None, None, None


_rnn.register_autograd(_back, setup_context=_keep)
