"""How a run ended, as far as the parent can tell."""

from __future__ import annotations

import pytest

from outpace import launch, protocol
from outpace.collect import Collector
from outpace.verbs.running import how_it_ended, no_step_seen
from tests.test_collect import BLANK


def ending(code: int, *events: protocol.AnyEvent, asked: bool = False) -> dict[str, object]:
    collector = Collector(BLANK)
    for event in events:
        collector.take(event)
    return how_it_ended(collector, launch.Exit(code=code, asked=asked), 3.0, "train.py")


def test_deaths_without_a_word() -> None:
    assert ending(-9)["state"] == "killed"
    assert "memory ran out" in str(ending(-9)["error"])
    assert "SIGSEGV" in str(ending(-11)["error"])
    assert "signal 99" in str(ending(-99)["error"])
    assert "exit code 3" in str(ending(3)["error"])
    assert ending(-15, asked=True) == {"state": "interrupted", "exit_code": 130, "seconds": 3.0}
    assert ending(0)["state"] == "done"


def test_done_without_a_step_is_a_failure() -> None:
    done = protocol.Ended(at=1.0, state="done")
    assert ending(0, done)["state"] == "failed"
    assert ending(0, protocol.Steps(ends=[1.0], samples=[1]), done) == {}


@pytest.mark.parametrize(
    ("seen", "frameworks", "said"),
    [
        ([], {}, "imports none of"),
        (["forward"], {"torch": "2"}, "no gradient was computed"),
        (["backward", "forward"], {"torch": "2"}, "no optimizer took a step"),
        ([], {"torch": "2"}, "no model was trained"),
        ([], {"jax": "0.9"}, "outpace.step(samples=…, loss=…)"),
        (["children"], {"torch": "2"}, "processes of its own"),
    ],
)
def test_why_no_step_was_seen(seen: list[str], frameworks: dict[str, str], said: str) -> None:
    ended = protocol.Ended(at=1.0, state="done", seen=seen)
    assert said in no_step_seen("train.py", ended, frameworks)
