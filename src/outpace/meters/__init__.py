"""One module per energy source, each a `Meter`; the folder is the registry.

Modules whose name begins with an underscore are no sources: what the sources share.
"""

from __future__ import annotations

import importlib
import pkgutil
from typing import NamedTuple, Protocol, cast

from outpace.errors import OutpaceError
from outpace.records import Device


class Reading(NamedTuple):
    """What a `Gauge` tells at one moment. What the device does not tell is ``None``, never 0."""

    joules: float | None
    """Since the gauge was opened; ``None``: this meter has only power."""
    watts: float | None = None
    """As the device tells now."""
    clock_hertz: float | None = None
    """Of the cores (NVIDIA's SM clock), now; ``None`` too while they are switched off."""
    clock_limit_hertz: float | None = None
    """The highest that this device can run at."""
    throttled: tuple[str, ...] = ()
    """What holds the clock down now, in plain words: ``power limit``, ``temperature``, ``power brake`` …
    Idling and clocks that somebody set are not throttling."""
    celsius: float | None = None


class Gauge(Protocol):
    """An energy source of one device, opened."""

    @property
    def source(self) -> str:
        """Where the figure comes from: ``NVML energy counter``, ``RAPL`` …"""

    @property
    def scope(self) -> str:
        """What it covers: ``card``, ``card (of which this is a part)``, ``module (GPU and CPU)``,
        ``package``, ``chip``."""

    @property
    def caveat(self) -> str | None:
        """The known error of the source, and what went wrong with it since it was opened."""

    def read(self) -> Reading:
        """The state now.

        Raises:
            OutpaceError: the source fails, or the gauge is closed.
        """

    def close(self) -> None:
        """Let go of the vendor's library. Closing twice does no harm."""


class Meter(Protocol):
    """What a module in this folder offers. It imports its vendor's library inside functions only."""

    SOURCE: str
    """What the figure would be: ``NVML energy counter, whole card``."""

    def covers(self, device: Device) -> bool:
        """Whether this is the source for *device*."""

    def why_not(self, device: Device) -> str | None:
        """Why the energy of *device* cannot be read here, and what would help; ``None`` if it can."""

    def open(self, device: Device) -> Gauge:
        """Start to count the energy of *device*. Takes up to 0.3 s, in which the counter is checked.

        Raises:
            OutpaceError: where `why_not` has a reason.
        """


def names() -> list[str]:
    """The energy sources."""
    return sorted(module.name for module in pkgutil.iter_modules(__path__) if module.name[0] != "_")


def load(name: str) -> Meter:
    """The meter called *name*."""
    return cast(Meter, importlib.import_module(f"{__name__}.{name}"))


def source_of(device: Device) -> tuple[str | None, str | None]:
    """(source, why there is none): exactly one of the two."""
    meter = _covering(device)
    if meter is None:
        return None, NONE_COVERS
    missing = meter.why_not(device)
    return (meter.SOURCE, None) if missing is None else (None, missing)


def open_for(device: Device) -> tuple[Gauge | None, str | None]:
    """(opened gauge, why there is none): exactly one of the two."""
    meter = _covering(device)
    if meter is None:
        return None, NONE_COVERS
    try:
        return meter.open(device), None
    except OutpaceError as error:
        return None, error.what


NONE_COVERS = "no tool of outpace reads the energy of this kind of device"


def _covering(device: Device) -> Meter | None:
    return next((meter for meter in map(load, names()) if meter.covers(device)), None)
