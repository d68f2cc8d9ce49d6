"""Intel cards: the kernel's hwmon counters first, and Level Zero Sysman where those are hidden.

The counter of Sysman was seen to drop back on Arc Pro B60 and B70, is always zero on DG1 and missing for
integrated GPUs; that of the kernel kept counting on the same cards.
"""

from __future__ import annotations

from pathlib import Path

from outpace.meters import Gauge, Reading
from outpace.meters._counting import Counter, Metered, Unreadable, doubt
from outpace.meters.intel import hwmon as kernel
from outpace.meters.intel import sysman
from outpace.meters.intel.clocks import conditions
from outpace.records import Device

SOURCE = "hwmon or Level Zero Sysman energy counter, whole card"
HINT = (
    "kernel 6.2 or newer with /sys/class/hwmon visible, or libze1 and libze-intel-gpu1 for Level Zero Sysman"
)
HWMON = Path("/sys/class/hwmon")
PCI = Path("/sys/bus/pci/devices")

HWMON_CAVEAT = (
    "the kernel extends a 32-bit register at each reading, which wraps after 262 kJ (15 minutes at 300 W), "
    "so it has to be read more often than that"
)
SYSMAN_CAVEAT = "on some cards this counter drops back for a moment, which is left out"


def covers(device: Device) -> bool:
    """XPU devices."""
    return device.id.startswith("xpu")


def why_not(device: Device, hwmon: Path = HWMON) -> str | None:
    """Why neither hwmon nor Sysman gives the energy of *device*."""
    try:
        _checked(device, hwmon)
    except Unreadable as reason:
        return str(reason)
    return None


def open(device: Device, hwmon: Path = HWMON) -> Gauge:
    """The energy counter of the card of *device*, or of its package where the card has none.

    Raises:
        OutpaceError: where `why_not` has a reason.
    """
    try:
        source, scope, caveat, counter, pci = _checked(device, hwmon)
    except Unreadable as reason:
        raise reason.refusal(device, HINT) from reason
    return Metered(
        source=source,
        scope=f"{scope} (of which this is a part)" if _is_part(device) else scope,
        caveat=caveat,
        state=lambda: conditions(pci) if pci is not None else Reading(joules=None),
        counters=[counter],
        errors=(OSError, ValueError, Unreadable),
    )


def _checked(device: Device, hwmon: Path) -> tuple[str, str, str, Counter, Path | None]:
    """(source, scope, caveat, counter, folder of the PCI device) of the first source that counts."""
    try:
        scope, counter, pci = kernel.find(device, hwmon)
        _believe(counter)
    except Unreadable as reason:
        first = reason
    else:
        return "hwmon energy counter", scope, HWMON_CAVEAT, counter, pci
    try:
        scope, counter, address = sysman.find(device)
        _believe(counter)
    except Unreadable as reason:
        raise Unreadable(f"{first}; Level Zero Sysman: {reason}") from reason
    folder = PCI / address
    return (
        "Level Zero Sysman energy counter",
        scope,
        SYSMAN_CAVEAT,
        counter,
        folder if folder.exists() else None,
    )


def _believe(counter: Counter) -> None:
    try:
        reason = doubt(counter)  # neither source tells power to compare with
    except (OSError, ValueError) as error:
        reason = f"the energy counter of this card cannot be read: {error}"
    if reason is not None:
        raise Unreadable(reason)


def _is_part(device: Device) -> bool:
    """Whether the device is one of two stacks, which the runtime shows as devices of their own."""
    return "stack" in (device.card or "")
