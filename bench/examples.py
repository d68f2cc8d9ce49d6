"""The rows of the public tables as examples to fit to, and how a product prediction compares with each."""

from __future__ import annotations

import functools
from typing import NamedTuple

from bench import tables
from bench.fit import Example
from bench.tables import Row
from outpace.prediction import one_card
from outpace.prediction.coefficients import Coefficients
from outpace.prediction.launches import MODES
from outpace.prediction.one_card import Timed
from outpace.prediction.options import Options
from outpace.records import Trace

assert MODES[0] == "eager"

#: Standard deviation of the logarithm of a label and of what no model of operators knows, by set.
NOISE = {"harness": 0.06, "image_models": 0.12, "launch_bound": 0.15, "transformer_steps": 0.05}

#: Of a batch of twelve images (7.2 MB) from pageable memory, at some 3 GB/s.
COPY_SECONDS = 0.0024


class Case(NamedTuple):
    """A measured row, its trace, and the example that a fit takes from it."""

    row: Row
    trace: Trace
    example: Example


@functools.cache
def cases(name: str) -> tuple[Case, ...]:
    """The rows of one set whose traces have been made."""
    untouched = name == "untouched_images"
    rows = tables.image_models() if untouched else getattr(tables, name)()
    apart = tables.splits()["untouched"]["image_families"]
    found = []
    for row in rows:
        if row.source.startswith("image_models") and (row.family in apart) != untouched:
            continue
        trace = tables.trace_for(row)
        if trace is None:
            continue
        operators = one_card.operators_on(trace, row.card, "as written")
        noise = NOISE.get(name, 0.1)
        waits = COPY_SECONDS if name == "launch_bound" else 0.0
        example = Example(
            operators, row.card, row.seconds, row.stack, noise, system=f"{name} {row.system}", waits=waits
        )
        found.append(Case(row, trace, example))
    return tuple(found)


@functools.cache
def single_operators(most: int = 40) -> tuple[Example, ...]:
    """The microbenchmarks; their launch latency is estimated apart for each device."""
    return tuple(
        Example([operator], card, seconds, "pytorch 2", 0.3, floor=device)
        for device, operator, card, seconds in tables.single_operators(most)
    )


@functools.cache
def recurrent() -> tuple[Example, ...]:
    """DeepBench's RNNs."""
    return tuple(
        Example([operator], card, seconds, "deepbench", 0.5, floor=f"rnn {card.name}")
        for operator, card, seconds, _ in tables.recurrent()
    )


def predicted(case: Case, coefficients: Coefficients, **options: object) -> Timed:
    """What the product says for a row, with the stack that it was measured with where the fit knew that."""
    stack = case.row.stack if case.row.stack in coefficients.stacks else None
    return one_card.timed(case.trace, case.row.card, Options(stack=stack, **options), coefficients)  # type: ignore[arg-type]
