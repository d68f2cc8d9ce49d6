"""Runs of a script for the search and the proof, each in a fresh process whose output is kept back."""

from __future__ import annotations

import re
import time
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from typing import Any

from outpace import measured, protocol
from outpace.collect import Collector
from outpace.errors import OutpaceError
from outpace.proof import Training
from outpace.records import Run, Trial
from outpace.verbs import running
from outpace.verbs.metering import Metering
from outpace.verbs.settings import Setting

#: A candidate that brings no step to its end for so long hangs; compiling may take a minute.
PATIENCE_SECONDS = 120.0
#: Characters of the script's own output that are kept, to show why it failed.
TAIL = 4000
OUT_OF_MEMORY = (
    r"out of memory|OutOfMemory|MemoryError|can't allocate memory|not enough memory|memory ran out"
)


class Hung(Exception):
    """The worker has brought no step to its end for too long."""


@dataclass
class Ear:
    """A view that shows nothing of the script, keeps the end of what it writes, and notices silence."""

    patience: float
    on_event: Callable[[protocol.AnyEvent], object] = lambda _event: None
    takes_output: bool = True
    tail: str = ""
    turn: protocol.Turn | None = None
    trials: list[Trial] = field(default_factory=list)
    over: bool = False
    _heard_at: float = field(default_factory=time.monotonic)
    _steps: int = 0

    def update(self, collector: Collector) -> None:
        """Called about ten times a second."""
        if len(collector.ends) != self._steps or self.turn is None:
            self._steps, self._heard_at = len(collector.ends), time.monotonic()
        elif time.monotonic() - self._heard_at > self.patience and collector.ended is None and not self.over:
            raise Hung

    def output(self, chunk: bytes) -> None:
        """What the script wrote."""
        self.tail = (self.tail + chunk.decode(errors="replace"))[-TAIL:]

    def take(self, event: protocol.AnyEvent) -> None:
        """An event of the worker."""
        match event:
            case protocol.Turn():
                self.turn = event
            case protocol.Tried():
                self.trials.append(event.trial)
            case protocol.Phase(name="over"):
                self.over = True
        self.on_event(event)


@dataclass(frozen=True)
class Outcome:
    """What a worker of the search came to."""

    run: Run | None
    """``None``: it hung and was killed."""
    tried: list[Trial]
    failure: Trial | None
    """What it died of, if that was a candidate."""
    over: bool
    """It found nothing more to try, or its time was up."""

    @property
    def interrupted(self) -> bool:
        """The user asked for the end."""
        return self.run is not None and self.run.state == "interrupted"


@dataclass(frozen=True)
class Runner:
    """Runs one setting again and again.

    Args:
        setting: target, arguments, device.
        watch: takes each event, to show it.
        patience: seconds.
    """

    setting: Setting
    watch: Callable[[protocol.AnyEvent], None] = lambda _event: None
    patience: float = PATIENCE_SECONDS

    def stretch(
        self, speedups: Iterable[str], *, seed: int, steps: int | None = None, seconds: float | None = None
    ) -> Training:
        """Train with *speedups* for so long, or to the end of the script.

        Raises:
            OutpaceError: the script failed.
            KeyboardInterrupt: the user asked for the end.
        """
        with Metering() as metering:
            run, collector, ear = self._run(
                speedups,
                seed,
                hear=metering.take,
                stretch=protocol.Stretch(steps=steps, seconds=seconds),
                seeds_shifted=True,
            )
            energy = _energy(metering, collector) if collector is not None and collector.ends else {}
        if run is None:
            raise OutpaceError(f"{self.setting.target} hung")
        if run.state == "interrupted":
            raise KeyboardInterrupt
        if run.state not in ("done", "stopped"):
            raise OutpaceError(f"{self.setting.target}: {run.error}", run.hint or _last_lines(ear.tail))
        return Training(run, energy.get("joules_per_sample"), energy.get("energy_source"))

    def race(self, race: protocol.Race) -> Outcome:
        """Let candidates race in one worker; whoever crashes or hangs is in the outcome."""
        run, _, ear = self._run([], 0, race=race)
        failure = None
        failed = run is None or run.state in ("failed", "killed")
        if failed and ear.turn is not None and ear.turn.trying and not ear.over:
            failure = _failure(ear.turn, run, ear)
        return Outcome(run, ear.trials, failure, ear.over)

    def _run(
        self,
        speedups: Iterable[str],
        seed: int,
        *,
        hear: Callable[[protocol.AnyEvent], None] = lambda _event: None,
        **asked: Any,
    ) -> tuple[Run | None, Collector | None, Ear]:
        def hear_both(event: protocol.AnyEvent) -> None:
            hear(event)
            self.watch(event)

        ear = Ear(self.patience, hear_both)
        blank = running.blank_run(
            self.setting.target, self.setting.args, device=self.setting.device, seed=seed, speedups=speedups
        )
        try:
            run, collector = running.run(blank, view=ear, on_event=ear.take, **asked)
        except Hung:
            return None, None, ear
        return run, collector, ear


def _energy(metering: Metering, collector: Collector) -> dict[str, Any]:
    """Per sample, from the first step to the last."""
    start, end = collector.began_at or collector.ends[0], collector.ends[-1]
    known = [samples for samples in collector.samples if samples is not None]
    samples = sum(known) if len(known) == len(collector.samples) else None
    return metering.between(collector, measured.Span(start, end, settled=True), samples)


def _failure(turn: protocol.Turn, run: Run | None, ear: Ear) -> Trial:
    base = [name for name in turn.on if name not in turn.trying]
    reason: str | None
    if run is None:
        verdict, reason = "hung", f"no step came to its end for {ear.patience:.0f} s"
    elif re.search(OUT_OF_MEMORY, f"{run.error} {ear.tail}"):
        verdict, reason = "out of memory", run.error
    else:
        verdict, reason = "crashed", run.error
    return Trial(names=turn.trying, base=base, verdict=verdict, reason=reason)


def _last_lines(tail: str) -> str | None:
    lines = [line.rstrip() for line in tail.splitlines() if line.strip()]
    return "it wrote: " + " | ".join(lines[-3:]) if lines else None
