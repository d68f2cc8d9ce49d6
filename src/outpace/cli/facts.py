"""Commands that tell facts: devices, cards, past runs."""

from __future__ import annotations

import sys
from typing import Annotated

import typer

from outpace import runs
from outpace.cli.app import Json, app, print_json


@app.command()
def devices(json: Json = False) -> None:
    """What is here to train on, as each installed framework sees it."""
    from outpace.verbs.devices import devices as ask

    found = ask()
    if json:
        print_json(found)
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
        print_json(found)
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
        print_json(found[:last])
    elif not found:
        print(f"no runs yet in {runs.folder()}")
    else:
        for run in found[:last]:
            print(text.run_line(run))
    for what in broken:
        print(f"warning: {what}", file=sys.stderr)
