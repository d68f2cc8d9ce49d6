"""Three folds, each with a model in evaluation mode and an optimizer of its own: 4 steps each of 5."""

import torch
from torch import nn

torch.manual_seed(1)
for _ in range(3):
    model = nn.Linear(4, 1).eval()
    optimizer = torch.optim.SGD(model.parameters(), lr=0.01)
    for _ in range(4):
        optimizer.zero_grad()
        loss = model(torch.randn(5, 4)).square().mean()
        loss.backward()
        optimizer.step()
        print(f"LOSS {loss.item():.9f}")
