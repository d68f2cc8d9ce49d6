"""A PyTorch training loop as source text, to be bent by tests."""

LOOP = """
import torch, sys
from torch import nn
torch.manual_seed(0)
model = nn.Sequential(nn.Linear(256, 256), nn.ReLU(), nn.Linear(256, 10))
optimizer = torch.optim.Adam(model.parameters())
rows, labels = torch.randn(64, 256), torch.randint(0, 10, (64,))
try:
    for step in range({steps}):
        optimizer.zero_grad()
        loss = nn.functional.cross_entropy(model(rows), labels)
        loss.backward()
        optimizer.step()
        {body}
finally:
    print("CLEANED UP", flush=True)
print("THE END")
"""


def loop(steps: int = 100_000, body: str = "pass") -> str:
    return LOOP.format(steps=steps, body=body)
