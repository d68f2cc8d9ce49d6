"""What a traced step shows, and that it stays the step it is."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from typing import Any

import pytest
import torch
from torch.nn import functional as F
from torch.optim.optimizer import register_optimizer_step_post_hook
from torch.utils._python_dispatch import TorchDispatchMode
from torch.utils.checkpoint import checkpoint

from outpace.observe.torch import tracing
from outpace.observe.torch.tracing import Tracer
from outpace.protocol import Traced

Step = Callable[[], torch.Tensor]


@pytest.fixture(autouse=True)
def _nothing_stays() -> Iterator[None]:
    yield
    assert torch._C._len_torch_dispatch_stack() == 0


def network() -> torch.nn.Module:
    middle = (torch.nn.GELU(), torch.nn.LayerNorm(32), torch.nn.Dropout(0.1))
    return torch.nn.Sequential(torch.nn.Linear(16, 32), *middle, torch.nn.Linear(32, 4))


class Checkpointed(torch.nn.Module):
    def __init__(self, reentrant: bool) -> None:
        super().__init__()
        self.inside, self.last, self.reentrant = network(), torch.nn.Linear(4, 4), reentrant

    def forward(self, data: torch.Tensor) -> torch.Tensor:
        out: torch.Tensor = self.last(checkpoint(self.inside, data, use_reentrant=self.reentrant))
        return out


class Reads(torch.nn.Module):
    """A hook of the script that waits for values."""

    def __init__(self) -> None:
        super().__init__()
        self.inside, self.seen = network(), [0.0]
        self.inside.register_forward_hook(lambda _m, _i, out: self.seen.append(out.sum().item()))

    def forward(self, data: torch.Tensor) -> torch.Tensor:
        out: torch.Tensor = self.inside(data)
        return out * (1.0 if self.seen[-1] > 0 else 2.0)


def training(
    make: Callable[[], torch.nn.Module], optimizer: str = "AdamW", autocast: bool = False, **options: Any
) -> Step:
    torch.manual_seed(0)
    model, data = make(), torch.randn(8, 16, requires_grad=True)
    updates = getattr(torch.optim, optimizer)(model.parameters(), lr=0.01, **options)

    def step() -> torch.Tensor:
        updates.zero_grad()
        with torch.autocast("cpu", torch.bfloat16, enabled=autocast):
            out = model(data)
            loss = F.cross_entropy(out[0] if isinstance(out, tuple) else out, torch.arange(8) % 4)
        loss.backward()
        updates.step()
        return loss.detach()

    return step


def compiled() -> torch.nn.Module:
    model: torch.nn.Module = torch.compile(network(), backend="eager")  # type: ignore[assignment]
    return model


TRAININGS: dict[str, Callable[[], Step]] = {
    "foreach": lambda: training(network, foreach=True),
    "fused": lambda: training(network, fused=True),
    "for-loop": lambda: training(network, foreach=False),
    "SGD": lambda: training(network, "SGD", momentum=0.9),
    "autocast": lambda: training(network, autocast=True),
    "checkpoint": lambda: training(lambda: Checkpointed(False)),
    "reentrant checkpoint": lambda: training(lambda: Checkpointed(True)),
    "hook that reads": lambda: training(Reads),
    "compiled": lambda: training(compiled),
    "lstm": lambda: training(lambda: torch.nn.LSTM(16, 4, 2, dropout=0.1)),
    "gru": lambda: training(lambda: torch.nn.GRU(16, 4, bidirectional=True)),
    "batch norm": lambda: training(lambda: torch.nn.Sequential(torch.nn.BatchNorm1d(16), network())),
}


def losses(step: Step, trace: bool) -> tuple[list[torch.Tensor], Traced | None]:
    tracer, found = Tracer(lambda: "forward"), [step()]
    if trace:
        tracer.start()
    found.append(step())
    traced = tracer.stop() if trace else None
    return [*found, step()], traced


@pytest.mark.parametrize("name", TRAININGS)
def test_losses_are_bit_by_bit_the_same(name: str) -> None:
    plain, _ = losses(TRAININGS[name](), trace=False)
    watched, traced = losses(TRAININGS[name](), trace=True)
    assert all(map(torch.equal, plain, watched))
    assert traced is not None
    assert traced.notes == []
    assert [o.name for o in traced.operators if o.guessed] == []
    assert all(o.seconds is not None and o.seconds > 0 for o in traced.operators)


def test_compiled_models_show_their_operators_and_stay_compiled() -> None:
    step = TRAININGS["compiled"]()
    _, traced = losses(step, trace=True)
    assert traced is not None
    assert sum(o.count for o in traced.operators if o.kind == "matmul") == 6
    from torch._dynamo.utils import counters

    frames = counters["stats"]["unique_graphs"]
    step()
    assert counters["stats"]["unique_graphs"] == frames


def test_equal_calls_are_one_operator_in_the_order_of_the_step() -> None:
    tracer = Tracer(lambda: "forward")
    tracer.start()
    one = torch.ones(3)
    for _ in range(4):
        one = one.sin()
    one.cos().sin()
    operators = tracer.stop().operators
    assert [(o.name, o.count) for o in operators] == [("aten.ones", 1), ("aten.sin", 5), ("aten.cos", 1)]


def test_started_and_stopped_in_the_hook_of_an_optimizer() -> None:
    phase, traces = ["forward"], []
    tracer = Tracer(lambda: phase[0])
    steps = iter((tracer.start, lambda: traces.append(tracer.stop()), lambda: None))
    hook = register_optimizer_step_post_hook(lambda *_: next(steps)())
    try:
        step = TRAININGS["SGD"]()
        for _ in range(3):
            step()
    finally:
        hook.remove()
    [traced] = traces
    assert sum(o.flops * o.count for o in traced.operators if o.kind == "matmul") == 6 * 8 * (
        16 * 32 + 32 * 4
    )
    assert traced.device == "cpu"


def test_casts_of_autocast_are_seen_and_change_the_type() -> None:
    _, traced = losses(TRAININGS["autocast"](), trace=True)
    assert traced is not None
    assert {o.dtype for o in traced.operators if o.kind == "matmul"} == {"bf16"}
    casts = [o for o in traced.operators if o.attributes.get("to") == "bf16"]
    assert sum(o.count for o in casts) >= 4


class Doubled(TorchDispatchMode):
    """A mode of the script."""

    def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        result = func(*args, **kwargs or {})
        return result * 2 if func is torch.ops.aten.sin.default else result


def test_a_mode_of_the_script_may_end_before_ours() -> None:
    tracer = Tracer(lambda: "forward")
    with Doubled():
        tracer.start()
        inside = torch.ones(1).sin()
    outside = torch.ones(1).sin()
    names = [(o.name, o.count) for o in tracer.stop().operators]
    assert torch.equal(inside, outside * 2)
    assert ("aten.sin", 2) in names
    assert ("aten.mul", 1) in names


def test_a_mode_of_the_script_may_begin_before_ours_ends() -> None:
    tracer = Tracer(lambda: "forward")
    tracer.start()
    with Doubled():
        inside = torch.ones(1).sin()
        assert [o.name for o in tracer.stop().operators] == ["aten.ones", "aten.sin", "aten.mul"]
        assert torch.equal(torch.ones(1).sin(), inside)


def test_errors_of_the_script_stay_its_own_and_ours_do_not_reach_it(monkeypatch: pytest.MonkeyPatch) -> None:
    def fail(*_: Any) -> None:
        raise ValueError("ours")

    monkeypatch.setattr(tracing, "describe", fail)
    tracer = Tracer(lambda: "forward")
    tracer.start()
    torch.ones(2).sin()
    with pytest.raises(RuntimeError, match="size"):
        torch.ones(2) + torch.ones(3)
    traced = tracer.stop()
    assert traced.operators == []
    assert "ValueError: ours" in traced.notes[0]


def test_stopping_on_another_thread_harms_nothing() -> None:
    tracer = Tracer(lambda: "forward")

    def begin() -> None:
        tracer.start()
        torch.ones(2).sin()

    thread = threading.Thread(target=begin)
    thread.start()
    thread.join()
    assert [o.name for o in tracer.stop().operators] == ["aten.ones", "aten.sin"]


def test_sharded_and_other_subclasses_show_what_they_do_inside() -> None:
    from torch.testing._internal.two_tensor import TwoTensor

    pair = TwoTensor(torch.randn(3, 4), torch.randn(3, 4))
    tracer = Tracer(lambda: "forward")
    tracer.start()
    pair @ torch.randn(4, 5)
    operators = tracer.stop().operators
    assert [(o.name, o.count) for o in operators if o.kind == "matmul"] == [("aten.mm", 2)]
