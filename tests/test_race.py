"""Races in a simulated training: what each step costs depends on what is switched on."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Sequence

from outpace import protocol
from outpace.race import Race, Switches
from outpace.records import Trial

SLOTS = {"good": "data", "bad": "threads", "same": "precision", "absent": "layout", "nan": "kernels"}
COST = {"good": 0.5, "bad": 3.0, "same": 1.0, "absent": 1.0, "nan": 0.9}


class Training:
    """A ground on which steps cost what is switched on makes of them."""

    def __init__(self, slots: dict[str, str], seconds: float = 1000.0, planned: int | None = None) -> None:
        self.stage: Switches | None = self
        self.stopping = False
        self.latest_samples: int | None = 8
        self.events: list[protocol.Event] = []
        self.on: list[str] = []
        self.time = 0.0
        self.switches: list[list[str]] = []
        plan = protocol.Race(slots=slots, seconds=seconds, planned_steps=planned)
        self.race = Race(plan, self)
        self.waited = 0
        noise = itertools.cycle([1.0, 1.002, 0.998, 1.001])
        self.cost: Callable[[], float] = lambda: next(noise) * 0.05

    def switch(self, names: Sequence[str]) -> None:
        self.on = list(names)
        self.switches.append(self.on)

    def why_not(self, name: str) -> str | None:
        return "it is not here" if name == "absent" else None

    def now(self) -> float:
        return self.time

    def emit(self, event: protocol.Event) -> None:
        self.events.append(event)

    def synchronize(self) -> None:
        self.waited += 1

    def loss_is_finite(self) -> bool:
        return "nan" not in self.on

    def run(self, steps: int, *, evaluate_every: int = 0) -> None:
        self.race.begin()
        for index in range(steps):
            if self.race.over:
                return
            if evaluate_every and index % evaluate_every == 0:
                self.race.pause()
                self.time += 60.0
            cost = self.cost()
            for name in self.on:
                cost *= COST[name]
            self.time += cost
            self.race.stepped(interrupted=bool(evaluate_every and index % evaluate_every == 0))

    @property
    def trials(self) -> list[Trial]:
        return [event.trial for event in self.events if isinstance(event, protocol.Tried)]

    def verdicts(self) -> dict[str, str]:
        return {trial.names[0]: trial.verdict for trial in self.trials if not trial.drop}


def test_each_gets_the_verdict_it_deserves() -> None:
    training = Training(SLOTS)
    training.run(20_000)
    assert training.verdicts() == {
        "good": "kept",
        "bad": "slower",
        "same": "no gain",
        "absent": "not applicable",
        "nan": "not finite",
    }
    assert training.race.over
    gain = training.trials[0].gain
    assert gain is not None
    assert 1.98 < gain.median < 2.02
    assert isinstance(training.events[-1], protocol.Phase)


def test_at_its_end_the_best_is_on() -> None:
    training = Training({name: SLOTS[name] for name in ("good", "bad")})
    training.run(20_000)
    assert training.on == ["good"]


def test_evaluations_do_not_count() -> None:
    training = Training({"good": "data"})
    training.run(20_000, evaluate_every=25)
    gain = training.trials[0].gain
    assert gain is not None
    assert 1.9 < gain.median < 2.1


def test_something_in_each_step_is_a_part_of_it() -> None:
    training = Training({"good": "data"})
    training.run(5_000, evaluate_every=1)
    assert training.verdicts() == {"good": "no gain"}  # a minute of each step is not its doing


def test_turns_go_forward_and_backward() -> None:
    training = Training({"same": "precision", "good": "precision"})
    training.run(20_000)
    turns = [event.trying for event in training.events if isinstance(event, protocol.Turn)]
    assert turns[:6] == [[], ["same"], ["good"], ["good"], ["same"], []]


def test_time_that_is_up_ends_it() -> None:
    training = Training(SLOTS, seconds=1.0)
    training.run(20_000)
    assert training.race.over
    assert training.time < 5.0


def test_a_script_that_ends_leaves_what_was_seen() -> None:
    training = Training({"good": "data"})
    training.run(62)
    assert not training.race.over
    training.race.finish()
    assert training.verdicts() in ({"good": "kept"}, {"good": "no gain"})


def test_a_script_that_ends_too_soon_leaves_nothing() -> None:
    training = Training({"good": "data"})
    training.run(15)
    training.race.finish()
    assert training.trials == []


def test_where_nothing_can_be_switched_it_ends_at_once() -> None:
    training = Training({"good": "data"})
    training.stage = None
    training.run(100)
    assert training.race.over
    assert training.trials == []


def test_a_loss_that_was_never_finite_blames_nobody() -> None:
    training = Training({"good": "data"})
    training.loss_is_finite = lambda: False  # type: ignore[method-assign]
    training.run(20_000)
    assert training.verdicts() == {"good": "kept"}
