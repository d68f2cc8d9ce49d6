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

#: Two models that train against each other; the generator's gradient goes through the discriminator.
GAN = """
import torch
from torch import nn
from torch.utils.data import DataLoader, TensorDataset

torch.manual_seed(0)
loader = DataLoader(TensorDataset(torch.randn(64, 1, 8, 8)), batch_size=16)
generator = nn.Sequential(nn.Linear(4, 64), nn.Unflatten(1, (1, 8, 8)), nn.Conv2d(1, 1, 3, padding=1))
critic = nn.Sequential(nn.Conv2d(1, 4, 3), nn.LeakyReLU(0.2), nn.Flatten(), nn.Linear(144, 1))
of_generator = torch.optim.Adam(generator.parameters(), lr=0.01)
of_critic = torch.optim.Adam(critic.parameters(), lr=0.01)
losses = []
for epoch in range(2):
    for (real,) in loader:
        fake = generator(torch.randn(len(real), 4))
        loss = nn.functional.softplus(-critic(real)).mean()
        loss = loss + nn.functional.softplus(critic(fake.detach())).mean()
        of_critic.zero_grad()
        loss.backward()
        of_critic.step()
        losses.append(loss.item())
        loss = nn.functional.softplus(-critic(fake)).mean()
        of_generator.zero_grad()
        loss.backward()
        of_generator.step()
        losses.append(loss.item())
print("losses=" + " ".join(map(repr, losses)))
"""

#: Gradients of three batches are added up, clipped, and then applied.
ACCUMULATION = """
import torch
from torch import nn
from torch.utils.data import DataLoader, TensorDataset

torch.manual_seed(0)
images, labels = torch.randn(96, 3, 8, 8), torch.randint(0, 5, (96,))
loader = DataLoader(TensorDataset(images, labels), batch_size=8)
model = nn.Sequential(nn.Conv2d(3, 8, 3), nn.ReLU(), nn.Flatten(), nn.Linear(288, 5))
optimizer = torch.optim.AdamW(model.parameters(), lr=0.01)
losses = []
for epoch in range(2):
    for number, (inputs, targets) in enumerate(loader, start=1):
        loss = nn.functional.cross_entropy(model(inputs), targets) / 3
        loss.backward()
        if number % 3 == 0:
            nn.utils.clip_grad_norm_(model.parameters(), 1.0)
            optimizer.step()
            optimizer.zero_grad()
        losses.append(loss.item())
print("losses=" + " ".join(map(repr, losses)))
"""


def own_precision(dtype: str) -> str:
    """A script that uses autocast to *dtype* and scales its loss itself."""
    return TOY.replace(
        "        outputs = model(inputs)\n        loss = nn.functional.cross_entropy(outputs, targets)\n"
        "        loss.backward()\n        optimizer.step()\n",
        f"        with torch.autocast('cpu', dtype={dtype}):\n"
        "            outputs = model(inputs)\n"
        "            loss = nn.functional.cross_entropy(outputs, targets)\n"
        "        scaler.scale(loss).backward()\n        scaler.step(optimizer)\n        scaler.update()\n",
    ).replace("seen, losses = {}, []", "seen, losses = {}, []\nscaler = torch.amp.GradScaler('cpu')")


#: It has its model compiled (by a back-end that takes no time).
COMPILED = TOY.replace("model = Net()", "model = Net()\nmodel.compile(backend='eager')").replace(
    "torch.save(copy.deepcopy(model), io.BytesIO())", ""
)

#: The state of a training before some speed-ups were on for a step, and after they were switched off.
SWITCHED = """
import time
import torch
from torch import nn
from torch.utils.data import DataLoader, TensorDataset
from outpace import protocol
from outpace.observe.torch.hooks import Hooks
from outpace.observe.torch.stage import Stage
from outpace.watcher import Watch

race = protocol.Race(slots={}, seconds=1.0)
watch = Watch(lambda event: None, protocol.Job(script="t", events_fd=-1, spawned_at=time.time(), race=race))
watch.course = None
stage = Stage(watch, [])
Hooks(watch, None, stage).install()
model = nn.Sequential(nn.Conv2d(3, 8, 3), nn.ReLU(), nn.Flatten(), nn.Linear(288, 5))
optimizer = torch.optim.AdamW(model.parameters())
batches = iter(DataLoader(TensorDataset(torch.randn(96, 3, 8, 8), torch.randint(0, 5, (96,))), batch_size=8))

def step():
    inputs, targets = next(batches)
    hidden = []
    optimizer.zero_grad()
    outputs = model(inputs)
    loss = nn.functional.cross_entropy(outputs, targets)
    loss.backward()
    optimizer.step()

def state():
    group = optimizer.param_groups[0]
    counted = optimizer.state[model[0].weight]["step"]
    return (
        group["fused"], group["foreach"], str(counted.device), type(batches._dataset_fetcher).__name__,
        model[0].weight.stride(), torch.get_num_threads(), torch.is_autocast_enabled("cpu"),
        (torch.tensor([1e-39]) * 0.5).item() > 0,
    )

step(); step()
print(state())
on = ["indexed-batches", "one-thread", "bf16", "channels-last", "fused-optimizer", "flush-denormals"]
stage.switch(on)
step(); step()
assert all(stage.why_not(name) is None for name in on), [stage.why_not(name) for name in on]
stage.switch([])
step()
print(state())
"""
