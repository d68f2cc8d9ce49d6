"""What all tests share: a data folder of their own, and example scripts run through outpace."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from outpace.records import Measurement, Run, read

EXAMPLES = Path(__file__).parent / "examples"


@pytest.fixture(autouse=True)
def _own_folders(
    tmp_path: Path, tmp_path_factory: pytest.TempPathFactory, monkeypatch: pytest.MonkeyPatch
) -> None:
    data = tmp_path / "data"
    monkeypatch.setenv("OUTPACE_DATA_DIR", str(data))
    shared = tmp_path_factory.getbasetemp().parent / "ceilings"  # measured once, not for each test
    shared.mkdir(exist_ok=True)
    data.mkdir()
    (data / "ceilings").symlink_to(shared)
    monkeypatch.setenv("TF_CPP_MIN_LOG_LEVEL", "3")
    monkeypatch.setenv("NO_COLOR", "1")
    monkeypatch.setenv("OMP_NUM_THREADS", "1")  # tiny models; several threads on a busy machine only wait


Cli = Callable[..., "subprocess.CompletedProcess[str]"]


@pytest.fixture
def cli(tmp_path: Path) -> Cli:
    """Runs the command line in a process of its own, in an empty folder."""

    def run(*args: str | Path, **env: str) -> subprocess.CompletedProcess[str]:
        return subprocess.run(
            [sys.executable, "-m", "outpace", *map(str, args)],
            capture_output=True,
            text=True,
            cwd=tmp_path,
            env=os.environ | env,
            timeout=280,
            check=False,
        )

    return run


@pytest.fixture
def observed(cli: Cli, tmp_path: Path) -> Callable[..., tuple[Run, subprocess.CompletedProcess[str]]]:
    """Trains a script (a file of ``examples/`` or source text) and returns its record and what it printed."""

    def train(
        script: str, *args: str, options: tuple[str, ...] = (), **env: str
    ) -> tuple[Run, subprocess.CompletedProcess[str]]:
        path = EXAMPLES / script
        if "\n" in script:
            path = tmp_path / "script.py"
            path.write_text(script)
        record = tmp_path / "record.json"
        done = cli("train", *options, "--save", record, path, *args, **env)
        return read(record, Run), done

    return train


@pytest.fixture
def measured(cli: Cli, tmp_path: Path) -> Callable[..., Measurement]:
    """Measures a script (a file of ``examples/`` or source text) on the command line."""

    def measure(script: str, *args: str, options: tuple[str, ...] = (), **env: str) -> Measurement:
        path = EXAMPLES / script
        if "\n" in script:
            path = tmp_path / "script.py"
            path.write_text(script)
        record = tmp_path / "measurement.json"
        done = cli("measure", *options, "--save", record, path, *args, **env)
        assert done.returncode == 0, done.stderr
        return read(record, Measurement)

    return measure
