"""The trainings of a proof, each made once, and who is to blame when it fails."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from outpace import proof, speedups
from outpace.errors import OutpaceError
from outpace.proof import Training
from outpace.records import Proof
from outpace.verbs.trials import Runner

#: Losses of speed-ups that change no bit are compared over so many steps.
FIRST_STEPS = 8


class Prover:
    """Trains without and with speed-ups over several seeds, in turns.

    Args:
        runner: runs the script.
        first: the script as it is, with the first seed.
        doing: told what happens.
        seeds: trainings of each kind; twice as many where the first do not decide.
    """

    def __init__(self, runner: Runner, first: Training, doing: Callable[[str], None], seeds: int) -> None:
        self._runner = runner
        self._first = first
        self._doing = doing
        self._seeds = seeds
        self._made: dict[tuple[str, ...], list[Training]] = {(): [first]}
        self.whole = first.run.state == "done"
        """The trainings run to the end of the script."""
        self._steps = None if self.whole else first.run.steps
        self.failures: list[str] = []
        """What was said when a training failed."""

    def reproduces(self, name: str) -> bool:
        """Whether *name* leaves the first losses as they are."""
        self._doing(f"checking that {name} changes nothing")
        training = self._train([name], 0, min(FIRST_STEPS, self._first.run.steps))
        return training is not None and proof.reproduces(self._first.run.losses, training.run.losses)

    def judge(self, names: Sequence[str]) -> Proof | None:
        """Whether *names* are as good as the script; ``None``: a training failed."""
        found = None
        for seeds in (self._seeds, 2 * self._seeds):
            found = self._compared(names, seeds)
            if found is None or found.held or not found.scores or _far_off(found):
                break
        return found

    def guilty(self, names: Sequence[str]) -> tuple[str, Proof] | None:
        """Who makes the difference, and the proof of the others without it. The boldest are asked first."""
        if len(names) < 2:
            return None
        bold = sorted(names, key=lambda name: -speedups.EFFECTS.index(speedups.load(name).EFFECT))
        for name in bold:
            self._doing(f"the proof failed; without {name}")
            found = self.judge([other for other in names if other != name])
            if found is not None and found.held:
                return name, found
        return None

    def _compared(self, names: Sequence[str], seeds: int) -> Proof | None:
        sides: list[tuple[str, ...]] = [(), tuple(names)]
        for seed in range(seeds):
            for side in sides if seed % 2 else sides[::-1]:
                made = self._made.setdefault(side, [])
                if len(made) > seed:
                    continue
                what = f"with {' + '.join(side)}" if side else "as it is"
                self._doing(f"proof: training {what}, seed {seed + 1} of {seeds}")
                training = self._train(side, seed, self._steps)
                if training is None:
                    return None
                made.append(training)
        notes = [] if self.whole else [f"proven over the first {self._steps:,} steps of the training"]
        return proof.of(*(self._made[side][:seeds] for side in sides), whole=self.whole, notes=notes)

    def _train(self, names: Sequence[str], seed: int, steps: int | None) -> Training | None:
        """A training that may fail for its speed-ups."""
        try:
            return self._runner.stretch(names, seed=seed, steps=steps)
        except OutpaceError as error:
            self.failures.append(f"with {' + '.join(names) or 'nothing'}: {error.what}")
            return None


def _far_off(found: Proof) -> bool:
    """More seeds would not help."""
    return any(one.worse_by is None or one.worse_by > 3 * one.margin for one in found.scores if not one.held)


def reason(found: Proof | None) -> str:
    """Why a proof failed."""
    if found is None:
        return "a training of the proof failed"
    worst = [one for one in found.scores if not one.held]
    if not worst:
        return "nothing could be compared"
    one = worst[0]
    if one.bound is None:
        return f"{one.name} is not finite"
    return f"{one.name} may be worse by {one.bound:.3g}, and {one.margin:.3g} is allowed"
