"""Accelerate with gradient accumulation over two batches of 16: 100 samples, so the last step has 4 left."""

import torch
from accelerate import Accelerator
from torch import nn
from torch.utils.data import DataLoader, TensorDataset

torch.manual_seed(1)
accelerator = Accelerator(gradient_accumulation_steps=2)
loader = DataLoader(TensorDataset(torch.randn(100, 10), torch.randn(100, 1)), batch_size=16, shuffle=True)
model = nn.Linear(10, 1)
optimizer = torch.optim.SGD(model.parameters(), lr=0.01)
model, optimizer, loader = accelerator.prepare(model, optimizer, loader)
for x, y in loader:
    with accelerator.accumulate(model):
        loss = nn.functional.mse_loss(model(x), y)
        accelerator.backward(loss)
        optimizer.step()
        optimizer.zero_grad()
