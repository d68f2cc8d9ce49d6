"""What measuring costs: the built-in cnn's training loop with and without the observer, interleaved.

Both sides run in one process and take turns of a few steps each, so that a machine that slows down slows
both. A turn with observing has the hooks of outpace installed in PyTorch and sends its events through a pipe;
a turn without has PyTorch's own functions back.

    python bench/observe_overhead.py [--turns 200] [--steps 20] [--batch-size 64]
"""

from __future__ import annotations

import argparse
import math
import os
import platform
import random
import statistics
import threading
import time
from collections.abc import Callable
from typing import Any

import torch
from torch.nn.modules import module as module_globals
from torch.optim import optimizer as optimizer_globals
from torch.utils.data import DataLoader, TensorDataset
from torch.utils.data.dataloader import _BaseDataLoaderIter

from outpace import data, host, protocol, worker
from outpace.observe.torch.hooks import Hooks
from outpace.observe.torch.stage import Stage
from outpace.scripts import cnn
from outpace.watcher import Watch

PATCHED = [
    (torch.autograd, "backward"),
    (_BaseDataLoaderIter, "__next__"),
    (DataLoader, "__iter__"),
    (torch.amp.GradScaler, "scale"),
    (torch.amp.GradScaler, "step"),
]
HOOK_TABLES: list[Any] = [
    module_globals._global_forward_pre_hooks,
    optimizer_globals._global_optimizer_pre_hooks,
    optimizer_globals._global_optimizer_post_hooks,
]


def switch() -> Callable[[bool], None]:
    """Install the hooks; returns a function that switches them on and off."""
    read_end, write_end = os.pipe()
    threading.Thread(target=_drain, args=(read_end,), daemon=True).start()
    plan = protocol.Plan(seconds=math.inf, trace=False)  # measuring, without an end
    job = protocol.Job(script="bench", events_fd=write_end, spawned_at=time.time(), plan=plan)
    off = [(owner, name, getattr(owner, name)) for owner, name in PATCHED]
    watch = Watch(worker.sender(write_end), job)
    Hooks(watch, None, Stage(watch, [])).install()
    on = [(owner, name, getattr(owner, name)) for owner, name in PATCHED]
    tables = [dict(table) for table in HOOK_TABLES]

    def turn(observing: bool) -> None:
        for owner, name, function in on if observing else off:
            setattr(owner, name, function)
        for table, hooks in zip(HOOK_TABLES, tables, strict=True):
            table.clear()
            if observing:
                table.update(hooks)

    return turn


def _drain(descriptor: int) -> None:
    while os.read(descriptor, 65536):
        pass


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--turns", type=int, default=200)
    parser.add_argument("--steps", type=int, default=20)
    parser.add_argument("--batch-size", type=int, default=64)
    args = parser.parse_args()
    images, labels, _, _ = map(torch.from_numpy, data.mnist("sample"))
    train_set = TensorDataset(cnn.normalized(images), labels)
    loader = DataLoader(train_set, args.batch_size, shuffle=True, drop_last=True)
    model = cnn.network()
    optimizer = torch.optim.SGD(model.parameters(), lr=0.01, momentum=0.9)
    set_observing = switch()
    seconds: dict[bool, list[float]] = {False: [], True: []}

    def one_turn(observing: bool) -> None:
        set_observing(observing)
        steps = 0
        while steps < args.steps:
            batches = iter(loader)
            began = time.perf_counter()
            for _ in range(args.steps):
                images, labels = next(batches)
                optimizer.zero_grad()
                loss = torch.nn.functional.cross_entropy(model(images), labels)
                loss.backward()
                optimizer.step()
                steps += 1
            seconds[observing].append((time.perf_counter() - began) / args.steps)

    for _ in range(10):
        one_turn(False)
        one_turn(True)
    seconds[False].clear()
    seconds[True].clear()
    order = random.Random(0)
    for _ in range(args.turns):
        pair = [False, True]
        order.shuffle(pair)
        for observing in pair:
            one_turn(observing)

    ratios = [on / off for off, on in zip(seconds[False], seconds[True], strict=True)]
    plain, observed = (statistics.median(seconds[observing]) for observing in (False, True))
    low, high = interval(ratios)
    print(f"PyTorch {torch.__version__}, Python {platform.python_version()}")
    print(f"{host.cpu_name()}, {host.cores():g} cores")
    print(f"cnn, batch {args.batch_size}, {args.turns} pairs of turns of {args.steps} steps")
    print(f"  without observing  {plain * 1e3:.3f} ms per step (median of turns)")
    print(f"  with observing     {observed * 1e3:.3f} ms per step")
    print(
        f"  ratio of pairs     {statistics.median(ratios):.4f} median, 95 % interval {low:.4f} to {high:.4f}"
    )


def interval(values: list[float], resamples: int = 2000) -> tuple[float, float]:
    """A 95 % bootstrap interval of the median."""
    source = random.Random(1)
    medians = sorted(statistics.median(source.choices(values, k=len(values))) for _ in range(resamples))
    return medians[int(0.025 * resamples)], medians[int(0.975 * resamples)]


if __name__ == "__main__":
    main()
