"""Progress of a run while it goes on, with the script's own output above it."""

from __future__ import annotations

import codecs
import re
import time
from types import TracebackType

from rich.console import Console, Group
from rich.live import Live
from rich.progress_bar import ProgressBar
from rich.table import Table
from rich.text import Text

from outpace import units
from outpace.collect import Collector

#: Seconds of training that the live rate looks back on.
WINDOW_SECONDS = 3.0


class TerminalView:
    """One line at the bottom of the terminal; what the script prints scrolls above it.

    Args:
        console: where to draw (standard error).
        title: what is running.
    """

    takes_output = True

    def __init__(self, console: Console, title: str) -> None:
        self._console = console
        self._title = title
        self._began = time.monotonic()
        self._decoder = codecs.getincrementaldecoder("utf-8")(errors="replace")
        self._partial = ""
        self._line: Table | Text = Text(f"{title}  starting …", style="dim")
        self._live = Live(console=console, get_renderable=self._draw, refresh_per_second=8, transient=True)

    def __enter__(self) -> TerminalView:
        self._live.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, value: BaseException | None, trace: TracebackType | None
    ) -> None:
        if self._partial.strip():
            self._print(self._partial)
        self._live.stop()

    def output(self, chunk: bytes) -> None:
        """Whole lines go above; a line that redraws itself (a progress bar of the script) stays live."""
        *lines, self._partial = (self._partial + self._decoder.decode(chunk)).split("\n")
        for line in lines:
            self._print(line)

    def _print(self, line: str) -> None:
        shown = line.rstrip("\r").rpartition("\r")[2]
        self._console.print(Text.from_ansi(shown), soft_wrap=True)

    def update(self, collector: Collector) -> None:
        """Take the newest state."""
        self._line = progress_line(collector, self._title, time.monotonic() - self._began)

    def _draw(self) -> Group:
        own = re.split(r"[\r\n]", self._partial.rstrip("\r"))[-1]
        return Group(Text.from_ansi(own), self._line) if own.strip() else Group(self._line)


class PlainView:
    """For logs and pipes: one line now and then; the script's output goes its own way.

    Args:
        console: where to write (standard error).
        title: what is running.
        every_seconds: how often.
    """

    takes_output = False

    def __init__(self, console: Console, title: str, every_seconds: float = 10.0) -> None:
        self._console = console
        self._title = title
        self._every = every_seconds
        self._began = self._written = time.monotonic()

    def update(self, collector: Collector) -> None:
        """Write a line when it is time."""
        now = time.monotonic()
        if now - self._written >= self._every:
            self._written = now
            facts = "  ".join(facts_of(collector, now - self._began))
            self._console.print(Text(f"{self._title}  {facts}"), soft_wrap=True)

    def output(self, chunk: bytes) -> None:
        """Nothing comes."""


def progress_line(collector: Collector, title: str, elapsed_seconds: float) -> Table:
    """Title, bar of the epoch where its length is known, and the facts."""
    grid = Table.grid(padding=(0, 2))
    cells: list[Text | ProgressBar] = [Text(title, style="bold")]
    if collector.steps_per_epoch and collector.ends:
        done = min(len(collector.ends) - collector.epoch_began_at_step, collector.steps_per_epoch)
        cells.append(ProgressBar(total=collector.steps_per_epoch, completed=done, width=20))
    cells += [Text(fact) for fact in facts_of(collector, elapsed_seconds)]
    grid.add_row(*cells)
    return grid


def facts_of(collector: Collector, elapsed_seconds: float) -> list[str]:
    """What to say of a run that goes on."""
    if not collector.ends:
        doing = f"importing {', '.join(collector.frameworks)}" if collector.frameworks else "starting"
        return [f"{doing if collector.began_at is None else 'first step'} …", units.seconds(elapsed_seconds)]
    facts = []
    if collector.epoch:
        facts.append(f"epoch {collector.epoch}" + (f"/{collector.epochs}" if collector.epochs else ""))
    facts.append(f"step {len(collector.ends):,}")
    if collector.last_loss is not None:
        facts.append(f"loss {units.significant(collector.last_loss)}")
    rate = recent_rate(collector)
    if rate:
        facts.append(units.per_second(rate, "samples"))
    facts.append(_left(collector) or units.seconds(elapsed_seconds))
    return facts


def recent_rate(collector: Collector) -> float | None:
    """Samples per second over the last few seconds of training."""
    last = len(collector.ends) - 1
    first = last
    while first > 0 and collector.ends[last] - collector.ends[first - 1] <= WINDOW_SECONDS:
        first -= 1
    if first == last:
        return None
    samples = sum(size or 0 for size in collector.samples[first + 1 : last + 1])
    return samples / (collector.ends[last] - collector.ends[first])


def _left(collector: Collector) -> str | None:
    """The time left, where the script told how many epochs it takes."""
    if not (collector.epochs and collector.steps_per_epoch and collector.began_at is not None):
        return None
    spent = collector.ends[-1] - collector.began_at
    steps = collector.epochs * collector.steps_per_epoch
    return f"{units.seconds(max(steps / len(collector.ends) - 1, 0) * spent)} left"
