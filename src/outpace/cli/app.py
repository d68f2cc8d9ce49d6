"""What all commands share: the application, how results are shown, how errors are told."""

from __future__ import annotations

import contextlib
import sys
from collections.abc import Iterator
from typing import Annotated, Any

import msgspec
import typer

from outpace import __version__

app = typer.Typer(
    name="outpace",
    help="Train, measure, speed up and predict deep-learning training scripts, unmodified.",
    no_args_is_help=True,
    add_completion=True,
    rich_markup_mode=None,
    pretty_exceptions_enable=False,
)
Json = Annotated[bool, typer.Option("--json", help="Print the result as JSON.")]


def _version(wanted: bool) -> None:
    if wanted:
        print(f"outpace {__version__}")
        raise typer.Exit


@app.callback()
def common(
    version: Annotated[
        bool, typer.Option("--version", callback=_version, is_eager=True, help="Print the version.")
    ] = False,
) -> None:
    """Train, measure, speed up and predict deep-learning training scripts, unmodified."""


@contextlib.contextmanager
def view_of(title: str, *, quiet: bool, json: bool) -> Iterator[Any]:
    from outpace.verbs.running import Silent

    if quiet:
        yield Silent()
        return
    from rich.console import Console

    from outpace.report import live

    console = Console(stderr=True, highlight=False)
    if console.is_terminal and (json or sys.stdout.isatty()):
        with live.TerminalView(console, title) as view:
            yield view
    else:
        yield live.PlainView(console, title)


def print_json(value: Any) -> None:
    """*value* as indented JSON on standard output."""
    sys.stdout.write(msgspec.json.format(msgspec.json.encode(value), indent=2).decode() + "\n")


def complain(what: str, hint: str | None) -> None:
    """What happened and what to do, on standard error."""
    print(f"error: {what}", file=sys.stderr)
    if hint:
        print(f"hint: {hint}", file=sys.stderr)
