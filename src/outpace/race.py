"""Races speed-ups against each other in one training, in the worker: each gets turns of some steps.

The sets of speed-ups take their turns forward in one round and backward in the next, so that a machine that
grows slower or faster favours none. A turn begins with steps that do not count. Evaluations are left out; the
pace of a turn is its time per sample, so that a partial batch counts for what it is.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol

from outpace import protocol, search
from outpace.records import Trial
from outpace.search import Runner
from outpace.stopwatch import Stopwatch

#: Steps of a turn that do not count: the first of all, and each later one.
FIRST_STEPS = 3
LATER_STEPS = 2
#: A first turn goes on until two steps in a row took the same time, or so many have gone by.
SAME = 0.25
MOST_FIRST_STEPS = 12
FEWEST_STEPS = 3
#: A pause in more of the steps than this is a part of each step.
OFTEN = 0.5
#: The first steps of a training make caches and state; nothing is raced before.
STEPS_TO_START = 5
NOT_FINITE = "the loss is not finite"


class Switches(Protocol):
    """Switches speed-ups: a `Stage`."""

    def switch(self, names: Sequence[str]) -> None: ...
    def why_not(self, name: str) -> str | None: ...


class Ground(Protocol):
    """What the race runs on: a `Watch`."""

    stage: Switches | None
    stopping: bool
    latest_samples: int | None

    def now(self) -> float: ...
    def emit(self, event: protocol.Event) -> None: ...
    def synchronize(self) -> None: ...
    def loss_is_finite(self) -> bool: ...


class Race:
    """One race after the other, until the search is over or its time is up.

    Args:
        plan: the candidates, what is known, how much time there is.
        ground: the clock, the devices, the switches and the way to the parent.
    """

    def __init__(self, plan: protocol.Race, ground: Ground) -> None:
        self.plan = plan
        self.ground = ground
        self._trials = list(plan.trials)
        self._runners: list[Runner] = []
        self._order: list[Runner] = []
        """Of the turns that are left in this round; the first has its turn."""
        self._rounds = 0
        self._steps = 0
        """Steps since training began."""
        self._pauses = 0
        self._pause_seen = False
        self._began = 0.0
        self._poisoned = False
        """The base's own loss is not finite: nobody else is to blame for it."""
        self._forget_turn()

    def _forget_turn(self) -> None:
        self._warm: list[float] = []
        """Seconds of the steps that do not count."""
        self._warming = True
        self._watch = Stopwatch(self.ground.now, self.ground.synchronize)

    @property
    def over(self) -> bool:
        """Whether the script may be stopped."""
        return self.ground.stopping

    def begin(self) -> None:
        """Training starts."""
        self._began = self._since_step = self.ground.now()

    def pause(self) -> None:
        """Something other than training begins: what was timed so far counts, what comes now does not."""
        if self._pause_seen or self.over:
            return
        self._pause_seen = True
        self._pauses += 1
        if not self._often():
            self._watch.stop()

    def _often(self) -> bool:
        return self._pauses > STEPS_TO_START and self._pauses > OFTEN * self._steps

    def stepped(self, *, interrupted: bool = False) -> None:
        """One more step is over."""
        if self.over:
            return
        self._steps += 1
        apart = (interrupted or self._pause_seen) and not self._often()
        self._pause_seen = False
        if self._steps <= STEPS_TO_START:
            return
        if not self._runners:
            self._start()
        elif self._warming:
            self._step_to_warm_up(apart=apart)
        else:
            self._step_that_counts(apart=apart)

    def finish(self) -> None:
        """The script is over, perhaps in the middle of a race: what was seen may suffice."""
        if self._runners and not self.over and all(len(one.paces) > 2 for one in self._runners):
            self._end_race(last=True)

    def _start(self) -> None:
        """The next race, or the end of all."""
        changes = search.next_race(self.plan.slots, [tuple(pair) for pair in self.plan.pairs], self._trials)
        if self.ground.stage is None or not changes or self._late():
            self._end()
            return
        base = search.base_of(self._trials, self.plan.slots)
        self._runners = [
            Runner(None, base),
            *(Runner(change, change.on(base, self.plan.slots)) for change in changes),
        ]
        self._rounds = 0
        self._order = list(self._runners)
        self._take_turn()

    def _late(self) -> bool:
        return self.ground.now() - self._began >= self.plan.seconds

    def _end(self) -> None:
        if self.ground.stage is not None:
            self.ground.stage.switch(search.base_of(self._trials, self.plan.slots))
        self.ground.stopping = True
        self.ground.emit(protocol.Phase(at=self.ground.now(), name="over"))

    def _take_turn(self) -> None:
        """Switch to the first of the order."""
        assert self.ground.stage is not None
        runner = self._order[0]
        self.ground.emit(
            protocol.Turn(
                at=self.ground.now(),
                on=runner.names,
                trying=list(runner.change.names) if runner.change else [],
                racing=len(self._runners) - 1,
            )
        )
        self.ground.stage.switch(runner.names)
        self._forget_turn()
        self.ground.synchronize()
        self._since_step = self.ground.now()

    def _step_to_warm_up(self, *, apart: bool) -> None:
        runner = self._order[0]
        self.ground.synchronize()
        now = self.ground.now()
        seconds, self._since_step = now - self._since_step, now
        if apart:
            return
        self._warm.append(seconds)
        if runner.paces:
            enough = len(self._warm) >= LATER_STEPS
        else:
            steady = len(self._warm) >= FIRST_STEPS and _same(*self._warm[-2:])
            enough = steady or len(self._warm) >= MOST_FIRST_STEPS
        if not enough:
            return
        reason = self._why_not(runner)
        if reason is not None:
            self._fail("not applicable", reason)
        else:
            self._warming = False
            self._watch.start()

    def _why_not(self, runner: Runner) -> str | None:
        assert self.ground.stage is not None
        if runner.change is None or runner.change.drop or runner.paces:
            return None
        reasons = [self.ground.stage.why_not(name) for name in runner.change.names]
        return next((reason for reason in reasons if reason is not None), None)

    def _step_that_counts(self, *, apart: bool) -> None:
        if apart or not self._watch.running:
            self._watch.start()
            return
        self._watch.step(self.ground.latest_samples)
        seconds, steps = self._watch.seen()
        if seconds >= self.plan.window_seconds and steps >= FEWEST_STEPS:
            self._watch.stop()
            self._end_turn()

    def _end_turn(self) -> None:
        runner = self._order[0]
        if not self.ground.loss_is_finite() and not self._poisoned:
            if runner.change is not None:
                self._fail("not finite", NOT_FINITE, rest_is_lost=True)
                return
            self._poisoned = True
        step = self._watch.step_seconds
        if not runner.paces:
            runner.step_seconds = step
            runner.startup_seconds = sum(self._warm) - len(self._warm) * step
        runner.paces.append(self._watch.pace)
        self._next_turn()

    def _fail(self, verdict: str, reason: str, *, rest_is_lost: bool = False) -> None:
        """The one whose turn it is drops out.

        Args:
            rest_is_lost: it has spoilt the weights, and with them the training of the others.
        """
        runner = self._order[0]
        runner.failure = verdict, reason
        runner.verdict = verdict
        if rest_is_lost:
            self._tell(runner)
            self._runners = []
            self.ground.stopping = True
            self.ground.emit(protocol.Phase(at=self.ground.now(), name="over"))
        else:
            self._next_turn()

    def _next_turn(self) -> None:
        self._order = self._order[1:]
        if not self._order:
            self._end_round()
        if self._order:
            self._take_turn()

    def _end_round(self) -> None:
        self._rounds += 1
        base = self._runners[0]
        running = [one for one in self._runners[1:] if one.verdict is None]
        late = self._late()
        for runner in running:
            runner.verdict = search.decided(runner.ratios(base), last=late)
        if all(one.verdict for one in self._runners[1:]):
            self._end_race()
            return
        order = [base, *(one for one in running if one.verdict is None)]
        self._order = order[::-1] if self._rounds % 2 else order

    def _end_race(self, *, last: bool = False) -> None:
        base = self._runners[0]
        results = [
            search.Result(
                runner.change,
                tuple(runner.ratios(base)),
                runner.startup_seconds - base.startup_seconds,
                runner.failure,
            )
            for runner in self._runners[1:]
            if runner.change is not None
        ]
        for trial in search.verdicts(
            results,
            base.names,
            base_step_seconds=base.step_seconds,
            planned_steps=self.plan.planned_steps,
        ):
            self._report(trial)
        self._runners, self._order = [], []
        if not last:
            self._start()

    def _tell(self, runner: Runner) -> None:
        assert runner.change is not None
        base = self._runners[0]
        result = search.Result(runner.change, tuple(runner.ratios(base)), 0.0, runner.failure)
        self._report(search.verdicts([result], base.names)[0])

    def _report(self, trial: Trial) -> None:
        self._trials.append(trial)
        self.ground.emit(protocol.Tried(trial=trial))


def _same(one: float, two: float) -> bool:
    return abs(one - two) <= SAME * max(one, two)
