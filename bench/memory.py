"""The memory of a step by use, as a trace tells it, against what PyTorch's allocator hands out (CPU).

python -m bench.memory
"""

from __future__ import annotations

import gc
import json
import platform
import tempfile
from collections.abc import Callable
from pathlib import Path

import torch
from torch import nn
from torch.nn import functional as F
from torch.profiler import ProfilerActivity, profile, record_function

from outpace.observe.torch.tracing import Tracer
from outpace.records import StepMemory
from outpace.scripts import cnn

phase = "forward"


def mlp() -> tuple[nn.Module, torch.Tensor, torch.Tensor]:
    model = nn.Sequential(nn.Linear(784, 1024), nn.GELU(), nn.LayerNorm(1024), nn.Linear(1024, 10))
    return model, torch.randn(256, 784), torch.randint(0, 10, (256,))


def lenet() -> tuple[nn.Module, torch.Tensor, torch.Tensor]:
    return cnn.network(), torch.randn(64, 1, 28, 28), torch.randint(0, 10, (64,))


def transformer() -> tuple[nn.Module, torch.Tensor, torch.Tensor]:
    layer = nn.TransformerEncoderLayer(128, 4, 512, dropout=0.0, batch_first=True)
    model = nn.Sequential(
        nn.TransformerEncoder(layer, 4, enable_nested_tensor=False), nn.Flatten(1), nn.Linear(128 * 64, 10)
    )
    return model, torch.randn(32, 64, 128), torch.randint(0, 10, (32,))


Batch = tuple[torch.Tensor, torch.Tensor]


def step(model: nn.Module, optimizer: torch.optim.Optimizer, batch: Batch) -> None:
    """One step, its phases marked for the profiler and for the tracer."""
    global phase
    phase = "forward"
    optimizer.zero_grad()
    with record_function("bench:forward"):
        loss = F.cross_entropy(model(batch[0]), batch[1])
    phase = "backward"
    with record_function("bench:backward"):
        loss.backward()
    phase = "optimizer"
    with record_function("bench:optimizer"):
        optimizer.step()
    phase = "forward"


def allocated(work: Callable[[], None], marks: tuple[str, ...]) -> dict[str, int]:
    """Bytes that the allocator has handed out more at the end of each marked phase than at its start."""
    with profile(activities=[ProfilerActivity.CPU], profile_memory=True) as profiled:
        work()
    with tempfile.TemporaryDirectory() as folder:
        file = Path(folder) / "trace.json"
        profiled.export_chrome_trace(str(file))
        events = json.loads(file.read_text())["traceEvents"]
    changes = [(event["ts"], event["args"]["Bytes"]) for event in events if event.get("name") == "[memory]"]
    found = {}
    for mark in marks:
        span = next(event for event in events if event.get("name") == mark)
        start, end = span["ts"], span["ts"] + span["dur"]
        found[mark] = sum(size for at, size in changes if start <= at <= end)
    return found


def traced(model: nn.Module, optimizer: torch.optim.Optimizer, batch: Batch) -> StepMemory:
    """What our trace of a step says."""
    tracer = Tracer(lambda: phase)
    tracer.start()
    step(model, optimizer, batch)
    memory = tracer.stop().memory
    assert memory is not None
    return memory


def main() -> None:
    torch.set_num_threads(1)
    print(f"PyTorch {torch.__version__}, Python {platform.python_version()}")
    print(f"{'':<14} {'':<12} {'traced':>12} {'allocator':>12}")
    for name, make in (("cnn", lenet), ("mlp", mlp), ("transformer", transformer)):
        torch.manual_seed(0)
        model, rows, labels = make()
        batch = (rows, labels)
        optimizer = torch.optim.Adam(model.parameters())
        marks = ("bench:forward", "bench:backward", "bench:optimizer")
        first = allocated(lambda: step(model, optimizer, batch), marks)  # noqa: B023 - called at once
        later = allocated(lambda: step(model, optimizer, batch), marks)  # noqa: B023
        gc.collect()
        memory = traced(model, optimizer, batch)
        parameters = sum(parameter.numel() * parameter.element_size() for parameter in model.parameters())
        given = rows.nbytes + labels.nbytes  # made before, and kept for the backward pass
        lines = (
            ("parameters", memory.parameters_bytes, parameters),
            ("optimizer", memory.optimizer_state_bytes, first["bench:optimizer"]),
            ("activations", memory.activations_bytes, later["bench:forward"] + given),
            ("gradients", memory.gradients_bytes, later["bench:backward"] + later["bench:forward"]),
        )
        for what, ours, theirs in lines:
            assert ours is not None
            print(f"{name:<14} {what:<12} {ours:>12,} {theirs:>12,}   {ours / theirs:.3f}")


if __name__ == "__main__":
    main()
