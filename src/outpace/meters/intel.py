"""Intel cards by the kernel's hwmon counters (``energy1_input``, microjoules)."""

from __future__ import annotations

from pathlib import Path

from outpace.records import Device

SOURCE = "hwmon energy counter, whole card"
HWMON = Path("/sys/class/hwmon")


def covers(device: Device) -> bool:
    """XPU devices."""
    return device.id.startswith("xpu")


def why_not(device: Device, hwmon: Path = HWMON) -> str | None:
    """Why hwmon gives no energy for *device*."""
    found = [folder for folder in hwmon.glob("hwmon*") if _text(folder / "name") in ("i915", "xe")]
    if not found:
        return "the kernel shows no hwmon of an i915 or xe card (kernel 6.2 or newer; not inside most containers)"
    for folder in found:
        address = (folder / "device").resolve().name
        if device.pci_address and not device.pci_address.endswith(address.lstrip("0")):
            continue
        counters = sorted(folder.glob("energy*_input"))
        if any((_text(counter) or "0") != "0" for counter in counters):
            return None
        return "the energy counter of this card stands at zero or cannot be read"
    return "no hwmon of the kernel has this card's PCI address"


def _text(file: Path) -> str | None:
    try:
        return file.read_text().strip()
    except OSError:
        return None
