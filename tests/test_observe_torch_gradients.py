"""Gradients that no optimizer follows, one by one."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from outpace.observe.torch.gradients import Unstepped
from outpace.rounds import Part, samples

news = st.tuples(
    st.integers(0, 2), st.integers(0, 64), st.integers(0, 64), st.lists(st.integers(), max_size=2)
)


def running(gradients: list[tuple[int, int, int, list[int]]]) -> list[Part]:
    """A part at each gradient: all since the last optimizer step."""
    part, found = Part(), []
    for batches, fetched, forwarded, losses in gradients:
        part.batches += batches
        part.fetched += fetched
        part.forwarded += forwarded
        part.losses += losses
        found.append(Part(0.0, part.batches, part.fetched, part.forwarded, False, list(part.losses)))
    return found


@given(st.lists(news, min_size=1, max_size=12))
def test_each_gradient_has_what_is_its_own(gradients: list[tuple[int, int, int, list[int]]]) -> None:
    closed: list[list[Part]] = []
    kept = Unstepped(closed.append)
    for index, part in enumerate(running(gradients)):
        kept.add(part, at=float(index))
    assert closed == []
    assert len(kept) == len(gradients)
    kept.take_for_steps()
    assert len(kept) == 0
    own = [(part.batches, part.fetched, part.forwarded, part.losses) for (part,) in closed]
    assert own == gradients
    assert [part.at for (part,) in closed] == [float(index) for index in range(len(gradients))]


def test_later_gradients_are_steps_at_once() -> None:
    closed: list[list[Part]] = []
    kept = Unstepped(closed.append)
    kept.add(Part(batches=1, fetched=8), at=1.0)
    kept.take_for_steps()
    assert kept.are_steps
    kept.add(Part(batches=1, fetched=5), at=2.0)
    assert [(parts[0].at, samples(parts)) for parts in closed] == [(1.0, 8), (2.0, 5)]
    assert len(kept) == 0


def test_an_optimizer_that_steps_after_all_makes_them_no_steps() -> None:
    closed: list[list[Part]] = []
    kept = Unstepped(closed.append)
    kept.add(Part(batches=1, fetched=8), at=1.0)
    kept.forget()
    assert (len(kept), kept.are_steps, closed) == (0, False, [])
    kept.add(Part(batches=1, fetched=3), at=2.0)
    kept.take_for_steps()
    assert [samples(parts) for parts in closed] == [3]
    kept.forget()
    assert not kept.are_steps
