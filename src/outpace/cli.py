"""The command line: reads arguments, prints, sets exit codes. Nothing else does."""

from __future__ import annotations

import contextlib
import os
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Annotated, Any

import msgspec
import typer

from outpace import __version__, runs, scripts
from outpace.errors import OutpaceError

app = typer.Typer(
    name="outpace",
    help="Train, measure, speed up and predict deep-learning training scripts, unmodified.",
    no_args_is_help=True,
    add_completion=True,
    rich_markup_mode=None,
    pretty_exceptions_enable=False,
)
Json = Annotated[bool, typer.Option("--json", help="Print the result as JSON.")]


def main() -> None:
    """Run the command line; every error that is ours ends as ``error:`` and ``hint:`` with its exit code."""
    try:
        try:
            app()
        finally:
            sys.stdout.flush()
    except OutpaceError as error:
        complain(error.what, error.hint)
        sys.exit(error.exit_code)
    except OSError as error:  # our own output: a closed pipe, a full disk
        _give_up_standard_output()
        if not isinstance(error, BrokenPipeError):
            complain(f"could not write the output: {error.strerror or error}", None)
        sys.exit(1)
    except KeyboardInterrupt:
        sys.exit(130)


def _give_up_standard_output() -> None:
    """Keep Python from trying again, and complaining, at its exit."""
    os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())


def complain(what: str, hint: str | None) -> None:
    """What happened and what to do, on standard error."""
    print(f"error: {what}", file=sys.stderr)
    if hint:
        print(f"hint: {hint}", file=sys.stderr)


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


TRAIN_EPILOG = (
    f"Built in: {', '.join(scripts.names())}. Options stand before TARGET, as with python and torchrun."
)


@app.command(context_settings={"allow_interspersed_args": False}, epilog=TRAIN_EPILOG)
def train(
    target: Annotated[str, typer.Argument(help="A built-in name, or the path of a training script.")],
    args: Annotated[list[str] | None, typer.Argument(help="Arguments of the script.")] = None,
    device: Annotated[
        str,
        typer.Option(help="auto, cpu, cuda[:N], xpu[:N] or mps; moves a script that never leaves the CPU."),
    ] = "auto",
    seed: Annotated[
        int | None, typer.Option(help="Seed Python, NumPy and the framework.", min=0, max=2**32 - 1)
    ] = None,
    save: Annotated[Path | None, typer.Option(help="Write the record here.")] = None,
    json: Json = False,
    quiet: Annotated[bool, typer.Option("--quiet", "-q", help="No progress and no result of ours.")] = False,
) -> None:
    """Run a training script to its end, observed, and keep a record of it."""
    from outpace import targets
    from outpace.report import text
    from outpace.verbs import train as verb

    targets.find(target)
    with _view(target, quiet=quiet, json=json) as view:
        run, path = verb.train(
            target, args, device=device, seed=seed, save=save, view=view, stdout_to_stderr=json
        )
    if json:
        _print_json(run)
    elif not quiet and run.steps:
        out = sys.stdout
        print(f"\n{text.run_result(run)}\nrecord: {path}", file=out)
    if run.state == "interrupted":
        complain(f"interrupted; the record of the {run.steps:,} steps so far is {path}", None)
    elif run.state != "done":
        complain(f"{Path(run.target).name}: {run.error}", run.hint)
    raise typer.Exit(run.exit_code)


@contextlib.contextmanager
def _view(title: str, *, quiet: bool, json: bool) -> Iterator[Any]:
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


@app.command()
def devices(json: Json = False) -> None:
    """What is here to train on, as each installed framework sees it."""
    from outpace.verbs.devices import devices as ask

    found = ask()
    if json:
        _print_json(found)
        return
    from outpace.report import text

    print(text.devices(found))


@app.command()
def cards(
    names: Annotated[list[str] | None, typer.Argument(help="Cards to put side by side.")] = None,
    vendor: Annotated[str | None, typer.Option(help="Only cards of this vendor.")] = None,
    memory: Annotated[float | None, typer.Option(help="Only cards with so many GiB or more.", min=0)] = None,
    since: Annotated[int | None, typer.Option(help="Only cards launched in this year or later.")] = None,
    prices: Annotated[str, typer.Option(help="Prices: table, or live (needs gpuhunt).")] = "table",
    price: Annotated[list[str] | None, typer.Option(help="Your own: CARD=USD per hour.")] = None,
    json: Json = False,
) -> None:
    """Facts of accelerator cards: a list, one card, or several side by side."""
    from outpace.report import cards as report
    from outpace.verbs import cards as verb

    found = verb.cards(
        names or [], vendor=vendor, memory_gib=memory, since=since, live=verb.live(prices), own=price or []
    )
    if json:
        _print_json(found)
    else:
        print(report.table(found) if isinstance(found, list) else report.side_by_side(found))


@app.command(name="runs")
def list_runs(
    json: Json = False, last: Annotated[int, typer.Option(help="How many, newest first.", min=1)] = 20
) -> None:
    """The trainings that have been run, newest first."""
    from outpace.report import text

    found, broken = runs.summaries()
    if json:
        _print_json(found[:last])
    elif not found:
        print(f"no runs yet in {runs.folder()}")
    else:
        for run in found[:last]:
            print(text.run_line(run))
    for what in broken:
        print(f"warning: {what}", file=sys.stderr)


def _print_json(value: Any) -> None:
    sys.stdout.write(msgspec.json.format(msgspec.json.encode(value), indent=2).decode() + "\n")
