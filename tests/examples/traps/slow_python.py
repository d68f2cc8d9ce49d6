"""Looks at every number of every sample in Python: the model waits for the script."""

import torch
from torch import nn

torch.manual_seed(0)
model = nn.Linear(64, 10)
optimizer = torch.optim.SGD(model.parameters(), lr=0.001)
for _ in range(3000):
    rows = [[float((17 * row + column) % 13) for column in range(64)] for row in range(256)]
    labels = [int(sum(row)) % 10 for row in rows]
    optimizer.zero_grad()
    loss = nn.functional.cross_entropy(model(torch.tensor(rows)), torch.tensor(labels))
    loss.backward()
    optimizer.step()
