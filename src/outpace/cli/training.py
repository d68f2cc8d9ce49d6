"""Commands that run a training script."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from outpace import scripts, speedups
from outpace.cli.app import Json, app, complain, print_json, view_of

if TYPE_CHECKING:
    from outpace.records import Recipe

EPILOG = f"Built in: {', '.join(scripts.names())}. Options stand before TARGET, as with python and torchrun."
SCRIPT = {"allow_interspersed_args": False}
Target = Annotated[str, typer.Argument(help="A built-in name, or the path of a training script.")]
Args = Annotated[list[str] | None, typer.Argument(help="Arguments of the script.")]
OnDevice = Annotated[
    str, typer.Option(help="auto, cpu, cuda[:N], xpu[:N] or mps; moves a script that never leaves the CPU.")
]
Seed = Annotated[int | None, typer.Option(help="Seed Python, NumPy and the framework.", min=0, max=2**32 - 1)]
Quiet = Annotated[bool, typer.Option("--quiet", "-q", help="No progress and no result of ours.")]
With = Annotated[
    str | None,
    typer.Option(
        "--with",
        help="A recipe (the .toml file that speedup writes), or speed-ups, separated by commas: "
        f"{', '.join(speedups.names())}.",
    ),
]
Save = Annotated[Path | None, typer.Option(help="Write the record here.")]


def speedups_asked(text: str | None) -> tuple[list[str], Recipe | None]:
    """What ``--with`` names; says so when a recipe was made for something else."""
    from outpace.verbs import recipes

    if text is None:
        return [], None
    names, recipe = recipes.asked(text)
    warning = recipes.warning(recipes.differences(recipe)) if recipe is not None else None
    if warning is not None:
        print(f"warning: {warning}", file=sys.stderr)
    return names, recipe


@app.command(context_settings=SCRIPT, epilog=EPILOG)
def train(
    target: Target,
    args: Args = None,
    device: OnDevice = "auto",
    with_: With = None,
    seed: Seed = None,
    save: Save = None,
    json: Json = False,
    quiet: Quiet = False,
) -> None:
    """Run a training script to its end, observed, and keep a record of it."""
    from outpace import targets
    from outpace.report import text
    from outpace.verbs import train as verb

    targets.find(target)
    asked, recipe = speedups_asked(with_)
    with view_of(target, quiet=quiet, json=json) as view:
        run, path = verb.train(
            target,
            args,
            device=device,
            seed=seed,
            speedups=asked,
            save=save,
            view=view,
            stdout_to_stderr=json,
        )
    if json:
        print_json(run)
    elif not quiet and run.steps:
        out = sys.stdout
        print(f"\n{text.run_result(run)}\nrecord: {path}", file=out)
    if recipe is not None:
        from outpace.verbs import recipes

        found = recipes.differences(recipe, device_name=run.device_name, script_sha256=run.script_sha256)
        warning = recipes.warning(found)
        if warning is not None:
            print(f"warning: {warning}", file=sys.stderr)
    if run.state == "interrupted":
        complain(f"interrupted; the record of the {run.steps:,} steps so far is {path}", None)
    elif run.state != "done":
        complain(f"{Path(run.target).name}: {run.error}", run.hint)
    raise typer.Exit(run.exit_code)


@app.command(context_settings=SCRIPT, epilog=EPILOG)
def measure(
    target: Target,
    args: Args = None,
    steps: Annotated[int | None, typer.Option(help="Steps to measure after warm-up.")] = None,
    seconds: Annotated[float | None, typer.Option(help="How long to measure after warm-up.")] = None,
    device: OnDevice = "auto",
    repeat: Annotated[
        int | None, typer.Option(help="Fresh processes (with --versus: pairs of them, 3).", min=1)
    ] = None,
    versus: Annotated[
        str | None,
        typer.Option(help='Measure "[NAME=VALUE ..] [--device D] [TARGET ARGS]" in turns too, and compare.'),
    ] = None,
    ceilings: Annotated[
        str, typer.Option(help="A card's limits: datasheet, or measured (a CPU's are always measured).")
    ] = "datasheet",
    estimate_energy: Annotated[
        bool, typer.Option("--estimate-energy", help="Where no counter is: a model's figure, marked.")
    ] = False,
    with_: With = None,
    seed: Seed = None,
    save: Save = None,
    json: Json = False,
    quiet: Quiet = False,
) -> None:
    """Run a training script until its pace is known, stop it, and report speed, limit, memory and energy."""
    from outpace.records import Comparison, check_writable, to_json, write_atomically
    from outpace.report import measurement as report
    from outpace.verbs import measure as verb
    from outpace.verbs import settings

    asked, _ = speedups_asked(with_)
    effort = settings.effort(
        steps=steps,
        seconds=seconds,
        repeat=repeat if repeat is not None else 3 if versus else 1,
        seed=seed,
        ceilings=ceilings,
        estimate_energy=estimate_energy,
    )
    first = settings.Setting(target, args or [], device, speedups=tuple(asked))
    second = settings.setting(versus, first) if versus is not None else None
    if save is not None:
        check_writable(save)
    with view_of(target, quiet=quiet, json=json) as view:
        found = (
            verb.versus(first, second, effort=effort, view=view, stdout_to_stderr=json)
            if second is not None
            else verb.repeated(first, effort=effort, view=view, stdout_to_stderr=json)
        )
    if save is not None:
        write_atomically(save, to_json(found))
    if json:
        print_json(found)
    elif not quiet:
        text = report.comparison(found) if isinstance(found, Comparison) else report.measurement(found)
        print(f"\n{text}")
        if save is not None:
            print(f"record: {save}")


@app.command(context_settings=SCRIPT, epilog=EPILOG)
def trace(
    target: Target,
    args: Args = None,
    device: OnDevice = "auto",
    fake: Annotated[
        bool, typer.Option("--fake", help="Compute shapes only (PyTorch): for steps too heavy for here.")
    ] = False,
    seed: Seed = None,
    save: Save = None,
    json: Json = False,
    quiet: Quiet = False,
) -> None:
    """Record the operators of one training step: shapes, FLOPs, bytes. A saved trace needs no framework."""
    from outpace.records import check_writable, to_json, write_atomically
    from outpace.report import measurement as report
    from outpace.verbs import trace as verb

    if save is not None:
        check_writable(save)
    with view_of(target, quiet=quiet, json=json) as view:
        found = verb.trace(
            target, args, device=device, fake=fake, seed=seed, view=view, stdout_to_stderr=json
        )
    if save is not None:
        write_atomically(save, to_json(found))
    if json:
        print_json(found)
    elif not quiet:
        print(f"\n{report.trace(found)}")
        if save is not None:
            print(f"record: {save}")


@app.command()
def compare(
    a: Annotated[Path, typer.Argument(help="A measurement saved by outpace measure --save.")],
    b: Annotated[Path, typer.Argument(help="Another one.")],
    save: Save = None,
    json: Json = False,
) -> None:
    """How many times as fast B is as A, with its interval, or that they are not different."""
    from outpace.records import check_writable, to_json, write_atomically
    from outpace.report import measurement as report
    from outpace.verbs import compare as verb

    if save is not None:
        check_writable(save)
    found = verb.compare(a, b)
    if save is not None:
        write_atomically(save, to_json(found))
    if json:
        print_json(found)
    else:
        print(report.comparison(found))
