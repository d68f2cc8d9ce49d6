"""The CPU package by RAPL (``/sys/class/powercap``)."""

from __future__ import annotations

from pathlib import Path

from outpace.records import Device

SOURCE = "RAPL energy counter, CPU package"
POWERCAP = Path("/sys/class/powercap")


def covers(device: Device) -> bool:
    """The CPU, where it is not an Apple chip."""
    return device.id.startswith("cpu") and not device.name.startswith("Apple")


def why_not(device: Device, powercap: Path = POWERCAP) -> str | None:
    """Why RAPL gives no energy here."""
    packages = sorted(powercap.glob("intel-rapl:[0-9]*"))  # AMD's counters have this name too
    if not packages:
        return "no RAPL counter is here: virtual machines and most containers have none"
    for package in packages:
        counter = package / "energy_uj"
        try:
            int(counter.read_text())
        except PermissionError:
            return f"only root may read {counter}: sudo chmod -R a+r {powercap}/intel-rapl:*"
        except (OSError, ValueError):
            return f"{counter} cannot be read"
    return None
