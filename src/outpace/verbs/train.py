"""The verb: run a training script to its end, observed, and keep the record."""

from __future__ import annotations

import hashlib
import signal
import tempfile
from datetime import datetime, timezone
from pathlib import Path
from typing import Any, Protocol

from outpace import launch, protocol, runs, targets
from outpace.collect import Collector, blank
from outpace.errors import OutpaceError
from outpace.records import Run, check_writable


class View(Protocol):
    """Shows a run while it goes on."""

    takes_output: bool
    """Whether the script's output shall come through `output` (and the script sees a terminal)."""

    def update(self, collector: Collector) -> None:
        """Called about ten times a second."""

    def output(self, chunk: bytes) -> None:
        """What the script wrote."""


class Silent:
    """Shows nothing; the script writes where this process does."""

    takes_output = False

    def update(self, collector: Collector) -> None:
        """Nothing to do."""

    def output(self, chunk: bytes) -> None:
        """Nothing comes."""


def train(
    target: str,
    args: list[str] | None = None,
    *,
    device: str = "auto",
    seed: int | None = None,
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
        save: where to write the record; by default into the user's data folder.
        view: shows progress while the script runs.
        stdout_to_stderr: send the script's standard output to standard error.

    Raises:
        UsageError: no such target or device.
        OutpaceError: the record could not be written.

    A script that fails raises nothing here: the record says ``state="failed"`` and why.
    """
    script = targets.find(target)
    args = args or []
    began = datetime.now(timezone.utc)
    run = blank(
        target=target,
        script=str(script),
        args=args,
        started_at=began.isoformat(timespec="milliseconds").replace("+00:00", "Z"),
        script_sha256=_sha256(script),
        device_asked=device,
        seed=seed,
    )
    path = save or runs.default_path(run)
    check_writable(path)
    collector = Collector(run)
    exit_ = launch.run(
        script,
        args,
        device=device,
        seed=seed,
        on_event=collector.take,
        on_output=view.output if view.takes_output else None,
        on_tick=lambda: view.update(collector),
        stdout_to_stderr=stdout_to_stderr,
    )
    seconds = (datetime.now(timezone.utc) - began).total_seconds()
    asked_for_help = not {"-h", "--help"}.isdisjoint(args)
    end = how_it_ended(collector, exit_, seconds, Path(target).name, may_take_no_step=asked_for_help)
    run = collector.record(**end)
    return run, _save(run, path)


def _sha256(script: Path) -> str | None:
    if not script.is_file():
        return None
    try:
        return hashlib.sha256(script.read_bytes()).hexdigest()
    except OSError as error:
        raise OutpaceError(f"could not read {script}: {error.strerror or error}") from error


def _save(run: Run, path: Path) -> Path:
    """A disk that filled up meanwhile costs no training: the record then goes to the temporary folder."""
    try:
        return runs.save(run, path)
    except OutpaceError as error:
        rescued = runs.save(run, Path(tempfile.gettempdir()) / path.name)
        raise OutpaceError(error.what, f"the record of the run is kept as {rescued}") from error


def how_it_ended(
    collector: Collector, exit_: launch.Exit, seconds: float, script: str, *, may_take_no_step: bool = False
) -> dict[str, Any]:
    """The fields of the record that say how the run ended, where the parent knows more than the worker."""
    ended = collector.ended
    if ended is None:
        if exit_.asked:
            return {"state": "interrupted", "exit_code": 130, "seconds": seconds}
        if exit_.code == 0:
            return {"state": "done", "exit_code": 0, "seconds": seconds}
        return {"state": "killed", "exit_code": 1, "seconds": seconds, "error": _cause_of_death(exit_.code)}
    if ended.state == "done" and not collector.ends and not may_take_no_step:
        return {"state": "failed", "exit_code": 1, "error": no_step_seen(script, ended, collector.frameworks)}
    return {}


def no_step_seen(script: str, ended: protocol.Ended, frameworks: dict[str, str]) -> str:
    """Why no training step was seen, as far as that can be told."""
    what = f"no training step was seen in {script}"
    if not frameworks:
        return f"{what}: it imports none of torch, keras, tensorflow, jax"
    names = ", ".join(frameworks)
    reasons = {
        "children": "it works in processes of its own, and only the first one is observed",
        "traced": "its optimizer steps within a compiled function, where no step can be seen; "
        "add outpace.step(samples=…, loss=…) to the loop",
        "backward": f"gradients were computed ({names}), but no optimizer took a step",
        "forward": f"a model ran ({names}), but no gradient was computed",
    }
    for seen, reason in reasons.items():
        if seen in ended.seen:
            return f"{what}: {reason}"
    if "jax" in frameworks:
        return f"{what}: of a plain JAX loop, tell each step with outpace.step(samples=…, loss=…)"
    return f"{what}: it imports {names}, but no model was trained"


def _cause_of_death(code: int) -> str:
    if code == -signal.SIGKILL:
        return "the system killed the training, most likely because memory ran out"
    if code < 0:
        try:
            name = signal.Signals(-code).name
        except ValueError:
            name = f"signal {-code}"
        return f"the training died of {name}"
    return f"the training process ended with exit code {code} without a word"
