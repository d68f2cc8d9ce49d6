"""L-BFGS evaluates its closure many times per step: 4 steps on a full batch of 50."""

import torch
from torch import nn

torch.manual_seed(1)
x, y = torch.randn(50, 3), torch.randn(50, 1)
model = nn.Linear(3, 1)
optimizer = torch.optim.LBFGS(model.parameters(), lr=0.1, max_iter=10)


def closure():
    optimizer.zero_grad()
    loss = nn.functional.mse_loss(model(x), y)
    loss.backward()
    return loss


for _ in range(4):
    print(f"LOSS {optimizer.step(closure).item():.9f}")
