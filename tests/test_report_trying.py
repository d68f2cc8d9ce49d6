"""The search while it goes on."""

from __future__ import annotations

import io

from rich.console import Console

from outpace import protocol
from outpace.records import Span, Trial
from outpace.report import trying

TRIAL = Trial(names=["bf16"], verdict="kept", gain=Span(median=2.0, low=1.9, high=2.1))


def test_a_log_has_a_line_for_each_trial() -> None:
    file = io.StringIO()
    view = trying.PlainView(file)
    view.doing("searching")
    view.event(protocol.Turn(at=1.0, on=["bf16"], trying=["bf16"], racing=2))
    view.tried(TRIAL)
    view.doing("proof")
    lines = file.getvalue().splitlines()
    assert lines[0].startswith("searching")
    assert lines[1] == "bf16  2.00 (1.90 to 2.10)  kept"
    assert lines[2].startswith("proof")
    assert len(lines) == 3


def test_now_and_then_it_says_what_it_tries() -> None:
    file = io.StringIO()
    view = trying.PlainView(file)
    view._said_at = -1000.0
    view.event(protocol.Turn(at=1.0, on=["bf16"], trying=["bf16"], racing=2))
    view.event(protocol.Steps(ends=[1.0, 2.0], samples=[8, 8]))
    assert file.getvalue().startswith("starting: bf16 (one of 2)")


def test_a_terminal_has_a_table() -> None:
    file = io.StringIO()
    console = Console(file=file, force_terminal=True, width=80)
    with trying.TerminalView(console) as view:
        view.doing("searching")
        view.event(protocol.Turn(at=1.0, on=[], trying=[]))
        view.event(protocol.Steps(ends=[1.0, 2.0], samples=[8, 8]))
        view.tried(TRIAL)
        view._live.refresh()
    text = file.getvalue()
    assert "2.00 (1.90 to 2.10)" in text
    assert "searching: the best so far  2 steps" in text
