"""Speed-ups of known worth, planted beside the real ones, and a training that they act on."""

from __future__ import annotations

from pathlib import Path

from outpace import speedups

#: A step takes what ``builtins.PACE`` says; planted speed-ups change it, and worse things.
SCRIPT = """
import builtins, sys, time
import outpace.speedups
outpace.speedups.__path__.append({folder!r})
builtins.PACE = 0.006
import torch
from torch import nn
import outpace

torch.manual_seed(0)
inputs = torch.randn(64, 8)
targets = inputs @ torch.randn(8, 1)

class Net(nn.Linear):
    def forward(self, x):
        time.sleep(builtins.PACE)
        return super().forward(x)

model = Net(8, 1)
optimizer = torch.optim.SGD(model.parameters(), lr=0.05)
for step in range({steps}):
    rows = torch.randint(0, 64, (16,))
    optimizer.zero_grad()
    loss = nn.functional.mse_loss(model(inputs[rows]), targets[rows])
    loss.backward()
    optimizer.step()
with torch.no_grad():
    outpace.log(test_loss=nn.functional.mse_loss(inputs @ model.weight.T + model.bias, targets).item())
"""

HEAD = '''
"""Planted."""
import builtins, os, signal, time
from outpace.speedups import Part

SLOT, EFFECT, LINES = "{slot}", "{effect}", "pass"

def torch(tell):
    return Planted(tell)

class Planted(Part):
    def __init__(self, tell):
        self.tell = tell
    def on(self):
        self.tell("planted")
        builtins.PACE *= {factor}
    def off(self, models):
        builtins.PACE /= {factor}
'''

ENTER = """
    def enter(self, module, args, kwargs):
        {act}
        return args, kwargs
"""

#: name: slot, effect, what becomes of the time of a step, what it does at each call.
PLANTED = {
    "planted_fast": ("data", "rounding", 0.5, None),
    "planted_slow": ("threads", "rounding", 2.0, None),
    "planted_useless": ("products", "rounding", 1.0, None),
    "planted_nan": ("layout", "rounding", 0.5, "args = (args[0] * float('nan'),)"),
    "planted_wrong": ("kernels", "rounding", 0.5, "args = (args[0] * 0,)"),
    "planted_liar": ("denormals", "same", 0.5, "args = (args[0] * 1.01,)"),
    "planted_crash": ("optimizer", "rounding", 1.0, "raise RuntimeError('planted failure')"),
    "planted_memory": ("precision", "rounding", 1.0, "raise MemoryError('out of memory')"),
    "planted_killed": ("precision", "rounding", 1.0, "os.kill(os.getpid(), signal.SIGKILL)"),
    "planted_hang": ("compile", "rounding", 1.0, "time.sleep(1000)"),
    "planted_absent": ("kernels", "rounding", 1.0, None),
}


def plant(folder: Path) -> None:
    """Write all of them into *folder*, where this process finds them too."""
    for name, (slot, effect, factor, act) in PLANTED.items():
        text = HEAD.format(slot=slot, effect=effect, factor=factor)
        if act is not None:
            text += ENTER.format(act=act)
        if name == "planted_absent":
            text = text.replace("        self.tell(", "        self.reason = 'not for this one'  # (")
        (folder / f"{name}.py").write_text(text)
    speedups.__path__.append(str(folder))


def uproot(folder: Path) -> None:
    """Undo `plant`."""
    speedups.__path__.remove(str(folder))
