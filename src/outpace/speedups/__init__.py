"""What can make a training faster, one module each; this folder is the registry.

A speed-up is a module with:

- ``SLOT``: what it works on (`SLOTS`); of one slot, one speed-up at a time is applied.
- ``EFFECT`` on the mathematics (`EFFECTS`): ``same`` bits, other ``rounding``, or ``different``.
- ``WITH``, if need be: others beside which it may gain where it gains nothing alone.
- ``LINES``: what a person would write to have it in their own code.
- ``torch(tell)``: the `Part` that does it in a PyTorch training; raises an `OutpaceError` that says why it
  cannot.
"""

from __future__ import annotations

import importlib
import pkgutil
from collections.abc import Callable, Iterable
from typing import Any, Protocol

from outpace.errors import UsageError

#: In the order in which they are applied and looked for.
SLOTS = ("data", "threads", "precision", "products", "layout", "kernels", "optimizer", "denormals", "compile")
EFFECTS = ("same", "rounding", "different")

Tell = Callable[[str], None]
"""Takes one sentence: the speed-up has taken effect, and how that shows."""


class Speedup(Protocol):
    """What a module of this folder has."""

    SLOT: str
    EFFECT: str
    LINES: str
    __doc__: str | None

    def torch(self, tell: Tell) -> Part: ...


class Part:
    """A speed-up at work in one PyTorch training; by default it does nothing.

    A "model" is a module that the script itself calls, not one inside of another.
    """

    reason: str | None = None
    """Why it has had no effect so far, once that is known."""

    def on(self) -> None:
        """It acts from here on: at the beginning, or between two steps."""

    def off(self, models: Iterable[Any]) -> None:
        """What follows is as if it had never been on; *models* are those that the script has called."""

    def batches(self, loader: Any, iterator: Any) -> None:
        """*iterator* is about to go through *loader*, or is on its way when the speed-up is switched on."""

    def model(self, module: Any) -> None:
        """*module* is about to be called in training for the first time since it is on."""

    def around(self, module: Any, call: Callable[..., Any]) -> Callable[..., Any]:
        """What to call instead of *call*, in training."""
        return call

    def enter(self, module: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> tuple[Any, Any]:
        """*module* is being called in training; returns the arguments it shall get."""
        return args, kwargs

    def leave(self, module: Any, result: Any) -> Any:
        """The call is over; returns what the script shall get."""
        return result

    def loss_ready(self) -> None:
        """The loss is computed, or what was computed since the last call will have none."""

    def step(self, optimizer: Any) -> None:
        """*optimizer* is about to step."""


def names() -> list[str]:
    """All speed-ups, by slot."""
    found = [module.name.replace("_", "-") for module in pkgutil.iter_modules(__path__)]
    return sorted(found, key=lambda name: (SLOTS.index(load(name).SLOT), name))


def load(name: str) -> Speedup:
    """The module of a speed-up."""
    module: Any = importlib.import_module(f"outpace.speedups.{name.replace('-', '_')}")
    return module  # type: ignore[no-any-return]


def pairs() -> list[tuple[str, ...]]:
    """Those that may gain only together: a module says with which others in ``WITH``."""
    return [(name, other) for name in names() for other in getattr(load(name), "WITH", ())]


def chosen(text: str | Iterable[str]) -> list[str]:
    """The names in *text*, which commas separate, in the order in which they are applied.

    Raises:
        UsageError: no such speed-up, or two for one slot.
    """
    asked = [name.strip() for name in text.split(",")] if isinstance(text, str) else list(text)
    known = names()
    for name in asked:
        if name not in known:
            raise UsageError(f"unknown speed-up {name!r}", f"one or several of {', '.join(known)}")
    result = [name for name in known if name in asked]
    slots: dict[str, str] = {}
    for name in result:
        before = slots.setdefault(load(name).SLOT, name)
        if before != name:
            raise UsageError(f"{before} and {name} cannot both be applied", "leave one of them out")
    return result
