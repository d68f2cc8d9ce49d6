"""What every speed-up must be, and what each does to a small training."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from outpace import speedups
from outpace.errors import UsageError
from outpace.records import Run
from tests.speedup_scripts import ACCUMULATION, COMPILED, GAN, SWITCHED, TOY, own_precision

Observed = Callable[..., tuple[Run, "subprocess.CompletedProcess[str]"]]
NAMES = speedups.names()

#: How it shows inside the script (what TOY prints), where the machine can do it.
SHOWS = {
    "indexed-batches": ("fetcher", "_Fetcher"),
    "one-thread": ("threads", "1"),
    "bf16": ("activations", "torch.bfloat16"),
    "channels-last": ("weights_channels_last", "True"),
    "fused-optimizer": ("fused", "True"),
    "flush-denormals": ("denormal", "0.0"),
    "compile": ("compiled", "True"),
}


def printed(done: subprocess.CompletedProcess[str]) -> dict[str, str]:
    return dict(line.split("=", 1) for line in done.stdout.splitlines() if "=" in line)


@pytest.mark.parametrize("name", NAMES)
def test_what_a_speedup_says_of_itself(name: str) -> None:
    module = speedups.load(name)
    assert module.SLOT in speedups.SLOTS
    assert module.EFFECT in speedups.EFFECTS
    assert module.__doc__
    assert module.LINES
    compile(module.LINES, name, "exec")


def test_every_speedup_is_documented() -> None:
    text = (Path(__file__).parents[2] / "docs" / "speedups.md").read_text()
    for name in NAMES:
        module = speedups.load(name)
        assert f"| `{name}` | {module.SLOT} | {module.EFFECT} |" in text


def test_names_are_put_in_the_order_of_their_slots() -> None:
    assert speedups.chosen("compile, bf16,indexed-batches") == ["indexed-batches", "bf16", "compile"]
    assert speedups.chosen([]) == []
    with pytest.raises(UsageError, match="unknown speed-up 'bf17'"):
        speedups.chosen("bf17")
    with pytest.raises(UsageError, match="unknown speed-up ''"):
        speedups.chosen("")


@pytest.fixture(scope="module")
def plain(tmp_path_factory: pytest.TempPathFactory) -> dict[str, str]:
    script = tmp_path_factory.mktemp("plain") / "toy.py"
    script.write_text(TOY)
    env = os.environ | {"OMP_NUM_THREADS": "2"}
    done = subprocess.run([sys.executable, script], capture_output=True, text=True, check=True, env=env)
    return printed(done)


@pytest.mark.slow
@pytest.mark.parametrize("name", NAMES)
def test_a_speedup_acts_and_the_training_stays_the_same(
    name: str, observed: Observed, plain: dict[str, str]
) -> None:
    run, done = observed(TOY, options=("--with", name), OMP_NUM_THREADS="2")
    assert done.returncode == 0, done.stderr
    inside = printed(done)
    if name not in SHOWS:  # needs a card that is not here
        assert run.speedups == {}
        assert any(note.startswith(f"{name} is not applied: ") for note in run.notes)
        assert inside["losses"] == plain["losses"]
        return
    label, value = SHOWS[name]
    assert inside[label] == value
    assert plain[label] != value
    assert list(run.speedups) == [name]
    assert run.notes == []
    before = [float(loss) for loss in plain["losses"].split()]
    after = [float(loss) for loss in inside["losses"].split()]
    if speedups.load(name).EFFECT == "same":
        assert after == before
    else:
        assert after == pytest.approx(before, rel=0.03 if name == "bf16" else 1e-4)
    assert inside["evaluation"] == "torch.float32"
    assert inside["output"] == "torch.float32"


@pytest.mark.slow
@pytest.mark.parametrize("script", [GAN, ACCUMULATION], ids=["two models", "accumulation"])
def test_several_together_train_as_the_script_does(observed: Observed, script: str) -> None:
    names = "indexed-batches,one-thread,bf16,channels-last,fused-optimizer"
    plain, alone = observed(script, OMP_NUM_THREADS="2")
    run, done = observed(script, options=("--with", names), OMP_NUM_THREADS="2")
    assert done.returncode == 0, done.stderr
    assert set(run.speedups) == set(names.split(","))
    assert (run.steps, run.samples) == (plain.steps, plain.samples)
    assert numbers(done) == pytest.approx(numbers(alone), rel=0.05, abs=0.02)


def numbers(done: subprocess.CompletedProcess[str]) -> list[float]:
    return [float(value) for value in printed(done)["losses"].split()]


@pytest.mark.slow
def test_a_script_under_autocast_keeps_its_own_precision(observed: Observed) -> None:
    script = own_precision("torch.float16")
    plain, alone = observed(script)
    run, done = observed(script, options=("--with", "bf16"))
    assert printed(done)["activations"] == "torch.float16"
    assert "bf16 is not applied: the script chooses its precision itself (torch.autocast)" in run.notes
    assert numbers(done) == numbers(alone)
    assert run.skipped_steps == plain.skipped_steps


@pytest.mark.slow
def test_a_model_that_the_script_compiles_is_compiled_once(observed: Observed) -> None:
    run, done = observed(COMPILED, options=("--with", "bf16,compile"))
    assert done.returncode == 0, done.stderr
    assert "compile is not applied: the script compiles its model itself" in run.notes
    assert list(run.speedups) == ["bf16"]
    assert printed(done)["output"] == "torch.float32"


@pytest.mark.slow
def test_switched_off_again_it_leaves_nothing_behind() -> None:
    env = os.environ | {"OMP_NUM_THREADS": "2"}
    done = subprocess.run(
        [sys.executable, "-c", SWITCHED], capture_output=True, text=True, env=env, check=False
    )
    assert done.returncode == 0, done.stderr
    before, after = done.stdout.splitlines()
    assert before == after
