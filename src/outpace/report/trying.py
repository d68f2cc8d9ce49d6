"""The search for speed-ups while it goes on."""

from __future__ import annotations

import time
from types import TracebackType
from typing import TextIO

from rich.console import Console, Group
from rich.live import Live
from rich.table import Table
from rich.text import Text

from outpace import protocol, units
from outpace.records import Trial
from outpace.report import recipe

EVERY_SECONDS = 10.0


class TerminalView:
    """A table of what was tried, and below it what happens now.

    Args:
        console: where to draw (standard error).
    """

    def __init__(self, console: Console) -> None:
        self._trials: list[Trial] = []
        self._now = _Now()
        self._live = Live(console=console, get_renderable=self._draw, refresh_per_second=4, transient=True)

    def __enter__(self) -> TerminalView:
        self._live.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, value: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._live.stop()

    def doing(self, what: str) -> None:
        """What happens from now on."""
        self._now.doing(what)

    def event(self, event: protocol.AnyEvent) -> None:
        """Something happened in a worker."""
        self._now.event(event)

    def tried(self, trial: Trial) -> None:
        """A trial is decided."""
        self._trials.append(trial)

    def _draw(self) -> Group:
        table = Table("tried", "gain", "", box=None, pad_edge=False, header_style="dim")
        styles = {"kept": "green", "no gain": "dim", "not applicable": "dim"}
        for trial in self._trials:
            name, gain, word = recipe.cells(trial)
            table.add_row(name, gain, Text(word, style=styles.get(trial.verdict, "")))
        now = Text(str(self._now), style="bold")
        return Group(table, now) if self._trials else Group(now)


class PlainView:
    """For logs and pipes: one line per trial, and one now and then.

    Args:
        file: where to write (standard error).
    """

    def __init__(self, file: TextIO) -> None:
        self._file = file
        self._now = _Now()
        self._said_at = 0.0

    def doing(self, what: str) -> None:
        """What happens from now on."""
        self._now.doing(what)
        self._say(str(self._now))

    def event(self, event: protocol.AnyEvent) -> None:
        """Something happened in a worker."""
        self._now.event(event)
        if time.monotonic() - self._said_at > EVERY_SECONDS:
            self._say(str(self._now))

    def tried(self, trial: Trial) -> None:
        """A trial is decided."""
        self._say("  ".join(recipe.cells(trial)))

    def _say(self, line: str) -> None:
        self._said_at = time.monotonic()
        print(line, file=self._file, flush=True)


class _Now:
    """What happens at the moment, in one line."""

    def __init__(self) -> None:
        self._began = time.monotonic()
        self._what = "starting"
        self._trying = ""
        self._steps = 0

    def doing(self, what: str) -> None:
        self._what, self._trying, self._steps = what, "", 0

    def event(self, event: protocol.AnyEvent) -> None:
        if isinstance(event, protocol.Turn):
            names = " + ".join(event.trying) or "the best so far"
            self._trying = f": {names}" + (f" (one of {event.racing})" if event.racing > 1 else "")
        elif isinstance(event, protocol.Steps):
            self._steps += len(event.ends)

    def __str__(self) -> str:
        steps = f"  {self._steps:,} steps" if self._steps else ""
        return f"{self._what}{self._trying}{steps}  {units.seconds(time.monotonic() - self._began)}"
