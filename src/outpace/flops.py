"""How much arithmetic an operator is. A multiplication and an addition are two FLOPs.

The forms here know no framework: observers reduce what they see to these sizes, so that the same step counts
the same in PyTorch, TensorFlow and JAX.
"""

from __future__ import annotations

import math
from collections.abc import Sequence


def matmul(m: int, n: int, k: int, batch: int = 1) -> int:
    """A product of (m x k) and (k x n), *batch* times."""
    return 2 * batch * m * n * k


def convolution(
    batch: int, channels_in: int, channels_out: int, kernel: Sequence[int], positions: int, groups: int = 1
) -> int:
    """A direct convolution, and also its gradient by the input or by the weights, which are as large.

    Args:
        kernel: size of the window in each dimension.
        positions: where the window is placed: spatial positions of the output; of a transposed convolution
            those of its input.
    """
    return 2 * batch * positions * channels_out * (channels_in // groups) * math.prod(kernel)


def attention(
    batch: int, heads: int, queries: int, keys: int, head_dim: int, value_dim: int | None = None
) -> int:
    """Scaled dot-product attention: queries by keys, weights by values. A causal mask is not deducted."""
    return 2 * batch * heads * queries * keys * (head_dim + (head_dim if value_dim is None else value_dim))


def attention_backward(
    batch: int, heads: int, queries: int, keys: int, head_dim: int, value_dim: int | None = None
) -> int:
    """The gradients of `attention`, with the weights computed anew as the fused kernels do: five products.

    Weights again and their gradient by the query and by the key run over ``head_dim``; the gradients of the
    values and of the weights over ``value_dim``.
    """
    value_dim = head_dim if value_dim is None else value_dim
    return 2 * batch * heads * queries * keys * (3 * head_dim + 2 * value_dim)


#: Matrix products per cell: the gates.
GATES = {"lstm": 4, "gru": 3, "rnn": 1}


def recurrent(
    cell: str,
    batch: int,
    length: int,
    features: int,
    hidden: int,
    layers: int = 1,
    directions: int = 1,
    projection: int = 0,
) -> int:
    """The matrix products of an RNN over a whole sequence; the gates' elementwise work is not in it.

    Args:
        cell: ``lstm``, ``gru`` or ``rnn``.
        features: size of the input of the first layer.
        projection: size that each hidden state is multiplied down to (an LSTM with projections, Sak et al.
            2014, https://arxiv.org/abs/1402.1128), or 0.
    """
    gates = GATES[cell]
    state = projection or hidden
    total = 0
    for layer in range(layers):
        width = features if layer == 0 else state * directions
        total += directions * matmul(batch * length, gates * hidden, width + state)
        if projection:
            total += directions * matmul(batch * length, projection, hidden)
    return total
