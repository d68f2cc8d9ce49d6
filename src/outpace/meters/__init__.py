"""One module per energy source, each a `Meter`; the folder is the registry."""

from __future__ import annotations

import importlib
import pkgutil
from typing import Protocol, cast

from outpace.records import Device


class Meter(Protocol):
    """What a module in this folder offers. It imports its vendor's library inside functions only."""

    SOURCE: str
    """What the figure would be: ``NVML energy counter, whole card``."""

    def covers(self, device: Device) -> bool:
        """Whether this is the source for *device*."""

    def why_not(self, device: Device) -> str | None:
        """Why the energy of *device* cannot be read here, and what would help; ``None`` if it can."""


def names() -> list[str]:
    """The energy sources."""
    return sorted(module.name for module in pkgutil.iter_modules(__path__))


def load(name: str) -> Meter:
    """The meter called *name*."""
    return cast(Meter, importlib.import_module(f"{__name__}.{name}"))


def source_of(device: Device) -> tuple[str | None, str | None]:
    """(source, why there is none): exactly one of the two."""
    for name in names():
        meter = load(name)
        if meter.covers(device):
            missing = meter.why_not(device)
            return (meter.SOURCE, None) if missing is None else (None, missing)
    return None, "no tool of outpace reads the energy of this kind of device"
