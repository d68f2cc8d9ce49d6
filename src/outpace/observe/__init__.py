"""One module (or package) per framework, each an `Observer`; the folder is the registry."""

from __future__ import annotations

import importlib
import pkgutil
from collections.abc import Iterator
from typing import Protocol, cast

from outpace.records import Device
from outpace.watcher import Watch


class Observer(Protocol):
    """What a module in this folder offers. It imports its framework inside functions only."""

    IMPORTS: tuple[str, ...]
    """Modules whose first import by the script calls `attach`."""

    def why_not(self) -> str | None:
        """Why the framework cannot be used here (not installed, broken), or ``None``."""

    def devices(self) -> list[Device]:
        """The devices as the framework sees them. Imports the framework."""

    def attach(self, watch: Watch) -> None:
        """Report training steps to *watch* from now on. The framework has just been imported.

        Raises:
            OutpaceError: the device that the job asks for is not here.
        """


def names() -> list[str]:
    """The frameworks that can be observed."""
    return sorted(module.name for module in pkgutil.iter_modules(__path__))


def load(name: str) -> Observer:
    """The observer called *name*."""
    return cast(Observer, importlib.import_module(f"{__name__}.{name}"))


def all_observers() -> Iterator[tuple[str, Observer]]:
    """Every observer with its name."""
    for name in names():
        yield name, load(name)
