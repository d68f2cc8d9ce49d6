"""Who is to blame when a proof fails."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import pytest

from outpace.errors import OutpaceError
from outpace.proof import Training
from outpace.verbs import proving
from outpace.verbs.proving import Prover
from tests.test_proof import training


class Runs:
    """Trainings of which *bad* ones spoil the loss."""

    def __init__(self, *bad: str, fails: tuple[str, ...] = ()) -> None:
        self.bad = bad
        self.fails = fails
        self.made: list[tuple[tuple[str, ...], int]] = []

    def stretch(self, names: Iterable[str], *, seed: int, steps: int | None = None) -> Training:  # noqa: ARG002
        names = tuple(names)
        self.made.append((names, seed))
        if set(names) & set(self.fails):
            raise OutpaceError("it broke")
        harm = 5.0 if set(names) & set(self.bad) else 0.0
        return training({}, [3.0 + harm, 2.0 + seed / 10 + harm, 1.0 + harm], seed=seed)


def prover(runs: Any, seeds: int = 3) -> Prover:
    return Prover(runs, training({}, [3.0, 2.0, 1.0]), lambda _what: None, seeds)


def test_trainings_are_made_in_turns_and_once() -> None:
    runs = Runs()
    one = prover(runs)
    found = one.judge(["bf16"])
    assert found is not None
    assert found.held
    assert runs.made == [(("bf16",), 0), ((), 1), (("bf16",), 1), (("bf16",), 2), ((), 2)]
    one.judge(["compile"])
    assert [names for names, _ in runs.made[5:]] == [("compile",)] * 3


def test_the_guilty_one_is_found_by_leaving_it_out() -> None:
    one = prover(Runs("compile"))
    failed = one.judge(["bf16", "compile"])
    assert failed is not None
    assert not failed.held
    assert "may be worse by" in proving.reason(failed)
    guilty = one.guilty(["bf16", "compile"])
    assert guilty is not None
    assert guilty[0] == "compile"
    assert guilty[1].held


def test_two_that_are_guilty_or_a_single_one_leave_nobody_to_name() -> None:
    assert prover(Runs("bf16", "compile")).guilty(["bf16", "compile"]) is None
    assert prover(Runs("bf16")).guilty(["bf16"]) is None


def test_a_training_that_fails_proves_nothing_and_is_told() -> None:
    one = prover(Runs(fails=("bf16",)))
    assert one.judge(["bf16"]) is None
    assert one.failures == ["with bf16: it broke"]
    assert proving.reason(None) == "a training of the proof failed"


@pytest.mark.parametrize("bad", [(), ("indexed-batches",)])
def test_first_losses_must_be_the_same(bad: tuple[str, ...]) -> None:
    assert prover(Runs(*bad)).reproduces("indexed-batches") is not bool(bad)
