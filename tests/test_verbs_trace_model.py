"""Steps of models over shapes alone: as an accelerator would run them, nothing computed, nothing
allocated."""

from __future__ import annotations

import resource
import sys
import time
from typing import Any

import pytest
import torch
from torch import nn
from torch.nn import functional as F

from outpace.errors import OutpaceError, UsageError
from outpace.prediction import precision
from outpace.records import Trace
from outpace.verbs.predict import predict
from outpace.verbs.trace_model import trace_model


class Network(nn.Module):
    """A convolution, attention with dropout, an LSTM."""

    def __init__(self) -> None:
        super().__init__()
        self.convolution = nn.Conv2d(3, 32, 3)
        self.norm = nn.BatchNorm2d(32)
        self.recurrent = nn.LSTM(32, 16, 2, batch_first=True, bidirectional=True)
        self.dropout = nn.Dropout(0.1)
        self.last = nn.Linear(32, 10)

    def forward(self, images: torch.Tensor) -> torch.Tensor:
        rows = F.relu(self.norm(self.convolution(images))).mean(-1).transpose(1, 2)
        heads = rows.unflatten(-1, (2, 16)).transpose(1, 2)
        rows = rows + F.scaled_dot_product_attention(heads, heads, heads, dropout_p=0.1).transpose(
            1, 2
        ).flatten(2)
        return self.last(self.dropout(self.recurrent(rows)[0]).mean(1))  # type: ignore[no-any-return]


IMAGES = torch.zeros(8, 3, 16, 16)


def names(found: Trace, phase: str) -> set[str]:
    return {operator.name.partition(".")[2] for operator in found.operators if operator.phase == phase}


def flops(found: Trace) -> dict[str, int]:
    totals: dict[str, int] = {}
    for one in found.operators:
        totals[one.kind] = totals.get(one.kind, 0) + one.flops * one.count
    return totals


def test_operators_are_those_of_an_accelerator() -> None:
    found = trace_model(Network(), IMAGES, optimizer="adamw")
    assert {"rnn", "native_dropout"} <= names(found, "forward")
    assert "_scaled_dot_product_flash_attention_for_cpu" in names(found, "forward")
    assert "rnn_backward" in names(found, "backward")
    assert any(name.startswith("_foreach") for name in names(found, "optimizer"))
    assert found.samples == 8
    assert found.device == "meta"
    assert found.memory is not None
    assert found.memory.parameters_bytes == 4 * sum(one.numel() for one in Network().parameters())


def test_the_model_is_left_as_it_was() -> None:
    model = Network()
    before = {name: tensor.clone() for name, tensor in model.state_dict().items()}
    trace_model(model, IMAGES, precision="fp16", layout="channels-last", train=False)
    assert model.training
    for name, tensor in model.state_dict().items():
        assert torch.equal(tensor, before[name])
        assert tensor.dtype == before[name].dtype
    assert all(parameter.grad is None for parameter in model.parameters())


def test_ties_between_parameters_stay() -> None:
    model = nn.Sequential(nn.Linear(16, 16, bias=False), nn.ReLU(), nn.Linear(16, 16, bias=False))
    model[2].weight = model[0].weight
    found = trace_model(model, torch.zeros(4, 16))
    assert found.memory is not None
    assert found.memory.parameters_bytes == 4 * 16 * 16


@pytest.mark.parametrize(("asked", "dtype"), [("fp16-amp", "fp16"), ("bf16-amp", "bf16"), ("fp16", "fp16")])
def test_precision_and_layout(asked: str, dtype: str) -> None:
    found = trace_model(Network(), IMAGES, precision=asked, layout="channels-last")
    products = [one for one in found.operators if one.kind in ("convolution", "rnn", "attention")]
    assert {one.dtype for one in products} == {dtype}
    assert all(one.attributes["layout"] == "channels_last" for one in products if one.kind == "convolution")
    losses = {one.dtype for one in found.operators if one.name == "aten._log_softmax"}
    assert losses == ({"fp32"} if asked.endswith("-amp") else {dtype})


def test_forward_only() -> None:
    found = trace_model(Network(), [IMAGES], train=False)
    assert {one.phase for one in found.operators} == {"forward"}


def test_a_rewritten_trace_is_near_one_in_the_precision_itself() -> None:
    from outpace.cards import find

    plain, half = trace_model(Network(), IMAGES), trace_model(Network(), IMAGES, precision="fp16-amp")
    assert plain.memory is not None
    rewritten = precision.of_step(
        plain.operators,
        "fp16-amp",
        find("t4"),
        parameter_bytes=plain.memory.parameters_bytes or 0,
        tf32_by_default=False,
    )
    for kind in ("convolution", "rnn", "attention", "matmul"):
        own = {one.dtype for one in half.operators if one.kind == kind}
        assert {one.dtype for one in rewritten if one.kind == kind} == own

    def traffic(chosen: Any) -> int:
        return sum(
            (one.bytes_read + one.bytes_written) * one.count
            for one in chosen
            if one.phase != "optimizer" and one.kind != "copy"
        )

    assert traffic(rewritten) == pytest.approx(traffic(half.operators), rel=0.35)


def test_a_model_far_too_large_for_here() -> None:
    with torch.device("meta"):
        layer = nn.TransformerEncoderLayer(8192, 64, 32768, batch_first=True)
        model = nn.TransformerEncoder(layer, 9, enable_nested_tensor=False)
        tokens = torch.zeros(1, 2048, 8192)
    began, held = time.perf_counter(), _peak()
    found = trace_model(model, tokens, optimizer="adamw", precision="bf16-amp")
    assert time.perf_counter() - began < 60
    assert _peak() - held < 2**30
    assert found.memory is not None
    assert (found.memory.parameters_bytes or 0) > 7e9 * 4
    prediction = predict(found, on="h100-sxm-80gb")
    assert not isinstance(prediction, list)
    assert prediction.fits == "no"


def _peak() -> int:
    used = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    return used if sys.platform == "darwin" else used * 1024


def test_own_losses_and_optimizers() -> None:
    found = trace_model(
        nn.Linear(4, 4),
        {"input": torch.zeros(3, 4)},
        loss=lambda output: output.square().sum(),
        optimizer=lambda parameters: torch.optim.SGD(parameters, lr=0.1, momentum=0.9),
    )
    assert "pow" in names(found, "forward") or "square" in names(found, "forward")
    assert {
        one.phase for one in trace_model(nn.Linear(4, 4), torch.zeros(3, 4), optimizer=None).operators
    } == {
        "forward",
        "backward",
    }
    assert flops(found)["matmul"] > 0


class ByValue(nn.Module):
    def forward(self, rows: torch.Tensor) -> torch.Tensor:
        return rows[rows[:, 0] > 0].sum()


def test_what_cannot_be_traced_is_an_error() -> None:
    for wrong in ({"precision": "fp3"}, {"layout": "diagonal"}, {"optimizer": "magic"}, {"samples": -1}):
        with pytest.raises(UsageError):
            trace_model(nn.Linear(4, 4), torch.zeros(3, 4), **wrong)
    with pytest.raises(UsageError, match="no tensor"):
        trace_model(nn.Linear(4, 4), [])
    with pytest.raises(UsageError, match="Module"):
        trace_model(lambda rows: rows, torch.zeros(3, 4))
    with pytest.raises(OutpaceError, match="shapes alone"):
        trace_model(ByValue(), torch.zeros(3, 4))
