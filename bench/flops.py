"""The FLOPs that outpace counts in PyTorch, beside counts by hand and published ones.

python -m bench.flops [--no-models]

A multiplication and an addition are two FLOPs; adding a bias is not counted. The counts by hand multiply out
the loops of each operator's definition. Models are traced on shapes alone, from the built-in scripts.
"""

from __future__ import annotations

import argparse
import dataclasses
from collections.abc import Callable
from typing import Any

import torch
from torch.nn import functional as F

from bench.flops_models import PUBLISHED, counted
from outpace.observe.torch.tracing import Tracer


@dataclasses.dataclass(frozen=True)
class Case:
    """An operator with its FLOPs counted by hand.

    Args:
        run: makes the tensors and computes; gradients are taken of the sum of what it returns.
        forward, backward: FLOPs of the operators of *kind*.
    """

    name: str
    kind: str
    run: Callable[[], torch.Tensor]
    forward: int
    backward: int


def given(*sizes: int) -> torch.Tensor:
    """A random tensor that gradients are wanted of."""
    return torch.randn(sizes, requires_grad=True)


def count(case: Case) -> tuple[int, int]:
    """What outpace counts, forward and backward, on whatever tensors the present modes make."""
    phase = "forward"
    tracer = Tracer(lambda: phase)
    tracer.start()
    try:
        out = case.run()
        phase = "backward"
        if out.requires_grad:
            out.sum().backward()
    finally:
        operators = tracer.stop().operators
    totals = {"forward": 0, "backward": 0}
    for operator in operators:
        if operator.kind == case.kind:
            totals[operator.phase] += operator.flops * operator.count
    return totals["forward"], totals["backward"]


def _sdpa(heads: int, queries: int, keys: int, **options: Any) -> torch.Tensor:
    query, key, value = (given(2, heads, length, 16) for length in (queries, keys, keys))
    return F.scaled_dot_product_attention(query, key, value, **options)


def _rnn(kind: str, *sizes: int, **options: Any) -> torch.Tensor:
    """Gradients by the input and the first state are wanted, so that no product is left out."""
    network = getattr(torch.nn, kind)(*sizes, **options)
    states = sizes[2] * (1 + bool(options.get("bidirectional")))
    first = given(states, 4, options.get("proj_size") or sizes[1])
    state = (first, given(states, 4, sizes[1])) if kind == "LSTM" else first
    output: torch.Tensor = network(given(7, 4, sizes[0]), state)[0]
    return output


def _fused_step() -> torch.Tensor:
    weight = given(10, 10)
    weight.grad = torch.ones(10, 10)
    torch.optim.AdamW([weight], fused=True).step()
    return torch.zeros(())


def _many_step() -> torch.Tensor:
    torch._foreach_addcdiv_(
        [torch.ones(10), torch.ones(5)], [torch.ones(10), torch.ones(5)], [torch.ones(10), torch.ones(5)], 0.1
    )
    return torch.zeros(())


CASES = [
    Case("mm 3x4 by 4x5", "matmul", lambda: given(3, 4) @ given(4, 5), 2 * 3 * 4 * 5, 2 * (2 * 3 * 4 * 5)),
    Case("linear 4 to 5, 3 rows", "matmul", lambda: torch.nn.Linear(4, 5)(given(3, 4)), 120, 240),
    Case("bmm of 6", "matmul", lambda: torch.bmm(given(6, 3, 4), given(6, 4, 5)), 6 * 120, 6 * 240),
    Case(
        "baddbmm of 6", "matmul",
        lambda: torch.baddbmm(given(6, 3, 5), given(6, 3, 4), given(6, 4, 5)), 6 * 120, 6 * 240,
    ),
    Case("mv 3x4", "matmul", lambda: torch.mv(torch.randn(3, 4), given(4)), 2 * 3 * 4, 2 * 3 * 4),
    Case("addmv 3x4", "matmul", lambda: torch.addmv(given(3), torch.randn(3, 4), given(4)), 24, 24),
    Case("dot of 9", "matmul", lambda: torch.dot(given(9), given(9)), 2 * 9, 0),
    Case(
        "conv1d, 2 groups", "convolution", lambda: F.conv1d(given(2, 4, 9), given(8, 2, 3), groups=2),
        2 * (2 * 8 * 7) * (2 * 3), 2 * 2 * (2 * 8 * 7) * (2 * 3),
    ),
    Case(
        "conv2d, stride and dilation 2, padding 2", "convolution",
        lambda: F.conv2d(given(2, 3, 9, 9), given(8, 3, 3, 3), stride=2, dilation=2, padding=2),
        2 * (2 * 8 * 5 * 5) * (3 * 9), 2 * 2 * (2 * 8 * 5 * 5) * (3 * 9),
    ),
    Case(
        "conv2d, gradient by weights only", "convolution",
        lambda: F.conv2d(torch.randn(2, 3, 9, 9), given(8, 3, 3, 3)),
        2 * (2 * 8 * 7 * 7) * (3 * 9), 2 * (2 * 8 * 7 * 7) * (3 * 9),
    ),
    Case(
        "conv2d, depthwise", "convolution",
        lambda: F.conv2d(given(2, 6, 9, 9), given(6, 1, 3, 3), groups=6, padding=1),
        2 * (2 * 6 * 9 * 9) * 9, 2 * 2 * (2 * 6 * 9 * 9) * 9,
    ),
    Case(
        "conv3d", "convolution", lambda: F.conv3d(given(2, 4, 5, 5, 5), given(8, 4, 3, 3, 3), stride=2),
        2 * (2 * 8 * 2 * 2 * 2) * (4 * 27), 2 * 2 * (2 * 8 * 2 * 2 * 2) * (4 * 27),
    ),
    Case(
        "conv_transpose2d, stride 2", "convolution",
        lambda: F.conv_transpose2d(given(2, 4, 9, 9), given(4, 8, 3, 3), stride=2, output_padding=1),
        2 * (2 * 4 * 9 * 9) * (8 * 9), 2 * 2 * (2 * 4 * 9 * 9) * (8 * 9),
    ),
    Case(
        "conv_transpose1d, 2 groups", "convolution",
        lambda: F.conv_transpose1d(given(2, 4, 9), given(4, 3, 3), groups=2),
        2 * (2 * 4 * 9) * (3 * 3), 2 * 2 * (2 * 4 * 9) * (3 * 3),
    ),
    Case(
        "attention, causal", "attention", lambda: _sdpa(4, 8, 8, is_causal=True),
        2 * (2 * 4) * (8 * 8 * 16) * 2, 2 * (2 * 4) * (8 * 8 * 16) * 5,
    ),
    Case(
        "attention, 8 queries of 12 keys, masked", "attention",
        lambda: _sdpa(4, 8, 12, attn_mask=torch.zeros(8, 12)),
        2 * (2 * 4) * (8 * 12 * 16) * 2, 2 * (2 * 4) * (8 * 12 * 16) * 5,
    ),
    Case(  # dropout goes to the mathematical back-end, which keeps the weights: four products backward
        "attention with dropout, as products", "matmul", lambda: _sdpa(4, 8, 8, dropout_p=0.5),
        2 * (2 * 4) * (8 * 8 * 16) * 2, 2 * (2 * 4) * (8 * 8 * 16) * 4,
    ),
    Case(
        "GRU 3 to 5, as products", "matmul", lambda: _rnn("GRU", 3, 5, 1),
        2 * (7 * 4) * (3 * 5) * (3 + 5), 2 * 2 * (7 * 4) * (3 * 5) * (3 + 5),
    ),
    Case(
        "RNN 3 to 5, 2 layers both ways", "matmul", lambda: _rnn("RNN", 3, 5, 2, bidirectional=True),
        2 * (7 * 4) * 2 * (5 * (3 + 5) + 5 * (10 + 5)), 2 * 2 * (7 * 4) * 2 * (5 * (3 + 5) + 5 * (10 + 5)),
    ),
    Case(
        "LSTM with projection 2, as products", "matmul", lambda: _rnn("LSTM", 3, 5, 1, proj_size=2),
        2 * (7 * 4) * (4 * 5 * (3 + 2) + 2 * 5), 2 * 2 * (7 * 4) * (4 * 5 * (3 + 2) + 2 * 5),
    ),
    Case("batch_norm", "normalization", lambda: torch.nn.BatchNorm2d(3)(given(2, 3, 4, 4)), 8 * 96, 13 * 96),
    Case("layer_norm", "normalization", lambda: torch.nn.LayerNorm(6)(given(4, 6)), 8 * 24, 13 * 24),
    Case("group_norm", "normalization", lambda: torch.nn.GroupNorm(2, 4)(given(2, 4, 3)), 8 * 24, 13 * 24),
    Case("max_pool2d 2x2", "pooling", lambda: F.max_pool2d(given(2, 3, 4, 4), 2), 24 * 4, 24),
    Case("avg_pool2d 3x3", "pooling", lambda: F.avg_pool2d(given(1, 2, 6, 6), 3), 8 * 9, 8 * 9),
    Case("softmax", "softmax", lambda: given(4, 6).softmax(1), 5 * 24, 4 * 24),
    Case(
        "cross_entropy", "softmax", lambda: F.cross_entropy(given(4, 6), torch.tensor([0, 1, 2, 3])),
        5 * 24 + 2 * 4, 4 * 24 + 2 * 4,
    ),
    Case("embedding", "embedding", lambda: F.embedding(torch.tensor([0] * 5), given(9, 4)), 0, 20),
    Case("relu", "elementwise", lambda: given(4, 6).relu(), 24, 24),
    Case("gelu", "elementwise", lambda: F.gelu(given(4, 6)), 5 * 24, 10 * 24),
    Case("mean of 24", "reduction", lambda: torch.randn(24).mean(), 24, 0),
    Case("cat", "copy", lambda: torch.cat([torch.randn(3), torch.randn(4)]), 0, 0),
    Case("sort", "sort", lambda: torch.randn(9).sort()[0], 0, 0),
    Case("fused AdamW of 100", "optimizer", _fused_step, 14 * 100, 0),
    Case("foreach addcdiv of 10 and 5", "elementwise", _many_step, 3 * 15, 0),
]  # fmt: skip


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--no-models", action="store_true", help="only the operators")
    args = parser.parse_args()
    print(f"PyTorch {torch.__version__}; ours / by hand")
    print(f"{'operator':<42}{'kind':<15}{'forward':>20}{'backward':>20}")
    for case in CASES:
        forward, backward = count(case)
        first, second = f"{forward} / {case.forward}", f"{backward} / {case.backward}"
        print(f"{case.name:<42}{case.kind:<15}{first:>20}{second:>20}")
    if args.no_models:
        return
    print()
    for published in PUBLISHED:
        ours = counted(published)
        off = 100 * (ours / published.flops - 1)
        print(f"{published.name:<36}{ours:.4g} / {published.flops:.4g}  {off:+.2f} %  {published.source}")


if __name__ == "__main__":
    main()
