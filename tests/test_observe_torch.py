"""Unmodified scripts of every kind, each seen with the right steps, samples and losses."""

from __future__ import annotations

import subprocess
from collections.abc import Callable

import pytest

from outpace.records import Run

Observed = Callable[..., tuple[Run, "subprocess.CompletedProcess[str]"]]

# script: (samples per step as run lengths, epochs, steps after an interruption)
SEEN = {
    "lenet.py": ([(50, 4), (30, 1), (50, 4), (30, 1)], 2, [5]),
    "accumulation.py": ([(32, 3)], 1, []),
    "gan.py": ([(16, 15)], 3, []),
    "gan_in_memory.py": ([(16, 6)], None, []),
    "scaler.py": ([(10, 6)], None, []),
    "lbfgs.py": ([(50, 4)], None, []),
    "folds.py": ([(5, 12)], None, []),
    "compiled.py": ([(12, 8)], None, []),
    "lightning_script.py": ([(32, 3), (4, 1), (32, 3), (4, 1)], 2, [0, 4]),
    "accelerate_script.py": ([(32, 3), (4, 1)], 1, []),
    "transformers_script.py": ([(8, 10)], 2, None),
}


@pytest.mark.parametrize("script", SEEN)
def test_unmodified_script(script: str, observed: Observed) -> None:
    run, done = observed(script)
    assert done.returncode == 0, done.stderr
    step_samples, epochs, interrupted = SEEN[script]
    assert run.state == "done"
    assert run.step_samples == step_samples
    assert run.steps == len(run.step_seconds) == sum(steps for _, steps in step_samples)
    assert run.samples == sum(size * steps for size, steps in step_samples)
    assert run.epochs == epochs
    if interrupted is not None:
        assert run.interrupted_steps == interrupted
    assert run.device == "cpu"
    assert all(seconds > 0 for seconds in run.step_seconds)
    printed = [float(line.split()[1]) for line in done.stdout.splitlines() if line.startswith("LOSS ")]
    if printed:
        assert run.losses == pytest.approx(printed, abs=1e-6)
    else:
        assert len(run.losses) == run.steps


def test_skipped_steps_are_counted(observed: Observed) -> None:
    run, _ = observed("scaler.py")
    assert run.skipped_steps == 1


def test_observing_compiles_nothing_twice_and_warns_of_nothing(observed: Observed) -> None:
    run, done = observed("compiled.py")
    assert run.steps == 8
    assert "GRAPHS 2" in done.stdout
    assert "global hooks" not in done.stderr


def test_hard_coded_cuda_names_the_way_out(observed: Observed) -> None:
    run, done = observed("cuda_hard_coded.py")
    assert done.returncode == 1
    assert run.state == "failed"
    assert "hint: the script asks for CUDA and there is none here: --device cpu" in done.stderr


def test_hard_coded_cuda_runs_on_the_cpu_when_asked(observed: Observed) -> None:
    run, done = observed("cuda_hard_coded.py", options=("--device", "cpu"))
    assert done.returncode == 0, done.stderr
    assert "trained on cpu" in done.stdout
    assert run.device == "cpu"
    assert run.step_samples == [(7, 3)]
    assert any("names cuda" in note for note in run.notes)


@pytest.mark.parametrize("device", ["cuda", "xpu", "mps", "cuda:1"])
def test_a_missing_device_is_said_before_training(device: str, observed: Observed) -> None:
    run, done = observed("lenet.py", options=("--device", device))
    assert done.returncode == 1
    assert run.steps == 0
    assert "error: " in done.stderr
    assert "hint: " in done.stderr
    assert "Traceback" not in done.stderr


def test_the_same_training_with_and_without(observed: Observed) -> None:
    script = """
import torch
torch.manual_seed(3)
model = torch.nn.Sequential(torch.nn.Linear(5, 8), torch.nn.Dropout(0.5), torch.nn.Linear(8, 1))
loader = torch.utils.data.DataLoader(torch.utils.data.TensorDataset(torch.randn(40, 5)), 8, shuffle=True)
optimizer = torch.optim.Adam(model.parameters())
for (x,) in loader:
    loss = model(x).square().mean()
    loss.backward(); optimizer.step(); optimizer.zero_grad()
print("WEIGHTS", [p.double().sum().item() for p in model.parameters()])
"""
    import sys

    _, done = observed(script)
    alone = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True)
    assert done.stdout.split("\n\n")[0].strip() == alone.stdout.strip()


def test_saving_the_whole_model_leaves_no_trace_of_us(observed: Observed) -> None:
    run, done = observed("""
import copy, io, torch
model = torch.nn.Linear(3, 1)
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
for _ in range(3):
    model(torch.randn(4, 3)).sum().backward()
    optimizer.step()
copy.deepcopy(model), copy.deepcopy(optimizer)
file = io.BytesIO()
torch.save([model, optimizer], file)
print("TRACE", b"outpace" in file.getvalue())
""")
    assert run.steps == 3
    assert "TRACE False" in done.stdout


def test_data_loader_workers(observed: Observed) -> None:
    run, done = observed("""
import torch
from torch.utils.data import DataLoader, TensorDataset

def main():
    for context in ("fork", "spawn"):
        data = TensorDataset(torch.randn(20, 3))
        loader = DataLoader(data, 5, num_workers=1, multiprocessing_context=context)
        model = torch.nn.Linear(3, 1)
        optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
        for (x,) in loader:
            model(x).sum().backward()
            optimizer.step()

if __name__ == "__main__":
    main()
""")
    assert done.returncode == 0, done.stderr
    assert run.step_samples == [(5, 8)]
    assert run.epochs == 2


def test_one_batch_over_and_over(observed: Observed) -> None:
    run, _ = observed("""
import torch
from torch.utils.data import DataLoader, TensorDataset
(x,) = next(iter(DataLoader(TensorDataset(torch.randn(64, 3)), 16)))
model = torch.nn.Linear(3, 1)
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
for _ in range(9):
    model(x).sum().backward()
    optimizer.step()
""")
    assert run.step_samples == [(16, 9)]


def test_an_optimizer_within_an_optimizer_is_one_step(observed: Observed) -> None:
    run, _ = observed("""
import torch

class Lookahead(torch.optim.Optimizer):
    def __init__(self, inner):
        self.inner = inner
        super().__init__(inner.param_groups, {})
    def step(self, closure=None):
        return self.inner.step(closure)

model = torch.nn.Linear(3, 1)
optimizer = Lookahead(torch.optim.SGD(model.parameters(), lr=0.1))
for _ in range(5):
    model(torch.randn(6, 3)).sum().backward()
    optimizer.step()
""")
    assert run.step_samples == [(6, 5)]


LOADER = """
import torch
from torch.utils.data import DataLoader, TensorDataset
loader = DataLoader(TensorDataset(torch.randn(100, 3)), 16)
model = torch.nn.Linear(3, 1)
for (x,) in loader:
"""


def test_an_optimizer_made_anew_each_step(observed: Observed) -> None:
    step = """
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    model(x).sum().backward()
    optimizer.step()
    kept.append(optimizer)
"""
    run, _ = observed("kept = []\n" + LOADER + step)
    assert run.step_samples == [(16, 6), (4, 1)]


def test_a_batch_that_failed_is_not_counted(observed: Observed) -> None:
    step = """
    try:
        model(x[:, :2] if len(x) == 16 and fresh else x).sum().backward()
    except RuntimeError:
        fresh = False
        continue
    optimizer.step()
"""
    start = "optimizer = torch.optim.SGD(model.parameters(), lr=0.1)\nfresh = True\nfor (x,) in loader:"
    run, _ = observed(LOADER.replace("for (x,) in loader:", start) + step)
    assert run.step_samples == [(16, 5), (4, 1)]


def test_an_optimizer_per_parameter_that_steps_within_backward(observed: Observed) -> None:
    hooks = """
optimizers = {p: torch.optim.SGD([p], lr=0.1) for p in model.parameters()}
for p in model.parameters():
    p.register_post_accumulate_grad_hook(lambda p: optimizers[p].step())
for (x,) in loader:
    model(x).sum().backward()
"""
    run, _ = observed(LOADER.replace("for (x,) in loader:\n", "") + hooks)
    assert run.step_samples == [(16, 6), (4, 1)]
    assert len(run.losses) == 7


def test_updates_by_hand_are_steps(observed: Observed) -> None:
    step = """
    loss = model(x).square().mean()
    loss.backward()
    with torch.no_grad():
        for p in model.parameters():
            p -= 0.01 * p.grad
            p.grad = None
    print(f"LOSS {loss.item():.9f}")
"""
    run, done = observed(LOADER + step)
    assert run.step_samples == [(16, 6), (4, 1)]
    assert any("each gradient is taken for a step" in note for note in run.notes)
    assert run.losses == pytest.approx([float(x.split()[1]) for x in done.stdout.splitlines() if "LOSS" in x])


def test_a_training_step_compiled_whole(observed: Observed) -> None:
    step = """
    train_step(x)
"""
    whole = """
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
@torch.compile(backend="aot_eager")
def train_step(x):
    optimizer.zero_grad()
    loss = model(x).square().mean()
    loss.backward()
    optimizer.step()
for (x,) in loader:
"""
    run, done = observed(LOADER.replace("for (x,) in loader:", whole) + step)
    assert done.returncode == 0, done.stderr
    assert run.steps == 7
    assert run.samples == 100
    assert "recompile" not in done.stderr
    assert "outpace/observe" not in done.stderr


def test_losses_that_are_not_finite(observed: Observed) -> None:
    run, done = observed("""
import torch
model = torch.nn.Linear(3, 1)
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
for step in range(4):
    loss = model(torch.randn(6, 3)).sum() * (float("nan") if step > 1 else 1.0)
    loss.backward()
    optimizer.step()
""")
    assert run.nonfinite_losses == [2, 3]
    assert run.losses[2:] == [None, None]
    assert "not finite from step 3 on" in done.stdout


NOT_TRAINING = {
    "print('hello')\nprint('bye')": "it imports none of torch",
    "import torch\ntorch.ones(3)": "no model was trained",
    "import torch\nm = torch.nn.Linear(2, 1)\nm(torch.ones(1, 2))": "no gradient was computed",
    "import torch\ntorch.nn.Linear(2, 1)(torch.ones(1, 2)).sum().backward()": "no optimizer took a step",
}


@pytest.mark.parametrize("script", NOT_TRAINING)
def test_a_script_that_does_not_train(script: str, observed: Observed) -> None:
    run, done = observed(script + "\n")
    assert done.returncode == 1
    assert run.state == "failed"
    assert f"no training step was seen in script.py: {NOT_TRAINING[script]}" in done.stderr or (
        NOT_TRAINING[script] in done.stderr
    )


def test_out_of_band_steps_of_a_script_win(observed: Observed) -> None:
    run, _ = observed("""
import outpace, torch
model = torch.nn.Linear(3, 1)
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
for step in range(6):
    loss = model(torch.randn(6, 3)).square().sum()
    loss.backward()
    optimizer.step()
    if step % 2:
        outpace.step(samples=12, loss=step)
outpace.log(accuracy=torch.tensor(0.5), other=float("inf"))
""")
    assert run.step_samples == [(12, 3)]
    assert run.losses == [1, 3, 5]
    assert run.metrics == {"accuracy": 0.5, "other": None}
