"""``outpace.watch()`` in a program of one's own."""

from __future__ import annotations

import subprocess
import sys

IN_PROCESS = """
import torch, outpace
from torch import nn
model = nn.Linear(64, 64)
optimizer = torch.optim.SGD(model.parameters(), lr=0.01)
rows = torch.randn(32, 64)
def train(steps):
    for _ in range(steps):
        optimizer.zero_grad()
        loss = model(rows).square().mean()
        loss.backward()
        optimizer.step()
train(3)
for _ in range(2):
    with outpace.watch() as watch:
        train(10_000)
    found = watch.measurement
    assert found.method.settled and found.device == "cpu" and found.samples_per_step == 32, found
    products = [one.flops * one.count for one in found.trace.operators if one.kind == "matmul"]
    assert sum(products) == 32 * 2 * 2 * 64 * 64, products
train(3)
try:
    with outpace.watch():
        pass
except outpace.errors.OutpaceError as error:
    print(error.what)
try:
    with outpace.watch():
        1 / 0
except ZeroDivisionError:
    print("raised as it is")
with outpace.watch() as watch:
    train(100)
    try:
        with outpace.watch():
            pass
    except outpace.errors.OutpaceError as error:
        print(error.what)
"""


def test_a_program_of_ones_own_is_watched() -> None:
    done = subprocess.run([sys.executable, "-c", IN_PROCESS], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    assert done.stdout.splitlines() == [
        "no training step was seen inside outpace.watch()",
        "raised as it is",
        "this training is being watched already",
    ]
