"""The command line as a user meets it: words, exit codes, what goes where."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import msgspec
import pytest

from outpace import __version__, scripts
from outpace.records import Run
from outpace.runs import Summary

Cli = Callable[..., "subprocess.CompletedProcess[str]"]

STEPS = """
import outpace, sys
print("from the script")
for step in range(20):
    outpace.step(samples=4, loss=20 - step)
outpace.log(accuracy=0.75)
"""


@pytest.fixture
def script(tmp_path: Path) -> Path:
    path = tmp_path / "train.py"
    path.write_text(STEPS)
    return path


def test_help_names_every_command_and_the_built_in_scripts(cli: Cli) -> None:
    shown = cli("--help")
    assert shown.returncode == 0
    for command in ("train", "devices", "runs"):
        assert command in shown.stdout
    for name in scripts.names():
        assert name in cli("train", "--help").stdout


def test_version(cli: Cli) -> None:
    assert cli("--version").stdout == f"outpace {__version__}\n"


def test_a_run_ends_with_its_result_and_its_record(cli: Cli, script: Path) -> None:
    done = cli("train", script)
    assert done.returncode == 0, done.stderr
    assert "from the script" in done.stdout
    assert "  steps     20, 80 samples" in done.stdout
    assert "  loss      20.0 → 1.00" in done.stdout
    assert "  accuracy  0.7500" in done.stdout
    record = Path(done.stdout.rpartition("record: ")[2].strip())
    assert json.loads(record.read_bytes())["steps"] == 20
    listed = json.loads(cli("runs", "--json").stdout)
    assert [msgspec.convert(run, Summary).steps for run in listed] == [20]
    assert "train.py" in cli("runs").stdout


def test_json_is_all_that_is_on_standard_output(cli: Cli, script: Path) -> None:
    done = cli("train", "--json", script)
    run = msgspec.json.decode(done.stdout, type=Run)
    assert run.steps == 20
    assert run.metrics == {"accuracy": 0.75}
    assert "from the script" in done.stderr


def test_json_of_a_failed_run_says_so(cli: Cli, script: Path) -> None:
    script.write_text(STEPS + "raise RuntimeError('no')\n")
    done = cli("train", "--json", script)
    assert done.returncode == 1
    run = msgspec.json.decode(done.stdout, type=Run)
    assert (run.state, run.steps) == ("failed", 20)


def test_quiet_leaves_the_script_alone(cli: Cli, script: Path) -> None:
    done = cli("train", "--quiet", script)
    assert done.stdout == "from the script\n"
    assert done.stderr == ""


def test_options_after_the_target_are_the_scripts(cli: Cli, script: Path) -> None:
    script.write_text(STEPS + "print(sys.argv[1:])\n")
    done = cli("train", "--seed", "3", script, "--seed", "4", "--quiet", "--", "x")
    assert "['--seed', '4', '--quiet', '--', 'x']" in done.stdout


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (["train", "ccn"], "did you mean cnn?"),
        (["train", "no/such.py"], "unknown target 'no/such.py'"),
        (["train", "--device", "gpu", "cnn"], "unknown device 'gpu'"),
        (["train", "--seed", "x", "cnn"], "--seed"),
        (["train", "--seed", "-1", "cnn"], "--seed"),
        (["train", "--seed", "99999999999999999999", "cnn"], "--seed"),
        (["train", ""], "an empty target"),
        (["train"], "target"),
        (["no-such-verb"], "no-such-verb"),
        (["train", "--no-such-option", "cnn"], "--no-such-option"),
    ],
)
def test_wrong_usage_is_said_with_code_2(arguments: list[str], said: str, cli: Cli) -> None:
    done = cli(*arguments)
    assert done.returncode == 2
    assert said.lower() in done.stderr.lower()
    assert "Traceback" not in done.stderr


def test_a_record_that_cannot_be_written_is_said(cli: Cli, script: Path) -> None:
    done = cli("train", "--save", "/dev/full/record.json", script)
    assert done.returncode == 1
    assert "from the script" not in done.stdout, "said before the training, not after"
    assert "error: could not write /dev/full/record.json" in done.stderr
    assert "Traceback" not in done.stderr


def test_a_full_standard_output_is_said(cli: Cli, script: Path) -> None:
    cli("train", script)
    for arguments in ("cards", "runs --json"):
        done = subprocess.run(
            f"{sys.executable} -m outpace {arguments} > /dev/full",
            shell=True,
            capture_output=True,
            text=True,
            env=os.environ.copy(),
            check=False,
        )
        assert done.returncode == 1
        assert done.stderr == "error: could not write the output: No space left on device\n"


def test_a_file_of_our_name_does_not_stand_in_for_us(script: Path) -> None:
    for name in ("outpace", "msgspec", "random"):
        (script.parent / f"{name}.py").write_text("raise RuntimeError('the wrong module')\n")
    elsewhere = script.parent / "elsewhere"
    elsewhere.mkdir()
    script = script.rename(elsewhere / "train.py")
    command = [str(Path(sys.executable).with_name("outpace")), "train", str(script)]
    done = subprocess.run(command, capture_output=True, text=True, cwd=elsewhere.parent, check=False)
    assert done.returncode == 0, done.stderr


def test_no_runs_yet(cli: Cli) -> None:
    done = cli("runs")
    assert done.returncode == 0
    assert done.stdout.startswith("no runs yet in ")
    assert json.loads(cli("runs", "--json").stdout) == []


def test_a_closed_pipe_is_no_accident(cli: Cli, script: Path, tmp_path: Path) -> None:
    cli("train", script)
    done = subprocess.run(
        f"{sys.executable} -m outpace runs --json | true",
        shell=True,
        capture_output=True,
        text=True,
        cwd=tmp_path,
        env=os.environ.copy(),
        check=False,
    )
    assert "Traceback" not in done.stderr


def test_devices(cli: Cli) -> None:
    done = cli("devices")
    assert done.returncode == 0
    assert "torch" in done.stdout
    assert "cpu" in done.stdout
    assert "Traceback" not in done.stdout + done.stderr
    found = json.loads(cli("devices", "--json").stdout)
    assert found["host"]["cores"] > 0
    assert {answer["framework"] for answer in found["frameworks"]} >= {"torch", "keras", "jax"}


def test_the_help_of_a_script_is_no_failed_training(cli: Cli) -> None:
    done = cli("train", "cnn", "--help")
    assert done.returncode == 0
    assert "--batch-size" in done.stdout
    assert done.stderr == ""


def test_on_a_terminal_the_script_sees_one_and_the_result_follows(script: Path, tmp_path: Path) -> None:
    import pty

    script.write_text(STEPS + "print('TERMINAL', sys.stdout.isatty())\n")
    ours, theirs = pty.openpty()
    process = subprocess.Popen(
        [sys.executable, "-m", "outpace", "train", str(script)], stdout=theirs, stderr=theirs, cwd=tmp_path
    )
    os.close(theirs)
    shown = b""
    while True:
        try:
            chunk = os.read(ours, 65536)
        except OSError:
            break
        if not chunk:
            break
        shown += chunk
    os.close(ours)
    assert process.wait() == 0
    assert b"TERMINAL True" in shown
    assert b"20, 80 samples" in shown
    assert shown.count(b"from the script") == 1


def test_speedup_says_that_nothing_could_be_switched(cli: Cli, script: Path, tmp_path: Path) -> None:
    save = tmp_path / "recipe.toml"
    done = cli("speedup", "--save", save, script)
    assert done.returncode == 0, done.stderr
    assert "Nothing that was tried makes this training faster" in done.stdout
    assert "note: nothing was tried: speed-ups act in PyTorch scripts only" in done.stdout
    assert "from the script" not in done.stdout
    assert "searching" in done.stderr
    used = cli("train", "--with", save, script)
    assert used.returncode == 0, used.stderr
    assert "warning" not in used.stderr
    script.write_text(STEPS + "print('changed')")
    assert "another state of it" in cli("train", "--with", save, script).stderr
    shown = cli("speedup", "--json", "--quiet", "--save", save, script)
    assert json.loads(shown.stdout)["record"] == "recipe"
    assert shown.stderr == ""


@pytest.mark.parametrize(
    ("options", "told"),
    [
        (["--save", "recipe.json"], "a recipe is a .toml file"),
        (["--try", "bf17"], "unknown speed-up 'bf17'"),
        (["--seeds", "1"], "one seed shows no spread"),
        (["--allow", "magic"], "unknown effect 'magic'"),
        (["--budget", "-5"], "a time above zero"),
    ],
)
def test_speedup_asked_for_what_cannot_be(cli: Cli, script: Path, options: list[str], told: str) -> None:
    done = cli("speedup", *options, script)
    assert done.returncode == 2
    assert told in done.stderr
    assert done.stdout == ""


def test_with_takes_no_file_that_is_no_recipe(cli: Cli, script: Path, tmp_path: Path) -> None:
    other = tmp_path / "other.toml"
    other.write_text("a = 1")
    for path in (other, tmp_path / "none.toml"):
        done = cli("train", "--with", path, script)
        assert done.returncode == 1
        assert "error: " in done.stderr
        assert "from the script" not in done.stdout
