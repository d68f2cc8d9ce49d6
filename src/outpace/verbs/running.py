"""Runs a script, observed, from spawn to end: what the verbs have in common."""

from __future__ import annotations

import hashlib
import signal
from collections.abc import Callable, Iterable
from datetime import datetime, timezone
from pathlib import Path
from typing import Any, Protocol

from outpace import launch, protocol, targets
from outpace.collect import Collector, blank
from outpace.errors import OutpaceError
from outpace.records import Run
from outpace.speedups import chosen


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


def blank_run(
    target: str, args: list[str], *, device: str, seed: int | None, speedups: Iterable[str] = ()
) -> Run:
    """The record of a run of *target* that starts now.

    Raises:
        UsageError: no such target, or no such speed-up.
    """
    script = targets.find(target)
    began = datetime.now(timezone.utc)
    return blank(
        target=target,
        script=str(script),
        args=args,
        started_at=began.isoformat(timespec="milliseconds").replace("+00:00", "Z"),
        script_sha256=_sha256(script),
        device_asked=device,
        seed=seed,
        speedups_asked=chosen(speedups),
    )


def run(
    blank_: Run,
    *,
    view: View,
    stdout_to_stderr: bool = False,
    on_event: Callable[[protocol.AnyEvent], None] | None = None,
    **asked: Any,
) -> tuple[Run, Collector]:
    """Run the script of *blank_* in a fresh process; its record, and all that was seen.

    Args:
        view: shows progress while the script runs.
        on_event: takes each event too.
        asked: further fields of `protocol.Job`: ``plan``, ``race`` or ``stretch`` say when to stop.

    A script that fails raises nothing here: the record says so.
    """
    began = datetime.now(timezone.utc)
    collector = Collector(blank_)

    def take(event: protocol.AnyEvent) -> None:
        collector.take(event)
        if on_event is not None:
            on_event(event)

    exit_ = launch.run(
        Path(blank_.script),
        blank_.args,
        device=blank_.device_asked,
        seed=blank_.seed,
        speedups=blank_.speedups_asked,
        on_event=take,
        on_output=view.output if view.takes_output else None,
        on_tick=lambda: view.update(collector),
        stdout_to_stderr=stdout_to_stderr,
        **asked,
    )
    collector.spawned_at = exit_.spawned_at
    seconds = (datetime.now(timezone.utc) - began).total_seconds()
    asked_for_help = not {"-h", "--help"}.isdisjoint(blank_.args)
    name = Path(blank_.target).name
    end = how_it_ended(collector, exit_, seconds, name, may_take_no_step=asked_for_help)
    return collector.record(**end), collector


def _sha256(script: Path) -> str | None:
    if not script.is_file():
        return None
    try:
        return hashlib.sha256(script.read_bytes()).hexdigest()
    except OSError as error:
        raise OutpaceError(f"could not read {script}: {error.strerror or error}") from error


def how_it_ended(
    collector: Collector, exit_: launch.Exit, seconds: float, script: str, *, may_take_no_step: bool = False
) -> dict[str, Any]:
    """The fields of the record that say how the run ended, where the parent knows more than the worker."""
    ended = collector.ended
    if ended is None:
        if exit_.asked:
            return {"state": "interrupted", "exit_code": 130, "seconds": seconds}
        if any(phase.name == "over" for phase in collector.phases):  # stopped, and killed for not ending
            return {"state": "stopped", "exit_code": 0, "seconds": seconds}
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
