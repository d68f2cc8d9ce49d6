"""Makes ``src/outpace/prediction/coefficients.json`` from the public tables in ../shared/measured.

    python -m bench.traces SET          # first, for each set: see there
    python -m bench.calibrate

Needs NumPy and SciPy. Takes some minutes: the intervals are calibrated by leaving out one card after the
other.
"""

from __future__ import annotations

import math
import statistics
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import msgspec
import numpy as np
from scipy.optimize import nnls

from bench import examples, fit, judging, priors, tables, traces
from bench.examples import Case
from bench.fit import Example
from bench.judging import Judged
from outpace.prediction import one_card
from outpace.prediction.coefficients import Coefficients, Energy
from outpace.prediction.options import Options

PATH = Path(__file__).parent.parent / "src" / "outpace" / "prediction" / "coefficients.json"
SETS = ("transformer_steps", "harness", "image_models", "launch_bound")


def steps() -> list[Case]:
    """All measured steps that a fit may see."""
    return [case for name in SETS for case in examples.cases(name)]


def everything() -> list[Example]:
    """All that the fit sees: steps, single operators, recurrent operators."""
    return [*(case.example for case in steps()), *examples.single_operators(), *examples.recurrent()]


def is_on(example: Example, card: str) -> bool:
    """Whether an example goes out with a card."""
    return example.card.name == card


def rooflines(cases: Sequence[Case], coefficients: Coefficients) -> tuple[dict[str, float], float]:
    """Logarithm of measured time over the bare roofline by the unit that computes most, and its spread."""
    logs: dict[str, list[float]] = {"matrix": [], "vector": []}
    for case in cases:
        if case.row.source == "launch_bound":
            continue
        timed = examples.predicted(case, coefficients)
        unit = "matrix" if timed.step.shares["matrix units"] > timed.step.shares["vector units"] else "vector"
        logs[unit].append(math.log(case.row.seconds / timed.step.roofline))
    medians = {unit: statistics.median(values) for unit, values in logs.items()}
    left = [value - medians[unit] for unit, values in logs.items() for value in values]
    return medians, statistics.pstdev(left)


def fitted_energy(rows: Sequence[tables.Powered], coefficients: Coefficients) -> Energy:
    """Watts at the full limit by what is used, by least squares without negative parts."""
    wide = Energy(**priors.ENERGY)
    sides, watts = [], []
    for row in rows:
        timed = powered(row, coefficients)
        if timed is None or row.limit_watts < 0.99 * (row.card.board_power_watts or 0.0):
            continue
        if row.watts < tables.splits()["energy"]["busy_watts_share"] * row.limit_watts:
            continue
        busy, used = timed
        sides.append([busy, used["vector"], used["memory"]])
        watts.append(row.watts / row.limit_watts - wide.idle)
    if not sides:
        return wide
    # two pseudo-rows hold each coefficient near its prior
    weights = 0.5 * np.eye(3)
    prior = np.array([wide.busy, wide.vector, wide.memory])
    solved, _ = nnls(np.vstack([sides, weights]), np.concatenate([watts, weights @ prior]))
    busy, vector, memory = (round(float(one), 3) for one in solved)
    return msgspec.structs.replace(wide, busy=busy, vector=vector, matrix=vector, memory=memory)


def powered(row: tables.Powered, coefficients: Coefficients) -> tuple[float, dict[str, float]] | None:
    """(share of the time in which kernels run, use of the datasheet's rates) of a training with measured
    power."""
    trace = traces.cached(row.wanted)
    if trace is None:
        return None
    found = one_card.timed(trace, row.card, Options(), coefficients).step
    busy = found.kernels / max(found.seconds, found.kernels)
    return busy, {name: value * busy for name, value in found.used.items()}


def rounded(value: Any) -> Any:
    """Floats with five significant digits, so that the file reads well and small changes of a library do not
    show."""
    if isinstance(value, float):
        return float(f"{value:.5g}")
    if isinstance(value, dict):
        return {name: rounded(value[name]) for name in sorted(value)}
    return [rounded(each) for each in value] if isinstance(value, list) else value


def made_of(found: Sequence[Judged], theta: fit.Theta, cases: Sequence[Case]) -> Coefficients:
    """The coefficients of *theta*, with intervals calibrated on *found*, which were left out."""
    plain = fit.coefficients(theta)
    roofline, spread = rooflines(cases, plain)
    return fit.coefficients(
        theta,
        made_from=sorted({case.row.source for case in cases} | {"ops_fp32", "deepbench_ops", "energy"}),
        roofline=roofline,
        roofline_sd=spread,
        coverage=judging.widening(found),
        energy=fitted_energy(tables.energy(), plain),
    )


def main() -> None:
    """Fit, calibrate the intervals, write the file."""
    cases, every = steps(), everything()
    theta = fit.fit(every)
    judged = [case for case in cases if not case.row.source.startswith("image_models")]
    found = judging.leave_out(every, judged, lambda case: case.row.card.name, is_on, theta)
    made = made_of(found, theta, cases)
    text = msgspec.json.format(msgspec.json.encode(rounded(msgspec.to_builtins(made))), indent=1)
    PATH.write_bytes(text + b"\n")
    print(f"{len(every)} examples, {len(theta)} parameters", file=sys.stderr)


if __name__ == "__main__":
    main()
