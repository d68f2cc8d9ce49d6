"""A script that knows only CUDA: 3 steps of 7."""

import torch
from torch import nn

device = torch.device("cuda:0")
model = nn.Linear(4, 1).cuda()
head = nn.Linear(1, 1, device=device)
optimizer = torch.optim.SGD([*model.parameters(), *head.parameters()], lr=0.01)
for _ in range(3):
    x = torch.randn(7, 4).to("cuda", non_blocking=True)
    y = torch.zeros(7, 1, device="cuda")
    optimizer.zero_grad()
    loss = nn.functional.mse_loss(head(model(x)), y)
    loss.backward()
    optimizer.step()
torch.cuda.synchronize()
print("trained on", loss.device)
