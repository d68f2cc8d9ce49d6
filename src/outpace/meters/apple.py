"""Apple chips: macOS tells power to root only, through ``powermetrics``."""

from __future__ import annotations

from outpace.records import Device

SOURCE = "powermetrics, whole chip"


def covers(device: Device) -> bool:
    """Apple's GPU and CPU, which are one chip."""
    return device.id == "mps" or device.name.startswith("Apple")


def why_not(device: Device) -> str | None:
    """macOS has no counter that an ordinary process may read."""
    return "macOS tells power to root only: sudo powermetrics"
