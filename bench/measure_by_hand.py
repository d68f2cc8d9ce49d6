"""`outpace measure` against loops that time themselves, in the same process and in processes of their own.

Each script is run in turns: by itself, and measured. Of a measured run the script's own clock is read over
the same steps too.

    python bench/measure_by_hand.py [--pairs 7] [--seconds 4]
"""

from __future__ import annotations

import argparse
import importlib.metadata
import itertools
import json
import os
import platform
import statistics
import subprocess
import sys
import tempfile
from collections.abc import Sequence
from pathlib import Path

import outpace
from bench.observe_overhead import interval
from outpace import host
from outpace.records import Measurement

HAND = Path(__file__).parent / "hand"
CASES = {
    "cnn (PyTorch)": ("cnn.py", 450, {}),
    "Keras on TensorFlow": (
        "keras_fit.py",
        450,
        {"KERAS_BACKEND": "tensorflow", "TF_CPP_MIN_LOG_LEVEL": "3"},
    ),
    "JAX": ("jax_mlp.py", 900, {}),
}
#: The share of a run's steps that is taken for warm-up when timing by hand.
WARM_UP = 0.25


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--pairs", type=int, default=7)
    parser.add_argument("--seconds", type=float, default=4.0)
    args = parser.parse_args()
    names = ("torch", "tensorflow-cpu", "keras", "jax")
    print(", ".join(f"{name} {importlib.metadata.version(name)}" for name in names))
    print(f"Python {platform.python_version()}, {host.cpu_name()}, {host.cores():g} cores")
    print(f"{args.pairs} pairs, measured for {args.seconds:g} s after warm-up; ratios of step times\n")
    print(f"{'':<20} {'by hand':>9} {'measured':>9}   same process           process of its own")
    for name, (script, steps, environment) in CASES.items():
        os.environ.update(environment)
        with tempfile.TemporaryDirectory() as folder:
            os.environ["HAND_OUT"] = str(Path(folder) / "out.json")
            case(name, HAND / script, steps, args.pairs, args.seconds)


def case(name: str, script: Path, steps: int, pairs: int, seconds: float) -> None:
    """Measure one script in turns, and print its line."""
    alone, measured, same = [], [], []
    for index in range(pairs):
        for turn in ("alone", "measured") if index % 2 == 0 else ("measured", "alone"):
            if turn == "alone":
                alone.append(by_hand(script, steps))
                continue
            found = outpace.measure(
                str(script),
                [str(50 * steps)],
                seconds=seconds,
                trace=False,
                stdout_to_stderr=True,
            )
            measured.append(found.step_seconds.median)
            same.append(found.step_seconds.median / within(found))
    between = [one / other for one, other in zip(measured, alone, strict=True)]
    by_itself, by_us = statistics.median(alone) * 1e3, statistics.median(measured) * 1e3
    print(f"{name:<20} {by_itself:6.2f} ms {by_us:6.2f} ms   {told(same)}   {told(between)}", flush=True)


def by_hand(script: Path, steps: int) -> float:
    """Median step time of a run without outpace."""
    command = [sys.executable, str(script), str(steps)]
    subprocess.run(command, check=True, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    ends = json.loads(Path(os.environ["HAND_OUT"]).read_text())["ends"]
    return statistics.median(paces(ends[int(WARM_UP * len(ends)) :]))


def within(found: Measurement) -> float:
    """What the script's own clock says of the measured steps: the last ones before it was stopped."""
    ends = json.loads(Path(os.environ["HAND_OUT"]).read_text())["ends"]
    return statistics.median(paces(ends[-found.method.steps :]))


def paces(ends: Sequence[float], every: int = 10) -> list[float]:
    """Mean step times of ten steps each."""
    chosen = ends[::every]
    return [(end - start) / every for start, end in itertools.pairwise(chosen)]


def told(ratios: list[float]) -> str:
    """The median ratio and its 95 % interval."""
    low, high = interval(ratios)
    return f"{statistics.median(ratios):.3f} ({low:.3f} to {high:.3f})"


if __name__ == "__main__":
    main()
