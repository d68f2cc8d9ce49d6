"""An LSTM written as a loop over time: hundreds of tiny calls per step."""

import torch
from torch import nn

torch.manual_seed(0)
cell, head = nn.LSTMCell(8, 16), nn.Linear(16, 1)
optimizer = torch.optim.Adam([*cell.parameters(), *head.parameters()])
rows = torch.randn(100, 32, 8)
for _ in range(3000):
    hidden = memory = torch.zeros(32, 16)
    for now in rows:
        hidden, memory = cell(now, (hidden, memory))
    loss = (head(hidden).squeeze(1) - rows.sum((0, 2))).square().mean()
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
