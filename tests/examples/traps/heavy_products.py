"""No trap: large products, which the device is busy with."""

import torch
from torch import nn

torch.manual_seed(0)
model = nn.Sequential(nn.Linear(1024, 1024), nn.ReLU(), nn.Linear(1024, 1024))
optimizer = torch.optim.SGD(model.parameters(), lr=0.001)
rows = torch.randn(512, 1024)
for _ in range(2000):
    optimizer.zero_grad()
    loss = (model(rows) - rows).square().mean()
    loss.backward()
    optimizer.step()
