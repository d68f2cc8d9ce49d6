"""Scripts on shapes alone: what works, what is made up, and what is refused."""

from __future__ import annotations

import subprocess
import sys
import textwrap
from pathlib import Path

import pytest

BEFORE = """
import sys, warnings
warnings.simplefilter("error")
import numpy, torch
from torch import nn
from torch.nn import functional as F
from outpace.observe.torch import fake
fakes = fake.install()
"""


def run(body: str, tmp_path: Path) -> subprocess.CompletedProcess[str]:
    """A script after `fake.install`, in a process of its own."""
    script = tmp_path / "script.py"
    script.write_text(BEFORE + textwrap.dedent(body))
    return subprocess.run(
        [sys.executable, script], capture_output=True, text=True, cwd=tmp_path, timeout=200, check=False
    )


WORKS = {
    "values": """
        x = torch.randn(4, 3)
        assert x.sum().item() == 1.0 and float(x.mean()) == 1.0
        assert x.argmax().item() == 0 and x.argmax(1).tolist() == [0] * 4
        assert bool((x > 0).all()) and x.tolist() == [[1.0] * 3] * 4
        assert f"{x.sum():.2f}" == "1.00"
        assert torch.equal(x, x) and torch.allclose(x, x)
        print(x, x.sum(), [x])
        assert len(fakes.notes) == 1 and "made up" in fakes.notes[0]
    """,
    "values that are known": """
        assert torch.tensor(3).item() == 3
        assert torch.from_numpy(numpy.arange(4))[2].item() in (0, 2)
        assert torch.Size([2]) == torch.tensor([1.0, 2.0]).shape
        assert not [note for note in fakes.notes if "arrays" in note]
    """,
    "guards against NaN": """
        loss = F.mse_loss(nn.Linear(3, 3)(torch.randn(2, 3)), torch.zeros(2, 3))
        if torch.isnan(loss) or torch.isinf(loss).any() or not torch.isfinite(loss):
            raise SystemExit("not finite")
    """,
    "arrays": """
        x = torch.randn(4, 3)
        assert x.numpy().shape == (4, 3) and numpy.asarray(x).dtype == numpy.float32
        assert x.argmax(1).cpu().numpy().sum() == 0
        assert any("zeros" in note for note in fakes.notes)
    """,
    "data loaders": """
        from torch.utils.data import DataLoader, TensorDataset
        class Squares(torch.utils.data.Dataset):
            def __len__(self):
                return 10
            def __getitem__(self, index):
                return {"x": numpy.full((3, index % 2 + 1), index), "n": index}
        data = TensorDataset(torch.from_numpy(numpy.ones((50, 3), dtype="float32")) / 2, torch.arange(50))
        loader = DataLoader(data, 16, shuffle=True, num_workers=4, pin_memory=True, prefetch_factor=2,
                            persistent_workers=True)
        assert loader.num_workers == 0
        assert [len(x) for x, _ in loader] == [16, 16, 16, 2]
        batch = next(iter(DataLoader(Squares(), 1)))
        assert batch["x"].shape == (1, 3, 1) and batch["n"].item() == 0
    """,
    "moving and casting modules": """
        model = nn.Sequential(nn.Linear(3, 4), nn.BatchNorm1d(4)).to("cpu")
        model[0].weight.grad = torch.ones(4, 3)
        weight = model[0].weight
        optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
        model.double()
        assert model[0].weight is weight and weight.dtype == weight.grad.dtype == torch.float64
        assert model(torch.randn(2, 3, dtype=torch.float64)).dtype == torch.float64
        model.load_state_dict(model.state_dict())
    """,
    "copies of modules": """
        import copy
        for _ in range(3):
            layer = nn.TransformerEncoderLayer(16, 2, 32, batch_first=True)
            model = nn.TransformerEncoder(layer, 2)
            copied = copy.deepcopy(model)
            assert all(isinstance(p, nn.Parameter) and p.requires_grad for p in copied.parameters())
            for module in (model, copied):
                optimizer = torch.optim.AdamW(module.parameters())
                module(torch.randn(2, 4, 16)).sum().backward()
                optimizer.step()
    """,
    "optimizers": """
        names = "Adam AdamW SGD RMSprop Adagrad Adamax NAdam RAdam Adadelta ASGD Rprop".split()
        ways = [("foreach", True), ("foreach", False)]
        for name, options in [(n, {k: v}) for n in names for k, v in ways] + [("AdamW", {"fused": True})]:
            model = nn.Linear(3, 3)
            optimizer = getattr(torch.optim, name)(model.parameters(), lr=0.1, **options)
            schedule = torch.optim.lr_scheduler.CosineAnnealingLR(optimizer, 10)
            for _ in range(3):
                optimizer.zero_grad()
                model(torch.randn(2, 3)).sum().backward()
                nn.utils.clip_grad_norm_(model.parameters(), 1.0)
                optimizer.step()
                schedule.step()
    """,
    "autocast, loss scaling, compile": """
        model = torch.compile(nn.Linear(3, 3))
        optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
        scaler = torch.amp.GradScaler("cpu")
        for _ in range(2):
            with torch.autocast("cpu", torch.bfloat16):
                loss = model(torch.randn(2, 3)).sum()
            assert loss.dtype == torch.bfloat16 or loss.dtype == torch.float32
            scaler.scale(loss).backward()
            scaler.step(optimizer)
            scaler.update()
    """,
    "recurrent": """
        for kind in (nn.RNN, nn.LSTM, nn.GRU):
            kind(8, 16, 2, bidirectional=True)(torch.randn(5, 4, 8))[0].sum().backward()
    """,
    "nothing is saved over a checkpoint": """
        open("model.pt", "w").write("precious")
        torch.save(nn.Linear(3, 3).state_dict(), "model.pt")
        assert open("model.pt").read() == "precious"
        assert "nothing was saved" in fakes.notes
    """,
    "real weights": """
        with torch._subclasses.fake_tensor.unset_fake_temporarily():
            model = nn.Linear(3, 3)
        optimizer = torch.optim.AdamW(model.parameters())
        model(torch.randn(2, 3)).sum().backward()
        optimizer.step()
    """,
    "random generators": """
        generator = torch.Generator().manual_seed(3)
        assert torch.randperm(10, generator=generator).shape == (10,)
        assert torch.randint(0, 5, (3,), generator=generator).shape == (3,)
        index = torch.randperm(10)[:4]
        assert torch.randn(10, 2)[index].shape == (4, 2)
    """,
}


@pytest.mark.parametrize("what", WORKS)
def test_works(what: str, tmp_path: Path) -> None:
    done = run(WORKS[what], tmp_path)
    assert done.returncode == 0, done.stderr


REFUSED = """
    randn = torch.randn(3)
    for what, act in {
        "aten.nonzero": lambda: randn.nonzero(),
        "aten.nonzero ": lambda: randn[randn > 0],
        "aten.nonzero  ": lambda: torch.where(randn > 0),
        "aten._unique2": lambda: randn.unique(),
        "aten.masked_select": lambda: torch.masked_select(randn, randn > 0),
        "aten.repeat_interleave": lambda: torch.repeat_interleave(randn[:2], torch.tensor([1, 2])),
    }.items():
        try:
            try:
                act()
            except Exception:
                raise SystemExit("a script would swallow it")
        except fake.CannotFake as error:
            assert error.what == what.strip() and error.what in str(error), error
        else:
            raise SystemExit(what + " was not refused")
"""


def test_shapes_that_depend_on_values_are_refused(tmp_path: Path) -> None:
    done = run(REFUSED, tmp_path)
    assert done.returncode == 0, done.stderr
