"""fp16 loss scaling with one step whose gradients overflow: 6 steps of 10 samples, one of them skipped."""

import torch
from torch import nn

torch.manual_seed(1)
model = nn.Linear(4, 1)
optimizer = torch.optim.SGD(model.parameters(), lr=0.01)
scaler = torch.amp.GradScaler("cpu", init_scale=1024.0)
for step in range(6):
    x, y = torch.randn(10, 4), torch.randn(10, 1)
    optimizer.zero_grad()
    loss = nn.functional.mse_loss(model(x), y)
    print(f"LOSS {loss.item():.9f}")
    scaler.scale(loss).backward()
    if step == 2:
        model.weight.grad.fill_(float("inf"))
    scaler.step(optimizer)
    scaler.update()
