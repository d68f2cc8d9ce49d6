"""Compiles its model, and counts the first step like any other."""

import time

import torch
from torch import nn

torch.manual_seed(0)
layers = [layer for _ in range(30) for layer in (nn.Linear(128, 128), nn.LayerNorm(128), nn.GELU())]
model = torch.compile(nn.Sequential(*layers, nn.Linear(128, 10)), backend="aot_eager")
optimizer = torch.optim.SGD(model.parameters(), lr=0.01)
rows, labels = torch.randn(64, 128), torch.randint(0, 10, (64,))
began, steps = time.perf_counter(), 600
for _ in range(steps):
    optimizer.zero_grad()
    loss = nn.functional.cross_entropy(model(rows), labels)
    loss.backward()
    optimizer.step()
print(f"{steps * 64 / (time.perf_counter() - began):.0f} samples/s")
