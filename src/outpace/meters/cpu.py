"""The CPU package by RAPL (``/sys/class/powercap``)."""

from __future__ import annotations

import re
from pathlib import Path

from outpace.meters import Gauge, Reading
from outpace.meters._counting import Counter, Metered, Unreadable, doubt
from outpace.records import Device

SOURCE = "RAPL energy counter, CPU package"
HINT = "sudo chmod -R a+r /sys/class/powercap/intel-rapl:* (until the next start); virtual machines have none"
POWERCAP = Path("/sys/class/powercap")
CAVEAT = (
    "covers the whole package with the work of other processes, and not the memory; it wraps (often after "
    "262 kJ, 20 minutes at 200 W), so it has to be read more often than that"
)
#: Two dies whose counters differ by less read the same register, a moment apart.
SAME_JOULES = 1.0


def covers(device: Device) -> bool:
    """The CPU, where it is not an Apple chip."""
    return device.id.startswith("cpu") and not device.name.startswith("Apple")


def why_not(_device: Device, powercap: Path = POWERCAP) -> str | None:
    """Why RAPL gives no energy here; it is the same for every name of the CPU."""
    try:
        _checked(powercap)
    except Unreadable as reason:
        return str(reason)
    return None


def open(device: Device, powercap: Path = POWERCAP) -> Gauge:
    """The sum over the CPU packages of this machine.

    Raises:
        OutpaceError: where `why_not` has a reason.
    """
    try:
        counters = _checked(powercap)
    except Unreadable as reason:
        raise reason.refusal(device, HINT) from reason
    return Metered(
        source="RAPL",
        scope="package" if len(counters) == 1 else f"package (all {len(counters)} of them)",
        caveat=CAVEAT,
        state=lambda: Reading(joules=None),
        counters=counters,
    )


def _checked(powercap: Path) -> list[Counter]:
    """The counters of all packages, each seen to move."""
    # AMD's counters have this name too. Left out: intel-rapl:0:0 is a part of a package, intel-rapl-mmio:0
    # the same package again by another way, psys the whole board, dram the memory.
    domains = sorted(
        path for path in powercap.glob("intel-rapl:*") if re.fullmatch(r"intel-rapl:\d+", path.name)
    )
    named = {path: _name(path) for path in domains}
    packages = {path: name for path, name in named.items() if name.startswith("package")}
    if not packages:
        raise Unreadable("no RAPL counter is here: virtual machines and most containers have none")
    counters = {path: Counter(lambda path=path: _joules(path), _range(path)) for path in packages}  # type: ignore[misc]
    for path, counter in counters.items():
        try:
            counter.read()
        except PermissionError:
            raise Unreadable(
                f"only root may read {path / 'energy_uj'}: sudo chmod -R a+r {powercap}/intel-rapl:*"
            ) from None
        except (OSError, ValueError):
            raise Unreadable(f"{path / 'energy_uj'} cannot be read") from None
    distinct = _distinct(packages, counters)
    for counter in distinct:
        reason = doubt(counter)
        if reason is not None:
            raise Unreadable(reason)
    return distinct


def _distinct(packages: dict[Path, str], counters: dict[Path, Counter]) -> list[Counter]:
    """One counter per register: on AMD's chips of several dies (Threadripper), each die shows the counter of
    the whole socket, and their sum is a multiple of the truth."""
    kept: dict[Path, Counter] = {}
    for path, counter in counters.items():
        socket = packages[path].partition("-die")[0]
        mirrored = any(
            packages[other].partition("-die")[0] == socket
            and abs(first.read() - counter.read()) < SAME_JOULES
            for other, first in kept.items()
        )
        if not mirrored:
            kept[path] = counter
    return list(kept.values())


def _name(path: Path) -> str:
    try:
        return (path / "name").read_text().strip()
    except OSError:
        return "package"


def _joules(path: Path) -> float:
    return int((path / "energy_uj").read_text()) / 1e6


def _range(path: Path) -> float | None:
    try:
        return int((path / "max_energy_range_uj").read_text()) / 1e6
    except (OSError, ValueError):
        return None
