"""A compiled model, compiled whole (a break in the graph would raise): 5 steps of 12 samples."""

import torch
from torch import nn

torch.manual_seed(1)
model = nn.Sequential(nn.Linear(8, 16), nn.BatchNorm1d(16), nn.ReLU(), nn.Linear(16, 1))
compiled = torch.compile(model, fullgraph=True, backend="aot_eager")
optimizer = torch.optim.SGD(model.parameters(), lr=0.01)
for _ in range(5):
    optimizer.zero_grad()
    loss = compiled(torch.randn(12, 8)).square().mean()
    loss.backward()
    optimizer.step()
    print(f"LOSS {loss.item():.9f}")


@torch.compile(fullgraph=True, backend="aot_eager")
def forward_and_loss(x):
    return model(x).square().mean()


for _ in range(3):
    optimizer.zero_grad()
    loss = forward_and_loss(torch.randn(12, 8))
    loss.backward()
    optimizer.step()
    print(f"LOSS {loss.item():.9f}")
print("GRAPHS", torch._dynamo.utils.counters["stats"]["unique_graphs"])
