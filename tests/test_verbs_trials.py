"""Runs of the search and the proof."""

from __future__ import annotations

from pathlib import Path

import pytest

from outpace import protocol
from outpace.collect import Collector
from outpace.errors import OutpaceError
from outpace.verbs.running import blank_run
from outpace.verbs.settings import Setting
from outpace.verbs.trials import Ear, Hung, Runner

STEPS = """
import outpace, sys
print("hello")
for step in range(50):
    outpace.step(samples=4, loss=1.0 / (step + 1))
"""


def script(folder: Path, text: str) -> Runner:
    path = folder / "train.py"
    path.write_text(text)
    return Runner(Setting(str(path)))


def test_a_stretch_ends_where_it_shall(tmp_path: Path) -> None:
    runner = script(tmp_path, STEPS)
    short = runner.stretch([], seed=0, steps=10).run
    assert (short.state, short.steps) == ("stopped", 10)
    whole = runner.stretch([], seed=0).run
    assert (whole.state, whole.steps) == ("done", 50)
    assert whole.losses[:2] == [1.0, 0.5]


def test_what_the_script_wrote_is_kept_for_its_failure(tmp_path: Path) -> None:
    runner = script(tmp_path, STEPS + "print('the data are gone', file=sys.stderr); sys.exit(3)")
    with pytest.raises(OutpaceError) as error:
        runner.stretch([], seed=0)
    assert "the data are gone" in str(error.value.hint)


def test_where_nothing_can_be_switched_a_race_is_over_at_once(tmp_path: Path) -> None:
    outcome = script(tmp_path, STEPS).race(protocol.Race(slots={"bf16": "precision"}, seconds=60.0))
    assert outcome.over
    assert outcome.tried == []
    assert outcome.failure is None
    assert not outcome.interrupted


def test_silence_in_a_turn_is_a_hang(tmp_path: Path) -> None:
    (tmp_path / "t.py").write_text("")
    collector = Collector(blank_run(str(tmp_path / "t.py"), [], device="auto", seed=None))
    ear = Ear(patience=-1.0)
    ear.update(collector)  # before the first turn, the script may take its time
    ear.take(protocol.Turn(at=1.0, on=["bf16"], trying=["bf16"]))
    with pytest.raises(Hung):
        ear.update(collector)
    ear.take(protocol.Phase(at=2.0, name="over"))
    ear.update(collector)


def test_only_the_end_of_what_is_written_is_kept() -> None:
    ear = Ear(patience=1.0)
    ear.output(b"a" * 5000)
    ear.output("é".encode())
    assert len(ear.tail) == 4000
    assert ear.tail.endswith("é")
