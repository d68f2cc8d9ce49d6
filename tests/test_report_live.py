"""Progress while a run goes on."""

from __future__ import annotations

import io

import pytest
from rich.console import Console

from outpace import protocol
from outpace.collect import Collector
from outpace.report import live
from tests.test_collect import BLANK


def running(steps: int = 0, epochs: int | None = None) -> Collector:
    collector = Collector(BLANK)
    collector.take(protocol.Framework(name="torch", version="2"))
    if steps:
        collector.take(protocol.Began(at=1.0))
        collector.take(protocol.Progress(epoch=1, epochs=epochs, steps_per_epoch=50))
        ends = [1.0 + 0.01 * (step + 1) for step in range(steps)]
        collector.take(protocol.Steps(ends=ends, samples=[64] * steps))
        collector.take(protocol.Losses(steps=[steps - 1], values=[0.28416]))
    return collector


def test_before_the_first_step() -> None:
    assert live.facts_of(running(), 2.0) == ["importing torch …", "2.00 s"]
    began = running()
    began.take(protocol.Began(at=1.0))
    assert live.facts_of(began, 2.0)[0] == "first step …"


def test_facts() -> None:
    assert live.facts_of(running(40), 12.0) == [
        "epoch 1",
        "step 40",
        "loss 0.284",
        "6,400 samples/s",
        "12.0 s",
    ]
    assert live.facts_of(running(40, epochs=2), 12.0)[-1] == "600 ms left"


def test_the_rate_is_that_of_the_last_seconds() -> None:
    collector = running(100)
    collector.take(protocol.Steps(ends=[100.0 + 0.1 * step for step in range(40)], samples=[64] * 40))
    assert live.recent_rate(collector) == pytest.approx(640, rel=0.01)
    assert live.recent_rate(running(1)) is None


def drawn(chunks: list[bytes], collector: Collector) -> str:
    file = io.StringIO()
    console = Console(file=file, force_terminal=True, width=90, color_system=None, highlight=False)
    with live.TerminalView(console, "cnn") as view:
        for chunk in chunks:
            view.output(chunk)
            view.update(collector)
            view._live.refresh()
    return file.getvalue()


def test_the_scripts_lines_scroll_above_whole() -> None:
    shown = drawn([b"Train Ep", b"och: 3 [1/2]\r\nnext [bold] line\n", "ende\u2026".encode()], running(40))
    assert "Train Epoch: 3 [1/2]" in shown
    assert "next [bold] line" in shown, "no markup is read out of a script's output"
    assert "ende…" in shown
    assert "step 40" in shown


def test_a_progress_bar_of_the_script_stays_one_line() -> None:
    shown = drawn([b"\r 10%|#   |", b"\r 20%|##  |", b"\r100%|####|\n", b"done\n"], running(40))
    printed = [line for line in shown.splitlines() if "100%" in line]
    assert printed
    assert "done" in shown


def test_a_character_cut_in_two_is_still_one() -> None:
    euro = "€".encode()
    assert "price €5" in drawn([b"price " + euro[:1], euro[1:] + b"5\n"], running())


def test_logs_get_a_line_now_and_then() -> None:
    file = io.StringIO()
    view = live.PlainView(Console(file=file, width=90), "cnn", every_seconds=0.0)
    view.update(running(40))
    assert file.getvalue().startswith("cnn  epoch 1  step 40  loss 0.284")
    quiet = live.PlainView(Console(file=(rare := io.StringIO()), width=90), "cnn", every_seconds=1000.0)
    quiet.update(running(40))
    assert rare.getvalue() == ""
