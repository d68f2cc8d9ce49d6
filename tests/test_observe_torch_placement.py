"""Scripts that never leave the CPU are moved; scripts that know only an accelerator get the CPU.

The ``meta`` device stands in for an accelerator: it refuses to mix with CPU tensors in the same way.
"""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from typing import Any

import pytest
import torch
from torch import nn
from torch.utils.data import DataLoader, TensorDataset

from outpace.observe.torch.placement import Placement, Substitution

META = torch.device("meta")


@contextlib.contextmanager
def placed() -> Iterator[Placement]:
    """A placement on the stand-in, with the hook that the observer would call."""
    placement = Placement("meta")
    depth = 0

    def call(module: nn.Module, inputs: tuple[Any, ...]) -> Any:
        nonlocal depth
        return placement.call(module, inputs) if depth == 0 else None

    handle = torch.nn.modules.module.register_module_forward_pre_hook(call)
    try:
        with placement:
            yield placement
    finally:
        handle.remove()


def test_model_inputs_and_targets_meet_on_the_device() -> None:
    with placed() as placement:
        model = nn.Sequential(nn.Linear(4, 3), nn.BatchNorm1d(3))
        for x, y in DataLoader(TensorDataset(torch.randn(8, 4), torch.randint(0, 3, (8,))), 4):
            loss = nn.functional.cross_entropy(model(x), y)
            assert loss.device == META
            loss.backward()
            assert placement.active
        assert {parameter.device for parameter in model.parameters()} == {META}
        assert {parameter.grad.device for parameter in model.parameters() if parameter.grad is not None} == {
            META
        }


def test_what_meets_the_result_is_moved() -> None:
    with placed():
        output = nn.Linear(4, 3)(torch.randn(2, 4))
        assert (output + torch.ones(2, 3)).device == META
        assert torch.cat([output, torch.ones(1, 3)]).device == META
        assert torch.where(output > 0, output, torch.zeros(2, 3)).device == META
        assert nn.functional.mse_loss(output, target=torch.ones(2, 3)).device == META
        assert (output * torch.tensor(2.0)).device == META
        assert torch.ones(2).device.type == "cpu", "what never meets the model stays"


def test_writing_into_a_tensor_leaves_it_where_it_is() -> None:
    with placed():
        output = nn.Linear(4, 3)(torch.randn(2, 4)).detach()
        gathered, total = torch.zeros(4, 3, device="meta"), torch.zeros(2, 3, device="meta")
        gathered[:2] = torch.ones(2, 3)
        total += torch.ones(2, 3)
        total.copy_(torch.ones(2, 3))
        assert gathered.device == total.device == META
        on_cpu = torch.zeros(2, 3)
        with pytest.raises(NotImplementedError, match="Cannot copy out of meta"):  # a real card would copy
            on_cpu += output
        assert on_cpu.device.type == "cpu"


def test_training_goes_on_with_the_moved_parameters() -> None:
    with placed():
        model = nn.Sequential(nn.Linear(4, 3), nn.BatchNorm1d(3))
        for _ in range(2):
            model(torch.randn(2, 4)).sum().backward()
            torch.optim.SGD(model.parameters(), lr=0.1, momentum=0.9).step()
        assert {parameter.device for parameter in model.parameters()} == {META}


def test_nested_batches_are_moved_whole() -> None:
    with placed() as placement:
        nn.Linear(4, 3)(torch.randn(2, 4))
        batch = placement.batch({"ids": torch.ones(2, 3), "more": [torch.ones(1, 1), "text"], "label": 3})
        assert batch["ids"].device == batch["more"][0].device == META
        assert batch["more"][1] == "text"
        assert batch["label"] == 3


def test_a_script_that_places_its_model_itself_is_left_alone() -> None:
    with placed() as placement:
        nn.Linear(4, 3, device="meta")(torch.randn(2, 4, device="meta"))
        assert placement.active is False
        assert nn.Linear(4, 3)(torch.randn(2, 4)).device.type == "cpu"


def test_a_criterion_before_the_model_decides_nothing() -> None:
    with placed() as placement:
        nn.MSELoss()(torch.ones(2), torch.ones(2))
        assert placement.active is None


@pytest.mark.parametrize("kind", ["cuda", "cuda:1", "xpu", "mps"])
def test_substitution(kind: str, monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("synchronize", "set_device", "reset_peak_memory_stats", "current_device", "get_device_name"):
        monkeypatch.setattr(torch.cuda, name, getattr(torch.cuda, name))
    told: list[str] = []
    substitution = Substitution(told.append)
    substitution.install()
    try:
        device = torch.device(kind)
        tensors = [
            torch.ones(2).to(kind),
            torch.ones(2).to(device=device, dtype=torch.float64),
            torch.zeros(2, device=device),
            nn.Linear(2, 1, device=kind).weight,
            nn.Linear(2, 1).to(device).weight,
            torch.randn(2).cuda() if kind.startswith("cuda") else torch.ones(2, device=kind),
            torch.as_tensor([1.0], device=kind),
        ]
        torch.cuda.synchronize()
        assert torch.cuda.current_device() == 0
    finally:
        substitution.__exit__(None, None, None)
    assert {tensor.device.type for tensor in tensors} == {"cpu"}
    assert tensors[1].dtype == torch.float64
    assert kind.partition(":")[0] in told
    assert len(told) == len(set(told)), "said once"
