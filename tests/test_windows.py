"""Windows partition the measured steps, whatever the training does between them."""

from __future__ import annotations

import itertools
from collections.abc import Sequence

import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from outpace import stats, windows
from outpace.protocol import Edge
from outpace.windows import Steps, Window

#: (seconds, samples, interrupted)
Step = tuple[float, "int | None", bool]
sizes = st.sampled_from([64, 64, 64, 64, 17, 80, None])
trainings = st.lists(
    st.tuples(st.floats(1e-3, 0.5), sizes, st.sampled_from([False, False, False, True])),
    min_size=1,
    max_size=80,
)


def steps_of(training: Sequence[Step], began_at: float = 1.0) -> Steps:
    ends = list(itertools.accumulate((seconds for seconds, _, _ in training), initial=began_at))[1:]
    return Steps(
        ends,
        [samples for _, samples, _ in training],
        [index for index, (_, _, interrupted) in enumerate(training) if interrupted],
        began_at,
    )


def usable(training: Sequence[Step]) -> list[int]:
    """By the definition: neither interrupted nor partial."""
    full = stats.full_batch((samples, 1) for _, samples, _ in training)
    apart = stats.real_interruptions([index for index, step in enumerate(training) if step[2]], len(training))
    return [
        index
        for index, (_, samples, _) in enumerate(training)
        if index not in apart and (samples is None or full is None or samples >= full)
    ]


@given(trainings)
def test_a_synchronous_device_each_usable_step_is_counted_once(training: list[Step]) -> None:
    steps = steps_of(training)
    found = windows.of_synchronous_device(steps, 1.0, steps.ends[-1])
    wanted = usable(training)
    counted = sum(window.steps for window in found)
    rest = sum(training[index][0] for index in wanted[counted:])
    assert counted <= len(wanted)
    assert rest <= windows.WINDOW_SECONDS / 2 + 1e-9, "only a short rest is left out"
    taken = wanted[:counted]
    assert sum(window.seconds for window in found) == pytest.approx(sum(training[i][0] for i in taken))
    known = [training[index][1] for index in taken]
    if all(window.samples is not None for window in found):
        assert sum(window.samples or 0 for window in found) == sum(one or 0 for one in known)
    assert all(early.end <= late.start + 1e-9 for early, late in itertools.pairwise(found))


@given(trainings, st.integers(1, 7), st.data())
def test_edges_no_step_is_counted_twice_and_none_that_was_interrupted(
    training: list[Step], every: int, data: st.DataObject
) -> None:
    steps = steps_of(training)
    edges = [Edge(at=1.0, waited=0.0, fetching=0.0, opens=True)]
    for index, end in enumerate(steps.ends):
        opens = index in steps.interrupted
        if opens or index % every == every - 1:
            wait = data.draw(st.floats(0, 1e-4))
            edges.append(Edge(at=end + wait, waited=wait, fetching=0.0, opens=opens))
    found = windows.of_edges(steps, edges, 1.0, edges[-1].at)
    apart = stats.real_interruptions(steps.interrupted, len(training))
    seen: list[int] = []
    for window in found:
        inside = [index for index, end in enumerate(steps.ends) if window.start < end <= window.end]
        assert len(inside) == window.steps
        assert not apart & set(inside)
        if window.samples is not None:
            assert window.samples == sum(steps.samples[index] or 0 for index in inside)
        seen += inside
    assert len(seen) == len(set(seen))


@given(st.lists(st.floats(1e-3, 0.3), min_size=20, max_size=80), st.integers(1, 9), st.integers(1, 9))
def test_the_rate_does_not_depend_on_how_the_steps_are_cut(
    seconds: list[float], one: int, other: int
) -> None:
    steps = steps_of([(value, 64, False) for value in seconds])

    def rate(every: int) -> float | None:
        cuts = [1.0, *steps.ends[every - 1 :: every]]
        if cuts[-1] != steps.ends[-1]:
            cuts.append(steps.ends[-1])
        edges = [Edge(at=at, waited=0.0, fetching=0.0) for at in cuts]
        return windows.rate(windows.of_edges(steps, edges, 1.0, cuts[-1]))

    assert rate(one) == pytest.approx(rate(other))
    assert rate(one) == pytest.approx(64 * len(seconds) / sum(seconds))


@given(st.integers(1, 40), st.floats(1e-3, 1.0), st.integers(1, 512))
def test_equal_steps_have_the_rate_of_each(count: int, seconds: float, samples: int) -> None:
    steps = steps_of([(seconds, samples, False)] * count)
    found = windows.of_synchronous_device(steps, 1.0, steps.ends[-1])
    assert windows.rate(found) == pytest.approx(samples / seconds)
    assert all(window.step_seconds == pytest.approx(seconds) for window in found)


def test_windows_with_partial_batches_go_where_five_others_remain() -> None:
    def found(epochs: int) -> list[Window]:
        steps = steps_of([(0.1, 64, False), (0.1, 64, False), (0.02, 10, False)] * epochs)
        edges = [Edge(at=at, waited=0.0, fetching=0.0) for at in [1.0, *steps.ends]]
        return windows.of_edges(steps, edges, 1.0, steps.ends[-1])

    assert [window.samples for window in found(2)] == [64, 64, 10] * 2
    assert [window.samples for window in found(3)] == [64] * 6


@given(st.floats(0.2, 0.8))
def test_a_step_counts_when_most_of_it_is_in_the_span(share: float) -> None:
    assume(abs(share - 0.5) > 0.01)
    steps = steps_of([(0.1, 8, False)] * 10)
    start = 1.3 + share * 0.1
    found = windows.of_synchronous_device(steps, start, steps.ends[-1])
    assert sum(window.steps for window in found) == (7 if share < 0.5 else 6)
    assert windows.rate(found) == pytest.approx(80)


def test_what_lies_outside_the_span_stays_out() -> None:
    steps = steps_of([(5.0, 8, False)] * 3 + [(0.1, 8, False)] * 20 + [(9.0, 8, False)] * 3)
    start, end = steps.ends[2], steps.ends[22]
    edges = [Edge(at=at, waited=0.0, fetching=0.0) for at in steps.ends]
    for found in (
        windows.of_synchronous_device(steps, start, end),
        windows.of_edges(steps, edges, start, end),
    ):
        assert windows.rate(found) == pytest.approx(80)
        assert sum(window.steps for window in found) == 20


def test_without_samples_there_is_no_rate_and_never_zero() -> None:
    assert windows.rate([]) is None
    assert windows.rate([Window(0, 1, 1.0, 10, None)]) is None
    assert windows.rate([Window(0, 1, 1.0, 10, 80), Window(1, 2, 1.0, 10, None)]) is None
    assert windows.of_synchronous_device(Steps([], []), 0.0, 1.0) == []
    assert windows.of_edges(Steps([], []), [], 0.0, 1.0) == []


def test_outliers() -> None:
    even = [Window(i, i + 1, 1.0, 10, 80) for i in range(9)]
    assert windows.outliers([]) == 0
    assert windows.outliers(even) == 0
    assert windows.outliers([*even, Window(9, 11, 2.0, 10, 80)]) == 1


def test_an_edge_that_opens_closes_nothing() -> None:
    steps = steps_of([(0.1, 8, False), (7.0, 8, False), (0.1, 8, False)])
    edges = [
        Edge(at=at, waited=0.0, fetching=0.0, opens=opens)
        for at, opens in zip([1.0, *steps.ends], [True, False, True, False], strict=True)
    ]
    assert [window.seconds for window in windows.of_edges(steps, edges, 1.0, 9.0)] == pytest.approx(
        [0.1, 0.1]
    )
