"""The command that searches for speed-ups."""

from __future__ import annotations

import contextlib
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Annotated, Any

import typer

from outpace.cli.app import Json, app, print_json
from outpace.cli.training import EPILOG, SCRIPT, Args, OnDevice, Quiet, Target


@app.command(context_settings=SCRIPT, epilog=EPILOG)
def speedup(
    target: Target,
    args: Args = None,
    device: OnDevice = "auto",
    allow: Annotated[
        str, typer.Option(help="The strongest effect on the mathematics: same, rounding or different.")
    ] = "rounding",
    try_: Annotated[
        str | None, typer.Option("--try", help="Speed-ups to try, separated by commas; else all.")
    ] = None,
    seeds: Annotated[int, typer.Option(help="Trainings of each kind in the proof.")] = 3,
    budget: Annotated[float, typer.Option(help="Seconds for the search and the proof.")] = 300.0,
    planned_steps: Annotated[
        int | None, typer.Option(help="Steps of the trainings to come, which start-up must pay off in.")
    ] = None,
    proof_steps: Annotated[
        int | None, typer.Option(help="Steps of each training of the proof (else the whole script if short).")
    ] = None,
    save: Annotated[Path | None, typer.Option(help="Write the recipe here (TOML).")] = None,
    json: Json = False,
    quiet: Quiet = False,
) -> None:
    """Find what makes a training faster here, and prove over several seeds that it is as good as before."""
    from outpace import targets
    from outpace.errors import UsageError
    from outpace.records import check_writable
    from outpace.report import recipe as report
    from outpace.verbs import recipes
    from outpace.verbs import speedup as verb

    targets.find(target)
    if save is not None:
        if save.suffix != ".toml":
            raise UsageError(f"--save {save}: a recipe is a .toml file", "--save recipe.toml")
        check_writable(save)
    limits = verb.Limits(
        allow=allow,
        seeds=seeds,
        budget=budget,
        planned_steps=planned_steps,
        proof_steps=proof_steps,
        names=tuple(name.strip() for name in try_.split(",")) if try_ is not None else (),
    )
    with _view(quiet=quiet) as view:
        found = verb.speedup(target, args, device=device, limits=limits, view=view)
    path = save or recipes.default_path(found)
    recipes.save(found, path)
    if json:
        print_json(found)
    elif not quiet:
        print(report.recipe(found))
        print(f"\nrecipe: {path}")
        if found.speedups:
            command = " ".join(["outpace train --with", str(path), target, *(args or [])])
            print(f"use it: {command}")
    raise typer.Exit(130 if verb.INTERRUPTED in found.notes else 0)


@contextlib.contextmanager
def _view(*, quiet: bool) -> Iterator[Any]:
    from outpace.verbs.speedup import Silent

    if quiet:
        yield Silent()
        return
    from rich.console import Console

    from outpace.report import trying

    console = Console(stderr=True, highlight=False)
    if console.is_terminal:
        with trying.TerminalView(console) as view:
            yield view
    else:
        yield trying.PlainView(sys.stderr)
