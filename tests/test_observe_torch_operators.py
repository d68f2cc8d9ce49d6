"""FLOPs, bytes and attributes of PyTorch's operators, against counts by hand."""

from __future__ import annotations

from typing import Any

import pytest
import torch
from bench.flops import CASES, Case, count
from torch._subclasses import FakeTensorMode
from torch.utils._pytree import tree_map_only

from outpace.observe.torch.operators import describe
from outpace.records import Operator
from outpace.records.trace import KINDS

aten = torch.ops.aten

#: PyTorch warns that oneDNN has no LSTM with projections; that is what is wanted here
pytestmark = pytest.mark.filterwarnings("ignore:LSTM with projections")


@pytest.mark.parametrize("case", CASES, ids=lambda case: case.name)
def test_counts_by_hand(case: Case) -> None:
    assert count(case) == (case.forward, case.backward)


@pytest.mark.parametrize("case", CASES, ids=lambda case: case.name)
def test_shapes_alone_count_the_same(case: Case) -> None:
    with FakeTensorMode(allow_non_fake_inputs=True):
        assert count(case) == (case.forward, case.backward)


def described(func: Any, *args: Any, result: Any = None, phase: str = "forward", **kwargs: Any) -> Operator:
    """The record of a call on tensors without values; it is made only if no *result* is given."""
    made = func(*args, **kwargs) if result is None else tree_map_only(torch.Tensor, torch.empty_like, result)
    operator = describe(func, args, kwargs, made, phase)
    assert operator is not None
    return operator


def meta(*sizes: int, dtype: torch.dtype = torch.float32) -> torch.Tensor:
    return torch.empty(sizes, device="meta", dtype=dtype)


CONVOLUTIONS = {
    "mkldnn": (aten.mkldnn_convolution.default, (None, [1, 1], [2, 2], [1, 1], 2)),
    "cudnn": (aten.cudnn_convolution.default, ([1, 1], [2, 2], [1, 1], 2, False, False, True)),
    "cudnn with relu": (aten.cudnn_convolution_relu.default, (None, [2, 2], [1, 1], [1, 1], 2)),
    "miopen": (aten.miopen_convolution.default, (None, [1, 1], [2, 2], [1, 1], 2, False, False)),
    "miopen depthwise": (
        aten.miopen_depthwise_convolution.default,
        (None, [1, 1], [2, 2], [1, 1], 2, False, False),
    ),
    "overrideable": (
        aten.convolution_overrideable.default,
        (None, [2, 2], [1, 1], [1, 1], False, [0, 0], 2),
    ),
}


@pytest.mark.parametrize("variant", CONVOLUTIONS)
def test_convolutions_of_every_library(variant: str) -> None:
    func, rest = CONVOLUTIONS[variant]
    data, weight, out = meta(2, 4, 9, 9), meta(6, 2, 3, 3), meta(2, 6, 5, 5)
    operator = described(func, data, weight, *rest, result=out)
    assert (operator.kind, operator.flops) == ("convolution", 2 * (2 * 6 * 5 * 5) * (2 * 9))
    expected = {"stride": (2, 2), "padding": (1, 1), "dilation": (1, 1), "groups": 2, "transposed": False}
    assert operator.attributes.items() >= expected.items()


def test_transposed_convolutions_of_every_library() -> None:
    data, weight, out = meta(2, 4, 5, 5), meta(4, 6, 3, 3), meta(2, 6, 9, 9)
    sizes = ([1, 1], [0, 0], [2, 2], [1, 1], 1, False, False)
    for func, args in (
        (aten.cudnn_convolution_transpose.default, (*sizes, True)),
        (aten.miopen_convolution_transpose.default, (None, *sizes)),
    ):
        operator = described(func, data, weight, *args, result=out)
        assert operator.flops == 2 * (2 * 4 * 5 * 5) * (6 * 9)
        assert operator.attributes["transposed"] is True


@pytest.mark.parametrize("mask", [[True, True, True], [False, True, False], [True, False, False]])
def test_only_the_wanted_gradients_of_a_convolution_count(mask: list[bool]) -> None:
    data, weight, gradient = meta(2, 4, 9, 9), meta(6, 4, 3, 3), meta(2, 6, 7, 7)
    operator = described(
        aten.convolution_backward.default,
        gradient, data, weight, [6], [1, 1], [0, 0], [1, 1], False, [0, 0], 1, mask,
    )  # fmt: skip
    assert operator.flops == sum(mask[:2]) * 2 * (2 * 6 * 7 * 7) * (4 * 9)
    read = gradient.nbytes + mask[0] * weight.nbytes + mask[1] * data.nbytes
    assert operator.bytes_read == read
    assert operator.bytes_written == mask[0] * data.nbytes + mask[1] * weight.nbytes + mask[2] * 6 * 4


def test_layout_is_kept() -> None:
    weight = meta(6, 4, 3, 3)
    for layout, name in ((torch.channels_last, "channels_last"), (torch.contiguous_format, "contiguous")):
        data = meta(2, 4, 9, 9).to(memory_format=layout)
        operator = described(
            aten.convolution.default, data, weight, None, [1, 1], [0, 0], [1, 1], False, [0, 0], 1
        )
        assert operator.attributes["layout"] == name


BYTES = {
    "in place is read and written": (lambda: described(aten.add_.Tensor, meta(10), meta(10)), (80, 40)),
    "overwritten is not read": (lambda: described(aten.copy_.default, meta(10), meta(10)), (40, 40)),
    "filled is not read": (lambda: described(aten.zero_.default, meta(10)), (0, 40)),
    "expanded counts once": (
        lambda: described(aten.mul.Tensor, meta(10, 1).expand(10, 8), meta(10, 8)), (360, 320),
    ),
    "twice the same counts once": (lambda: described(aten.mul.Tensor, *[meta(10)] * 2), (40, 40)),
    "a slice is as small as it is": (lambda: described(aten.neg.default, meta(100)[:10]), (40, 40)),
    "windows overlap": (lambda: described(aten.neg.default, meta(10).unfold(0, 4, 1)), (40, 112)),
    "rows are picked": (
        lambda: described(aten.embedding.default, meta(1000, 4), meta(5, dtype=torch.int64)),
        (5 * 8 + 80, 80),
    ),
    "rows are put": (
        lambda: described(
            aten.index_put_.default, meta(1000, 4), [meta(5, dtype=torch.int64)], meta(5, 4)
        ), (5 * 8 + 80, 80),
    ),
    "output given": (lambda: described(aten.add.out, meta(10), meta(10), out=meta(10)), (80, 40)),
    "cast": (lambda: described(aten._to_copy.default, meta(10), dtype=torch.bfloat16), (40, 20)),
    "lists": (
        lambda: described(aten._foreach_add_.List, [meta(10), meta(5)], [meta(10), meta(5)]), (120, 60),
    ),
}  # fmt: skip


@pytest.mark.parametrize("case", BYTES)
def test_bytes(case: str) -> None:
    make, expected = BYTES[case]
    operator = make()
    assert (operator.bytes_read, operator.bytes_written) == expected


def test_a_fused_optimizer_reads_gradients_and_writes_the_rest() -> None:
    one, steps = [meta(100)], [meta()]
    operator = described(
        aten._fused_adamw_.default, one, [meta(100)], [meta(100)], [meta(100)], [], steps, phase="optimizer",
        lr=0.1, beta1=0.9, beta2=0.99, weight_decay=0.0, eps=1e-8, amsgrad=False, maximize=False, result=(),
    )  # fmt: skip
    assert (operator.kind, operator.flops) == ("optimizer", 14 * 100)
    assert (operator.bytes_read, operator.bytes_written) == (4 * 400 + 4, 3 * 400)


@pytest.mark.parametrize("make", [
    lambda x: (aten.view.default, (x, [8]), {}),
    lambda x: (aten._unsafe_view.default, (x, [8]), {}),
    lambda x: (aten.unsafe_split.Tensor, (x, 1), {}),
    lambda x: (aten.t.default, (x,), {}),
    lambda x: (aten.detach.default, (x,), {}),
    lambda x: (aten.t_.default, (x,), {}),
    lambda x: (aten.empty_like.default, (x,), {}),
])  # fmt: skip
def test_what_runs_nothing_is_left_out(make: Any) -> None:
    func, args, kwargs = make(torch.randn(4, 2))
    assert describe(func, args, kwargs, func(*args, **kwargs), "forward") is None


def test_what_is_unknown_is_said_to_be() -> None:
    eigen = described(aten._linalg_eigh.default, torch.eye(3))
    assert (eigen.kind, eigen.guessed, eigen.bytes_read) == ("other", True, 36)


def test_a_formula_that_fails_is_a_guess(monkeypatch: pytest.MonkeyPatch) -> None:
    from outpace.observe.torch import operators

    monkeypatch.setitem(operators.FORMULAS, "aten.mm", lambda call: call["no such argument"])
    operator = described(aten.mm.default, meta(3, 4), meta(4, 5))
    assert (operator.kind, operator.name, operator.guessed) == ("other", "aten.mm", True)
    assert (operator.bytes_read, operator.bytes_written) == (4 * (12 + 20), 60)


def test_kinds_are_those_of_the_record() -> None:
    assert {case.kind for case in CASES} <= set(KINDS)


@pytest.mark.parametrize(
    ("dtype", "name"),
    [(torch.float32, "fp32"), (torch.bfloat16, "bf16"), (torch.float64, "fp64"), (torch.int64, "int64")],
)
def test_types(dtype: torch.dtype, name: str) -> None:
    assert described(aten.add.Tensor, meta(3, dtype=dtype), meta(3, dtype=dtype)).dtype == name


def test_lookups_compute_in_the_type_of_the_table() -> None:
    assert described(aten.embedding.default, meta(9, 4), meta(5, dtype=torch.int64)).dtype == "fp32"
