"""What a step keeps in memory, by use."""

from __future__ import annotations

import pytest
import torch
from torch._subclasses import FakeTensorMode
from torch.utils.checkpoint import checkpoint

from outpace.observe.torch.tracing import Tracer
from outpace.records import StepMemory


def measured(model: torch.nn.Module, data: torch.Tensor, optimizer: str, parts: int = 1) -> StepMemory:
    phase = "forward"
    updates = getattr(torch.optim, optimizer)(model.parameters())

    def step() -> None:
        nonlocal phase
        for _ in range(parts):
            phase = "forward"
            loss = model(data).sum()
            phase = "backward"
            loss.backward()
        phase = "optimizer"
        updates.step()
        phase = "forward"

    step()
    updates.zero_grad()
    tracer = Tracer(lambda: phase)
    tracer.start()
    step()
    memory = tracer.stop().memory
    assert memory is not None
    return memory


def check(parts: int = 1) -> None:
    model = torch.nn.Sequential(torch.nn.Linear(100, 200), torch.nn.ReLU(), torch.nn.Linear(200, 50))
    weights = 4 * (100 * 200 + 200 + 200 * 50 + 50)
    memory = measured(model, torch.randn(8, 100), "Adam", parts)
    assert memory.parameters_bytes == memory.gradients_bytes == weights
    assert memory.optimizer_state_bytes == 2 * weights + 4 * 4  # two moments, and a count per tensor
    # the batch, what ReLU gave, which the last product and ReLU itself keep; and the loss
    assert memory.activations_bytes == 4 * (8 * 100 + 8 * 200 + 1)


@pytest.mark.parametrize("parts", [1, 3])
def test_each_use(parts: int) -> None:
    check(parts)


def test_shapes_alone_need_as_much() -> None:
    with FakeTensorMode(allow_non_fake_inputs=True):
        check()


def test_without_momentum_there_is_no_state() -> None:
    assert measured(torch.nn.Linear(4, 4), torch.randn(2, 4), "SGD").optimizer_state_bytes == 0


def test_frozen_parameters_have_no_gradients() -> None:
    model = torch.nn.Sequential(torch.nn.Linear(10, 10, bias=False), torch.nn.Linear(10, 5, bias=False))
    model[0].requires_grad_(False)
    memory = measured(model, torch.randn(2, 10), "SGD")
    assert (memory.parameters_bytes, memory.gradients_bytes) == (4 * 150, 4 * 50)


def test_tied_weights_count_once() -> None:
    model = torch.nn.Sequential(torch.nn.Linear(10, 10, bias=False), torch.nn.Linear(10, 10, bias=False))
    model[1].weight = model[0].weight
    assert measured(model, torch.randn(2, 10), "SGD").parameters_bytes == 400


def test_checkpoints_keep_only_their_input() -> None:
    class Deep(torch.nn.Module):
        def __init__(self, checkpointed: bool) -> None:
            super().__init__()
            layers = [part for _ in range(4) for part in (torch.nn.Linear(64, 64), torch.nn.Tanh())]
            self.inside, self.checkpointed = torch.nn.Sequential(*layers), checkpointed

        def forward(self, data: torch.Tensor) -> torch.Tensor:
            out: torch.Tensor
            inside = self.inside
            out = checkpoint(inside, data, use_reentrant=False) if self.checkpointed else inside(data)
            return out * 2

    data = torch.randn(32, 64)
    plain, saved = (measured(Deep(checkpointed), data, "SGD") for checkpointed in (False, True))
    assert plain.activations_bytes == 4 * (32 * 64 * 5 + 1)
    assert saved.activations_bytes == 4 * (32 * 64 + 1)
