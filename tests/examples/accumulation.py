"""Gradient accumulation over four micro-batches of 8: 96 samples, one optimizer step per 32."""

import torch
from torch import nn
from torch.utils.data import DataLoader, TensorDataset

torch.manual_seed(1)
data = TensorDataset(torch.randn(96, 10), torch.randn(96, 1))
model = nn.Sequential(nn.Linear(10, 16), nn.ReLU(), nn.Linear(16, 1))
optimizer = torch.optim.AdamW(model.parameters())
step_loss = 0.0
for index, (x, y) in enumerate(DataLoader(data, batch_size=8)):
    loss = nn.functional.mse_loss(model(x), y) / 4
    loss.backward()
    step_loss += loss.item()
    if (index + 1) % 4 == 0:
        optimizer.step()
        optimizer.zero_grad()
        print(f"LOSS {step_loss:.9f}")
        step_loss = 0.0
