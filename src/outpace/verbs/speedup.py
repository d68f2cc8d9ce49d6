"""The verb: find what makes a training faster, and prove that the result is the same."""

from __future__ import annotations

import time
from collections.abc import Sequence
from dataclasses import dataclass, field
from datetime import datetime, timezone
from typing import Protocol

from outpace import __version__, protocol, search, speedups
from outpace.errors import OutpaceError, UsageError
from outpace.proof import Training
from outpace.records import Proof, Recipe, Trial
from outpace.verbs import proving
from outpace.verbs.proving import Prover
from outpace.verbs.settings import Setting
from outpace.verbs.trials import PATIENCE_SECONDS, Runner

#: Seconds of one turn of a candidate, at least; for scripts that end too soon, less and less.
WINDOW_SECONDS = 0.2
SHORTEST_WINDOW_SECONDS = 0.01
NOTHING_ACTS = "nothing was tried: speed-ups act in PyTorch scripts only, so far"
INTERRUPTED = "interrupted: this is the best so far, and nothing is proven"


class View(Protocol):
    """Shows the search while it goes on."""

    def doing(self, what: str) -> None:
        """What happens from now on, in a few words."""

    def event(self, event: protocol.AnyEvent) -> None:
        """Something happened in a worker."""

    def tried(self, trial: Trial) -> None:
        """A trial is decided."""


class Silent:
    """Shows nothing."""

    def doing(self, what: str) -> None:
        """Nothing to do."""

    def event(self, event: protocol.AnyEvent) -> None:
        """Nothing to do."""

    def tried(self, trial: Trial) -> None:
        """Nothing to do."""


@dataclass(frozen=True)
class Limits:
    """How much effort, and what is allowed."""

    allow: str = "rounding"
    """The strongest effect on the mathematics."""
    seeds: int = 3
    budget: float = 300.0
    """Seconds for all."""
    planned_steps: int | None = None
    proof_steps: int | None = None
    names: tuple[str, ...] = ()
    """What to try; nothing: all that is allowed."""
    patience: float = PATIENCE_SECONDS

    def __post_init__(self) -> None:
        if self.allow not in speedups.EFFECTS:
            raise UsageError(f"unknown effect {self.allow!r}", f"one of {', '.join(speedups.EFFECTS)}")
        unknown = set(self.names) - set(speedups.names())
        if unknown:
            speedups.chosen(unknown)
        if self.seeds < 2:
            raise UsageError(f"--seeds {self.seeds}: one seed shows no spread", "--seeds 3, or more")
        if not self.budget > 0:
            raise UsageError(f"--budget {self.budget:g}: a time above zero is needed")
        for option, value in (("planned", self.planned_steps), ("proof", self.proof_steps)):
            if value is not None and value < 1:
                raise UsageError(f"--{option}-steps {value}: at least one step is needed")

    @property
    def training_seconds(self) -> float:
        """For one training of the proof, where the script would go on for longer."""
        return self.budget / (2 * self.seeds + 4)


def speedup(
    target: str,
    args: list[str] | None = None,
    *,
    device: str = "auto",
    limits: Limits = Limits(),
    view: View = Silent(),  # noqa: B008 - it has no state
) -> Recipe:
    """Try what is known to make trainings faster on *target*, keep what does, and prove the result.

    Args:
        target: a built-in name or the path of a training script.
        args: the script's own arguments.
        device: ``auto``, ``cpu``, ``cuda[:N]``, ``xpu[:N]`` or ``mps``.
        limits: what is allowed, and how long it may take.
        view: shows progress.

    Raises:
        UsageError: no such target, device or effect.
        OutpaceError: the script fails as it is.

    Interrupted by the user, it returns the best so far, without proof.
    """
    return _Session(Setting(target, args or [], device), limits, view).recipe()


@dataclass
class _Session:
    setting: Setting
    limits: Limits
    view: View
    trials: list[Trial] = field(default_factory=list)
    notes: list[str] = field(default_factory=list)
    proof: Proof | None = None
    first: Training | None = None
    """The script as it is."""

    def __post_init__(self) -> None:
        self._ends_at = time.monotonic() + self.limits.budget
        self.runner = Runner(self.setting, self._hear, self.limits.patience)
        allowed = speedups.EFFECTS[: speedups.EFFECTS.index(self.limits.allow) + 1]
        known = {name: speedups.load(name) for name in speedups.names()}
        asked = self.limits.names or known
        self.slots = {
            name: module.SLOT for name, module in known.items() if module.EFFECT in allowed and name in asked
        }

    def recipe(self) -> Recipe:
        try:
            self._train_as_it_is()
            self._search()
            self._prove()
        except KeyboardInterrupt:
            if self.first is None:
                raise
            self.notes.append(INTERRUPTED)
        return self._written()

    @property
    def kept(self) -> list[str]:
        return search.base_of(self.trials, self.slots)

    def _train_as_it_is(self) -> None:
        self.view.doing("training as it is")
        seconds = None if self.limits.proof_steps else self.limits.training_seconds
        self.first = self.runner.stretch([], seed=0, steps=self.limits.proof_steps, seconds=seconds)
        if not self.first.run.steps:
            raise OutpaceError(f"{self.setting.target}: no training step was seen")

    @property
    def _planned(self) -> int | None:
        assert self.first is not None
        return self.limits.planned_steps or (self.first.run.steps if self.first.run.state == "done" else None)

    def _search(self) -> None:
        """Worker after worker, until nothing is left to try; one that died is replaced."""
        window, failures = WINDOW_SECONDS, 0
        share = 0.5 * self.limits.budget  # the rest is for the proof
        ends_at = min(time.monotonic() + share, self._ends_at)
        while (left := ends_at - time.monotonic()) > 0:
            self.view.doing("searching")
            outcome = self.runner.race(
                protocol.Race(
                    slots=self.slots,
                    pairs=[list(pair) for pair in speedups.pairs()],
                    trials=self.trials,
                    seconds=left,
                    window_seconds=window,
                    planned_steps=self._planned,
                )
            )
            if outcome.failure is not None:
                self._take(outcome.failure)
            if outcome.interrupted:
                raise KeyboardInterrupt
            if outcome.over and not self.trials:
                self.notes.append(NOTHING_ACTS)
            if outcome.over and not (outcome.tried and outcome.tried[-1].verdict == "not finite"):
                return
            if outcome.tried or outcome.failure is not None:
                continue
            if outcome.run is not None and outcome.run.state == "done":
                window /= 4
                if window >= SHORTEST_WINDOW_SECONDS:
                    continue
                self.notes.append("the script ends too soon to race all candidates in it")
                return
            failures += 1
            if failures > 1:
                self.notes.append("the search ended early: the training failed where nothing new was tried")
                return
        self.notes.append("the budget was used up before all was tried; --budget gives more")

    def _hear(self, event: protocol.AnyEvent) -> None:
        if isinstance(event, protocol.Tried):
            self._take(event.trial)
        self.view.event(event)

    def _take(self, trial: Trial) -> None:
        self.trials.append(trial)
        self.view.tried(trial)

    def _prove(self) -> None:
        if not self.kept:
            return
        assert self.first is not None
        prover = Prover(self.runner, self.first, self.view.doing, self.limits.seeds)
        for name in self.kept:
            if speedups.load(name).EFFECT == "same" and not prover.reproduces(name):
                self._blame([name], "its first losses are not the script's")
        while kept := self.kept:
            self.proof = prover.judge(kept)
            if self.proof is not None and self.proof.held:
                break
            reason = proving.reason(self.proof)
            guilty = prover.guilty(kept)
            if guilty is None:
                self._blame(kept, reason)
                break
            self._blame([guilty[0]], reason)
        self.notes += prover.failures

    def _blame(self, names: Sequence[str], reason: str) -> None:
        self._take(Trial(names=list(names), base=self.kept, verdict="not the same", reason=reason))

    def _written(self) -> Recipe:
        assert self.first is not None
        first = self.first.run
        return Recipe(
            outpace=__version__,
            target=self.setting.target,
            script_sha256=first.script_sha256,
            args=self.setting.args,
            device=first.device or "unknown",
            device_name=first.device_name,
            versions=first.versions,
            made_at=datetime.now(timezone.utc).isoformat(timespec="seconds").replace("+00:00", "Z"),
            speedups=self.kept,
            samples_per_second=first.samples_per_second,
            trials=self.trials,
            proof=self.proof,
            notes=self.notes,
        )
