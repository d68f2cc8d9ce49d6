"""How a script can end, and what the worker makes of it."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path

import pytest

from outpace.records import Run, read

Observed = Callable[..., tuple[Run, "subprocess.CompletedProcess[str]"]]

TRAINS = """
import outpace, sys
for _ in range(3):
    outpace.step(samples=2, loss=1.0)
"""


def test_a_script_that_raises_shows_its_own_traceback_only(observed: Observed) -> None:
    run, done = observed(TRAINS + "def broken():\n    raise ValueError('a bad value')\nbroken()\n")
    assert done.returncode == 1
    assert run.state == "failed"
    assert run.steps == 3, "what was seen is kept"
    lines = done.stderr.splitlines()
    assert lines[0] == "Traceback (most recent call last):"
    assert "script.py" in lines[1]
    assert "runpy" not in done.stderr
    assert "outpace/worker" not in done.stderr
    assert lines[-1] == "error: script.py: ValueError: a bad value"


def test_an_error_that_cannot_be_printed(observed: Observed) -> None:
    run, done = observed(
        TRAINS + "class Odd(Exception):\n    def __str__(self): raise ValueError\nraise Odd('x')\n"
    )
    assert (run.state, run.steps) == ("failed", 3)
    assert done.stderr.splitlines()[-1] == "error: script.py: Odd"
    assert "outpace/worker" not in done.stderr


def test_a_syntax_error_is_the_scripts_own(observed: Observed) -> None:
    _, done = observed("print('x')\nfor\n")
    assert done.returncode == 1
    assert "SyntaxError" in done.stderr
    assert "runpy" not in done.stderr


@pytest.mark.parametrize(
    ("leaving", "code", "state"),
    [
        ("sys.exit()", 0, "done"),
        ("sys.exit(0)", 0, "done"),
        ("raise SystemExit", 0, "done"),
        ("sys.exit(3)", 1, "failed"),
        ("sys.exit('no data here')", 1, "failed"),
        ("import os; sys.stdout.flush(); os._exit(0)", 0, "done"),
        ("import os; os._exit(7)", 1, "failed"),
        ("import os, signal; os.kill(os.getpid(), signal.SIGSEGV)", 1, "killed"),
    ],
)
def test_ways_to_leave(leaving: str, code: int, state: str, observed: Observed) -> None:
    run, done = observed(f"{TRAINS}import time; time.sleep(0.25); outpace.step(samples=2)\n{leaving}\n")
    assert done.returncode == code, done.stderr
    assert run.state == state
    assert run.steps == 4
    assert "outpace/" not in done.stderr
    if "no data" in leaving:
        assert "error: script.py: no data here" in done.stderr


SUDDEN = "for _ in range(4): outpace.step(samples=2)\n"


@pytest.mark.parametrize(
    ("leaving", "note"),
    [
        ("import os; os._exit(0)", None),
        ("import os; os.execv(sys.executable, [sys.executable, '-c', 'pass'])", "replaced itself"),
        ("import os; os.execlp('true', 'true')", "replaced itself"),
    ],
)
def test_no_step_is_lost_by_a_sudden_end(leaving: str, note: str | None, observed: Observed) -> None:
    run, done = observed(f"{TRAINS}{SUDDEN}{leaving}\n")
    assert done.returncode == 0, done.stderr
    assert run.steps == 7
    assert (note in str(run.notes)) if note else not run.notes


def test_a_script_that_closes_what_it_did_not_open_is_still_heard(observed: Observed) -> None:
    run, _ = observed(f"{TRAINS}import os; os.closerange(3, 256)\n{SUDDEN}")
    assert run.steps == 7


def test_threads_left_running_are_waited_for(observed: Observed) -> None:
    run, _ = observed("""
import outpace, threading, time
def work():
    time.sleep(0.5)
    for _ in range(5):
        outpace.step(samples=2)
threading.Thread(target=work).start()
""")
    assert run.state == "done"
    assert run.steps == 5


def test_an_executor_that_nobody_closed_holds_nothing_up(observed: Observed) -> None:
    run, _ = observed("""
import outpace, time
from concurrent.futures import ThreadPoolExecutor
def work():
    time.sleep(0.5)
    for _ in range(5):
        outpace.step(samples=2)
ThreadPoolExecutor(2).submit(work)
""")
    assert run.state == "done"
    assert run.steps == 5


def test_killed_for_memory_is_said(observed: Observed) -> None:
    run, done = observed(
        f"{TRAINS}import time; time.sleep(0.25); outpace.step(samples=2)\n"
        "import os, signal; os.kill(os.getpid(), signal.SIGKILL)\n"
    )
    assert run.state == "killed"
    assert run.steps == 4
    assert "memory ran out" in done.stderr


def test_the_script_sees_what_python_would_show_it(observed: Observed, tmp_path: Path) -> None:
    (tmp_path / "sibling.py").write_text("VALUE = 42\n")
    _, done = observed(
        TRAINS
        + "import sibling, os\n"
        + "print(sys.argv[1:], __name__, os.path.basename(__file__), sibling.VALUE, sys.path[0])\n"
        + "print('JOB' , any(name.startswith('OUTPACE_JOB') for name in os.environ))\n"
        + "import pickle\nclass Own: pass\nprint(type(pickle.loads(pickle.dumps(Own()))).__name__)\n",
        "--epochs",
        "3",
        "--device",
        "x",
    )
    assert f"['--epochs', '3', '--device', 'x'] __main__ script.py 42 {tmp_path}" in done.stdout
    assert "JOB False" in done.stdout
    assert "Own" in done.stdout


@pytest.mark.parametrize(
    ("name", "hint"),
    [("torch", 'pip install "outpace[torch]"'), ("no_such_thing.sub", "pip install no_such_thing")],
)
def test_a_missing_library_names_its_package(name: str, hint: str, observed: Observed) -> None:
    block = f"import sys\nsys.modules[{name.split('.', maxsplit=1)[0]!r}] = None\n" if name == "torch" else ""
    _, done = observed(f"{block}import {name}\n")
    assert done.returncode == 1
    assert f"hint: {hint}" in done.stderr


def start(tmp_path: Path, script: str, *options: str) -> tuple[subprocess.Popen[str], Path]:
    path, record = tmp_path / "script.py", tmp_path / "record.json"
    path.write_text(script)
    process = subprocess.Popen(
        [sys.executable, "-m", "outpace", "train", *options, "--save", str(record), str(path)],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )
    return process, record


FOREVER = """
import outpace, time, os
print("PID", os.getpid(), flush=True)
while True:
    outpace.step(samples=2, loss=1.0)
    time.sleep(0.02)
"""


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM, signal.SIGHUP])
def test_interruption_keeps_the_record(number: signal.Signals, tmp_path: Path) -> None:
    process, record = start(tmp_path, FOREVER)
    assert process.stdout is not None
    process.stdout.readline()
    time.sleep(0.5)
    process.send_signal(number)
    _, stderr = process.communicate(timeout=20)
    assert process.returncode == 130
    run = read(record, Run)
    assert run.state == "interrupted"
    assert run.steps > 5
    assert "Traceback" not in stderr
    assert "error: interrupted" in stderr


def test_a_script_that_ignores_interruption_is_ended_by_asking_again(tmp_path: Path) -> None:
    stubborn = FOREVER.replace("while True:", "import signal\nsignal.signal(2, signal.SIG_IGN)\nwhile True:")
    stubborn = stubborn.replace("while", "signal.signal(15, signal.SIG_IGN)\nwhile")
    process, record = start(tmp_path, stubborn)
    assert process.stdout is not None
    process.stdout.readline()
    for _ in range(2):
        time.sleep(0.4)
        assert process.poll() is None
        process.send_signal(signal.SIGINT)
    process.communicate(timeout=20)
    assert process.returncode == 130
    assert read(record, Run).state == "interrupted"


@pytest.mark.parametrize("stubborn", [False, True])
def test_no_training_outlives_us(stubborn: bool, tmp_path: Path) -> None:
    swallowing = "while True:\n  try:\n    while True: time.sleep(0.02)\n  except: pass"
    process, _ = start(tmp_path, FOREVER.partition("while")[0] + swallowing if stubborn else FOREVER)
    assert process.stdout is not None
    worker = int(process.stdout.readline().split()[1])
    process.kill()
    process.communicate(timeout=20)
    deadline = time.monotonic() + 30
    while Path(f"/proc/{worker}").exists() and time.monotonic() < deadline:
        time.sleep(0.05)
    assert not Path(f"/proc/{worker}").exists()


def test_a_child_left_behind_does_not_hold_us(tmp_path: Path) -> None:
    left = "import os, time\nif os.fork() == 0:\n    time.sleep(40)\n    os._exit(0)\n"
    process, record = start(tmp_path, TRAINS + left)
    assert process.wait(timeout=30) == 0
    assert read(record, Run).state == "done"
    assert process.stdout is not None
    assert process.stderr is not None
    process.stdout.close()  # the child still holds the other end
    process.stderr.close()


def test_an_observer_that_fails_does_not_cost_the_training(observed: Observed) -> None:
    run, done = observed("""
import sys, types, outpace
fake = types.ModuleType("torch")  # a PyTorch that we do not know
sys.path.insert(0, __file__.rpartition("/")[0] + "/lib")
import os
os.makedirs(sys.path[0] + "/torch", exist_ok=True)
open(sys.path[0] + "/torch/__init__.py", "w").write("__version__ = '99.0'\\n")
import torch
for _ in range(3):
    outpace.step(samples=1)
""")
    assert done.returncode == 0, done.stderr
    assert run.steps == 3
    assert any("cannot be observed" in note for note in run.notes)


def test_seed_makes_runs_equal(observed: Observed) -> None:
    script = (
        TRAINS
        + "import random, numpy, torch\nprint('R', random.random(), numpy.random.rand(), torch.rand(1))\n"
    )

    def numbers(seed: str) -> list[str]:
        _, done = observed(script, options=("--seed", seed))
        return [line for line in done.stdout.splitlines() if line.startswith("R ")]

    assert numbers("7") == numbers("7") != numbers("8")


def test_environment_of_tests_is_not_a_worker() -> None:
    assert "OUTPACE_JOB" not in os.environ
