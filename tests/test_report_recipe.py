"""A recipe as text."""

from __future__ import annotations

import msgspec

from outpace import speedups
from outpace.records import VERDICTS, Span, Trial
from outpace.report import recipe as report
from tests.test_verbs_recipes import recipe


def test_the_answer_comes_first() -> None:
    lines = report.recipe(recipe(samples_per_second=1000.0)).splitlines()
    assert lines[0] == "train.py on a CPU"
    assert lines[2] == "  bf16 + channels-last ran 1.50 (1.40 to 1.60) times as fast as your script"
    assert lines[3] == "  1,000 samples/s before, 1,500 samples/s after"
    assert lines[4] == "  loss 1.75 ± 1.1 against 1.5 ± 0.71"


def test_energy_is_in_the_answer_where_it_is_known() -> None:
    found = recipe()
    assert found.proof is not None
    proof = msgspec.structs.replace(found.proof, energy_ratio=0.31)
    assert ", on 0.31 of the energy per sample" in report.recipe(recipe(proof=proof))


def test_what_is_not_proven_is_not_claimed() -> None:
    text = report.recipe(recipe(proof=None, notes=["interrupted"]))
    assert "bf16 + channels-last: not proven." in text
    assert "note: interrupted" in text
    assert "Nothing that was tried" in report.recipe(recipe(speedups=[], proof=None))


def test_the_lines_for_ones_own_code_are_there() -> None:
    text = report.recipe(recipe())
    for name in ("bf16", "channels-last"):
        for line in speedups.load(name).LINES.splitlines():
            assert line in text


def test_every_line_fits_a_terminal() -> None:
    gain = Span(median=12.34, low=11.0, high=13.99)
    reason = "this is a long reason that goes on and on until it is wider than any terminal " * 2
    trials = [
        Trial(
            names=names,
            verdict=verdict,
            gain=None if verdict == "hung" else gain,
            reason=reason,
        )
        for names in (["indexed-batches"], ["bf16", "channels-last"])
        for verdict in VERDICTS
    ]
    text = report.recipe(recipe(trials=trials))
    assert max(map(len, text.splitlines())) <= 80
    for verdict in VERDICTS:
        assert verdict in text or verdict == "dropped"


def test_a_drop_is_told_as_one() -> None:
    gain = Span(median=0.5, low=0.4, high=0.6)
    kept = Trial(names=["bf16"], drop=True, verdict="kept", gain=gain)
    gone = Trial(names=["bf16"], drop=True, verdict="dropped", gain=gain)
    assert report.cells(kept) == ("without bf16", "0.50 (0.40 to 0.60)", "still needed")
    assert report.cells(gone)[2] == "no longer needed"
