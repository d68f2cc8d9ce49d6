"""Small training scripts that say what they see of speed-ups."""

TOY = """
import copy, io
import torch
from torch import nn
from torch.utils.data import DataLoader, TensorDataset

torch.manual_seed(0)
images, labels = torch.randn(48, 3, 12, 12), torch.randint(0, 10, (48,))
loader = DataLoader(TensorDataset(images, labels), batch_size=16, shuffle=True)


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.first, self.second = nn.Conv2d(3, 8, 3), nn.Conv2d(8, 8, 3)
        self.head = nn.Linear(8 * 8 * 8, 10)

    def forward(self, x):
        hidden = self.second(torch.relu(self.first(x)))
        if self.training and not torch.compiler.is_compiling():
            seen["activations"] = hidden.dtype
        return self.head(torch.relu(hidden).flatten(1))


seen, losses = {}, []
model = Net()
optimizer = torch.optim.AdamW(model.parameters(), lr=0.01)
for epoch in range(3):
    batches = iter(loader)
    for inputs, targets in batches:
        optimizer.zero_grad()
        outputs = model(inputs)
        loss = nn.functional.cross_entropy(outputs, targets)
        loss.backward()
        optimizer.step()
        losses.append(loss.item())
    model.eval()
    with torch.no_grad():
        seen["evaluation"] = model(images).dtype
    model.train()
torch.save(copy.deepcopy(model), io.BytesIO())
seen["output"] = outputs.dtype
seen["fetcher"] = type(batches._dataset_fetcher).__name__
seen["threads"] = torch.get_num_threads()
seen["weights_channels_last"] = model.second.weight.is_contiguous(memory_format=torch.channels_last)
seen["fused"] = optimizer.param_groups[0]["fused"]
seen["denormal"] = (torch.tensor([1e-39]) * 0.5).item()
seen["compiled"] = bool(torch._dynamo.utils.counters["stats"]["unique_graphs"])
seen["losses"] = " ".join(map(repr, losses))
for name, value in seen.items():
    print(f"{name}={value}")
"""
