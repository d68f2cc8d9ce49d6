"""Optimizer steps grouped into training steps."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from outpace.rounds import Part, Rounds, samples


def grouped(optimizers: list[int]) -> list[list[int]]:
    closed: list[list[Part]] = []
    rounds = Rounds(closed.append)
    for index, optimizer in enumerate(optimizers):
        rounds.stepped(optimizer, Part(at=float(index)))
    rounds.finish()
    return [[optimizers[int(part.at)] for part in parts] for parts in closed]


@given(st.lists(st.integers(0, 4), max_size=60))
def test_nothing_is_lost_nor_counted_twice(optimizers: list[int]) -> None:
    groups = grouped(optimizers)
    assert [optimizer for group in groups for optimizer in group] == optimizers
    assert all(len(set(group)) == len(group) for group in groups)


@given(st.integers(1, 5), st.integers(1, 20))
def test_a_round_of_several_optimizers_is_one_step(optimizers: int, rounds: int) -> None:
    assert len(grouped(list(range(optimizers)) * rounds)) == rounds


@given(st.lists(st.integers(2, 9), min_size=1, max_size=6))
def test_one_optimizer_after_another_is_one_step_each(lengths: list[int]) -> None:
    steps = [optimizer for optimizer, length in enumerate(lengths) for _ in range(length)]
    assert len(grouped(steps)) == len(steps)


@given(st.integers(2, 6), st.integers(2, 10))
def test_a_critic_that_steps_more_often_sets_the_pace(critic_steps: int, rounds: int) -> None:
    assert len(grouped(([0] * critic_steps + [1]) * rounds)) == critic_steps * rounds


def test_samples_of_new_data_count_once() -> None:
    assert samples([Part(fetched=16, forwarded=32), Part(fetched=0, forwarded=16)]) == 16
    assert samples([Part(forwarded=32), Part(forwarded=16), Part()]) == 16
    assert samples([Part()]) is None
