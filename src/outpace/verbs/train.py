"""The verb: run a training script to its end, observed, and keep the record."""

from __future__ import annotations

import tempfile
from collections.abc import Iterable
from pathlib import Path

from outpace import runs
from outpace.errors import OutpaceError
from outpace.records import Run, check_writable
from outpace.verbs import running
from outpace.verbs.running import Silent, View


def train(
    target: str,
    args: list[str] | None = None,
    *,
    device: str = "auto",
    seed: int | None = None,
    speedups: Iterable[str] = (),
    save: Path | None = None,
    view: View = Silent(),  # noqa: B008 - it has no state
    stdout_to_stderr: bool = False,
) -> tuple[Run, Path]:
    """Run *target* to its end in a fresh process; returns its record and where that is saved.

    Args:
        target: a built-in name or the path of a training script.
        args: the script's own arguments.
        device: ``auto``, ``cpu``, ``cuda[:N]``, ``xpu[:N]`` or ``mps``.
        seed: seeds Python, NumPy and the framework before the script starts; the script's own seeding wins.
        speedups: names of those that shall act, such as ``["bf16", "channels-last"]``.
        save: where to write the record; by default into the user's data folder.
        view: shows progress while the script runs.
        stdout_to_stderr: send the script's standard output to standard error.

    Raises:
        UsageError: no such target, device or speed-up.
        OutpaceError: the record could not be written.

    A script that fails raises nothing here: the record says ``state="failed"`` and why.
    """
    blank = running.blank_run(target, args or [], device=device, seed=seed, speedups=speedups)
    path = save or runs.default_path(blank)
    check_writable(path)
    run, _ = running.run(blank, view=view, stdout_to_stderr=stdout_to_stderr)
    return run, _save(run, path)


def _save(run: Run, path: Path) -> Path:
    """A disk that filled up meanwhile costs no training: the record then goes to the temporary folder."""
    try:
        return runs.save(run, path)
    except OutpaceError as error:
        rescued = runs.save(run, Path(tempfile.gettempdir()) / path.name)
        raise OutpaceError(error.what, f"the record of the run is kept as {rescued}") from error
