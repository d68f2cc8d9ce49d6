"""The command that says what another card would bring."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Annotated, Any

import typer

from outpace.cli.app import Json, app, print_json, view_of
from outpace.cli.training import EPILOG, SCRIPT, Args, Quiet, Save, Seed

USUAL = "v100-sxm2-32gb,a100-sxm-80gb,h100-sxm-80gb,mi300x,max-1550"


@app.command(context_settings=SCRIPT, epilog=EPILOG)
def predict(
    target: Annotated[
        str, typer.Argument(help="A built-in name, a training script, or a saved trace or measurement.")
    ],
    args: Args = None,
    on: Annotated[str, typer.Option(help="Cards, with commas; 8xCARD is eight of them together.")] = USUAL,
    precision: Annotated[
        str, typer.Option(help="fp32, tf32, fp16-amp or bf16-amp; else as the script has it.")
    ] = "as written",
    samples: Annotated[int | None, typer.Option(help="Samples of the whole training.")] = None,
    epochs: Annotated[float | None, typer.Option(help="Epochs of the whole training.")] = None,
    epoch_samples: Annotated[int | None, typer.Option(help="Samples of one epoch.")] = None,
    price: Annotated[list[str] | None, typer.Option(help="Your own: CARD=USD per hour.")] = None,
    usd_per_kwh: Annotated[float, typer.Option("--usd-per-kwh", help="Add electricity at this price.")] = 0.0,
    measured: Annotated[
        list[Path] | None, typer.Option(help="A measurement of any training, made on a target card.")
    ] = None,
    host_us: Annotated[
        float | None, typer.Option("--host-us", help="Microseconds of the host for one operator call.")
    ] = None,
    power_limit: Annotated[float | None, typer.Option(help="Watts that each card is limited to.")] = None,
    max_batch: Annotated[bool, typer.Option("--max-batch", help="The largest batch that fits.")] = False,
    mode: Annotated[
        str | None, typer.Option(help="How calls are launched: eager, compiled, graphs; else as the script.")
    ] = None,
    stack: Annotated[str | None, typer.Option(help="The software to assume; else the newest known.")] = None,
    seed: Seed = None,
    save: Save = None,
    json: Json = False,
    quiet: Quiet = False,
) -> None:
    """What other cards would bring for this training: time, memory, energy, money, each with an interval."""
    from outpace.prediction.options import Options
    from outpace.records import check_writable, to_json, write_atomically
    from outpace.verbs import predict as verb

    options: dict[str, Any] = {
        "precision": precision,
        "samples": samples,
        "epochs": epochs,
        "epoch_samples": epoch_samples,
        "usd_per_kwh": usd_per_kwh,
        "host_microseconds": host_us,
        "power_limit_watts": power_limit,
        "largest_batch": max_batch,
        "mode": mode,
        "stack": stack,
    }
    Options(**options).check()
    cards = [name.strip() for name in on.split(",") if name.strip()]
    verb.check_cards(cards)
    if save is not None:
        check_writable(save)
    if verb.is_record(target):
        training = verb.load(Path(target))
    else:
        with view_of(target, quiet=quiet, json=json) as view:
            training = verb.traced(target, args, seed=seed, view=view, stdout_to_stderr=json)
    found = verb.predict(training, cards, measured=measured or [], price=price or [], **options)
    assert isinstance(found, list)
    if save is not None:
        write_atomically(save, b"".join(to_json(one) for one in found))
    if json:
        print_json(found)
    elif not quiet:
        from outpace.report import prediction as report

        sys.stdout.write(report.table(found) + "\n")
