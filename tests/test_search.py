"""What is tried next, and when it is decided."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from outpace import search
from outpace.records import VERDICTS, Span, Trial
from outpace.search import Change, Result, Runner

SLOTS = {"rows": "data", "half": "precision", "double": "precision", "last": "layout", "fuse": "compile"}
PAIRS = [("half", "last")]


def span(median: float) -> Span:
    return Span(median=median, low=median * 0.95, high=median * 1.05)


def trial(name: str, verdict: str, gain: float | None = None, base: tuple[str, ...] = ()) -> Trial:
    return Trial(
        names=name.split(), base=list(base), verdict=verdict, gain=span(gain) if gain is not None else None
    )


def raced(trials: list[Trial]) -> list[tuple[str, ...]]:
    return [change.names for change in search.next_race(SLOTS, PAIRS, trials)]


def test_slots_come_in_their_order_and_pairs_in_the_slot_of_their_first() -> None:
    trials: list[Trial] = []
    assert raced(trials) == [("rows",)]
    trials.append(trial("rows", "kept", 1.5))
    assert raced(trials) == [("half",), ("double",), ("half", "last")]
    trials += [
        trial("half", "no gain", 1.0),
        trial("double", "not applicable"),
        trial("half last", "no gain", 1.0),
    ]
    assert raced(trials) == [("last",)]
    trials.append(trial("last", "slower", 0.5))
    assert raced(trials) == [("fuse",)]


def test_a_kept_pair_leaves_nothing_to_try_of_its_second() -> None:
    trials = [trial("rows", "slower", 0.5), trial("half", "no gain", 1.0), trial("double", "slower", 0.1)]
    trials.append(trial("half last", "kept", 1.6))
    assert search.base_of(trials, SLOTS) == ["half", "last"]
    assert raced(trials) == [("fuse",)]


def test_pairs_with_a_member_that_failed_are_not_tried() -> None:
    trials = [trial("rows", "kept", 2.0), trial("half", "crashed"), trial("double", "no gain", 1.0)]
    assert raced(trials) == [("last",)]


def test_a_newcomer_takes_the_slot() -> None:
    change = Change(("double",))
    assert change.on(["rows", "half"], SLOTS) == ["rows", "double"]
    assert Change(("half",), drop=True).on(["rows", "half"], SLOTS) == ["rows"]


def test_what_was_tried_in_vain_has_one_more_chance_beside_more() -> None:
    tried = [
        trial("rows", "no gain", 1.0),
        trial("half", "kept", 2.0),
        trial("double", "beaten", 1.5),
        trial("half last", "beaten", 1.4),
        trial("last", "slower", 0.3, base=("half",)),
        trial("fuse", "no gain", 1.0, base=("half",)),
    ]
    assert raced(tried) == [("rows",)]
    tried.append(trial("rows", "kept", 1.2, base=("half",)))
    assert raced(tried) == [("fuse",)]
    tried.append(trial("fuse", "no gain", 1.0, base=("rows", "half")))
    assert search.next_race(SLOTS, PAIRS, tried) == [Change(("rows",), drop=True)]


def test_each_kept_one_is_weighed_once() -> None:
    tried = [
        trial("rows", "kept", 1.2),
        *(trial(name, "not applicable") for name in ("half", "double", "last")),
        trial("fuse", "kept", 1.2, base=("rows",)),
    ]
    base = ["rows", "fuse"]
    assert search.next_race(SLOTS, [], tried) == [Change(("rows",), drop=True)]
    tried.append(Trial(names=["rows"], base=base, drop=True, verdict="dropped", gain=span(1.0)))
    assert search.base_of(tried, SLOTS) == ["fuse"]
    assert search.next_race(SLOTS, [], tried) == []


@given(st.lists(st.tuples(st.sampled_from(VERDICTS), st.floats(0.1, 10.0)), min_size=300, max_size=300))
def test_the_search_ends_whatever_comes(outcomes: list[tuple[str, float]]) -> None:
    trials: list[Trial] = []
    for verdict, gain in outcomes:
        changes = search.next_race(SLOTS, PAIRS, trials)
        base = search.base_of(trials, SLOTS)
        assert set(base) <= set(SLOTS)
        if not changes:
            break
        for change in changes:
            trials.append(
                Trial(names=list(change.names), base=base, drop=change.drop, verdict=verdict, gain=span(gain))
            )
    assert len(trials) < 100
    assert not search.next_race(SLOTS, PAIRS, trials)


@given(st.lists(st.floats(0.01, 100.0), min_size=1, max_size=12))
def test_a_gain_lies_in_its_interval(ratios: list[float]) -> None:
    found = search.gain(ratios)
    assert found.low <= found.median * (1 + 1e-9)
    assert found.median <= found.high * (1 + 1e-9)
    assert min(ratios) * (1 - 1e-9) <= found.median <= max(ratios) * (1 + 1e-9)


def test_when_a_change_is_decided() -> None:
    assert search.decided([1.5, 1.52, 1.49]) is None
    assert search.decided([1.5, 1.52, 1.49, 1.51]) == "faster"
    assert search.decided([0.9, 0.91, 0.89, 0.9]) == "slower"
    assert search.decided([0.5]) == "slower"
    assert search.decided([0.7]) is None
    assert search.decided([0.7, 0.72]) == "slower"
    assert search.decided([1.001, 1.002, 1.0, 1.001]) == "no gain"
    assert search.decided([1.3, 0.8, 1.4, 0.9]) is None
    assert search.decided([1.3, 0.8, 1.4, 0.9] * 3) == "no gain"
    assert search.decided([1.5], last=True) == "no gain"
    assert search.decided([], last=True) == "no gain"
    assert search.decided([]) is None


def test_the_best_is_kept() -> None:
    results = [
        Result(Change(("half",)), (1.2, 1.21, 1.2, 1.19)),
        Result(Change(("double",)), (1.5, 1.51, 1.5, 1.49)),
        Result(Change(("last",)), (0.5,)),
        Result(Change(("fuse",)), (), failure=("not applicable", "it is not")),
    ]
    found = search.verdicts(results, ["rows"])
    assert [one.verdict for one in found] == ["beaten", "kept", "slower", "not applicable"]
    assert found[3].reason == "it is not"
    assert all(one.base == ["rows"] for one in found)


def test_start_up_must_pay_off_in_the_planned_run() -> None:
    result = Result(Change(("fuse",)), (2.0, 2.0, 2.0, 2.0), startup_seconds=30.0)
    (long,) = search.verdicts([result], [], base_step_seconds=0.01, planned_steps=10_000)
    assert (long.verdict, long.reason) == ("kept", "pays off after 6,000 steps")
    (short,) = search.verdicts([result], [], base_step_seconds=0.01, planned_steps=5_000)
    assert short.verdict == "does not pay off"
    assert short.reason == "pays off after 6,000 steps; 5,000 are planned"
    (unknown,) = search.verdicts([result], [], base_step_seconds=0.01)
    assert unknown.verdict == "kept"


def test_what_is_not_missed_is_dropped() -> None:
    drops = {
        (0.7, 0.71, 0.7, 0.69): "kept",
        (1.0, 1.01, 0.99, 1.0): "dropped",
        (1.2, 1.2, 1.21, 1.2): "dropped",
    }
    for ratios, verdict in drops.items():
        (found,) = search.verdicts([Result(Change(("half",), drop=True), ratios)], ["half", "last"])
        assert found.verdict == verdict


def test_ratios_are_of_the_same_round() -> None:
    base = Runner(None, [], paces=[1.0, 2.0, 3.0])
    assert Runner(Change(("half",)), ["half"], paces=[0.5, 0.5]).ratios(base) == [2.0, 4.0]
