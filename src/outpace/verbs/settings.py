"""What is measured, and with how much effort."""

from __future__ import annotations

import math
import re
import shlex
from dataclasses import dataclass, field
from typing import Any

from outpace.errors import UsageError

VERSUS = "--versus takes [NAME=VALUE …] [--device D] [TARGET ARGS]"


@dataclass(frozen=True)
class Setting:
    """What is measured: a training on a device."""

    target: str
    args: list[str] = field(default_factory=list)
    device: str = "auto"
    variables: dict[str, str] = field(default_factory=dict)
    """Environment variables besides those that are set anyway."""
    speedups: tuple[str, ...] = ()

    def __str__(self) -> str:
        variables = [f"{name}={value}" for name, value in self.variables.items()]
        options = [] if self.device == "auto" else ["--device", self.device]
        if self.speedups:
            options += ["--with", ",".join(self.speedups)]
        return " ".join([*variables, *options, self.target, *self.args])


@dataclass(frozen=True)
class Effort:
    """How it is measured."""

    steps: int | None = None
    """To measure after warm-up."""
    seconds: float | None = None
    repeat: int = 1
    """Fresh processes."""
    seed: int | None = None
    trace: bool = True
    measured_ceilings: bool = False
    """Measure the limits of a card too, instead of taking them from its datasheet."""
    estimate_energy: bool = False

    def __post_init__(self) -> None:
        if self.steps is not None and self.steps < 1:
            raise UsageError(f"--steps {self.steps}: at least one step must be measured")
        if self.seconds is not None and not (self.seconds > 0 and math.isfinite(self.seconds)):
            raise UsageError(f"--seconds {self.seconds:g}: a time above zero is needed")
        if self.steps is not None and self.seconds is not None:
            raise UsageError("--steps and --seconds both say when to stop", "give one of them")
        if self.repeat < 1:
            raise UsageError(f"--repeat {self.repeat}: at least one run is needed")


def effort(*, ceilings: str = "datasheet", **how: Any) -> Effort:
    """An `Effort` of the words of the command line.

    Raises:
        UsageError: no such source of ceilings, or a length that cannot be.
    """
    if ceilings not in ("datasheet", "measured"):
        raise UsageError(f"unknown ceilings {ceilings!r}", "one of datasheet, measured")
    return Effort(measured_ceilings=ceilings == "measured", **how)


def setting(text: str, default: Setting) -> Setting:
    """What ``--versus`` names: ``[NAME=VALUE …] [--device D] [TARGET ARGS]``; the rest as in *default*.

    Raises:
        UsageError: it cannot be read, or names nothing.
    """
    try:
        words = shlex.split(text)
    except ValueError as error:
        raise UsageError(f"--versus {text!r} cannot be read: {error}", VERSUS) from error
    variables = {}
    while words and re.fullmatch(r"[A-Za-z_]\w*=.*", words[0], flags=re.DOTALL):
        name, _, value = words.pop(0).partition("=")
        variables[name] = value
    device = None
    if words and words[0].startswith("--device="):
        device = words.pop(0).partition("=")[2]
    elif len(words) > 1 and words[0] == "--device":
        device = words[1]
        del words[:2]
    if words and words[0].startswith("-"):
        raise UsageError(f"--versus {text!r}: {words[0]} is not understood there", VERSUS)
    if not words and not device and not variables:
        raise UsageError(f"--versus {text!r} names nothing else to measure", VERSUS)
    target, args = (words[0], words[1:]) if words else (default.target, default.args)
    return Setting(target, args, device or default.device, variables, default.speedups)
