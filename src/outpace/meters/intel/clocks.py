"""Clock, throttling and temperature of an Intel card, from the kernel's files of its PCI device."""

from __future__ import annotations

from pathlib import Path

from outpace.meters import Reading

#: Endings of ``reason_…`` (xe) and ``throttle_reason_…`` (i915).
REASONS = {
    "pl1": "power limit",
    "pl2": "power limit",
    "pl4": "current limit",
    "thermal": "temperature",
    "prochot": "external signal",
    "ratl": "temperature",
    "vr_thermalert": "temperature",
    "vr_tdc": "current limit",
}
#: Where a driver has the clock of the first tile's compute engines: folder, now, highest, throttle reasons.
DRIVERS = (
    ("tile0/gt0/freq0", "act_freq", "rp0_freq", "throttle/reason_"),
    ("drm/card*/gt/gt0", "rps_act_freq_mhz", "rps_RP0_freq_mhz", "throttle_reason_"),
)


def conditions(pci: Path) -> Reading:
    """What the kernel tells of the card in the folder *pci*, but its energy; a clock of 0 is an engine that
    is switched off."""
    celsius = _celsius(pci)
    for pattern, now, highest, reasons in DRIVERS:
        for folder in sorted(pci.glob(pattern)):
            megahertz, limit = _number(folder / now), _number(folder / highest)
            words = [word for ending, word in REASONS.items() if _number(folder / f"{reasons}{ending}")]
            return Reading(
                joules=None,
                clock_hertz=megahertz * 1e6 if megahertz else None,
                clock_limit_hertz=limit * 1e6 if limit else None,
                throttled=tuple(dict.fromkeys(words)),
                celsius=celsius,
            )
    return Reading(joules=None, celsius=celsius)


def _celsius(pci: Path) -> float | None:
    """Of the package: that of the memory has the label ``vram``."""
    for file in sorted(pci.glob("hwmon/hwmon*/temp*_input")):
        try:
            label = file.with_name(file.name.replace("_input", "_label")).read_text().strip()
        except OSError:
            label = ""
        degrees = _number(file)
        if label != "vram" and degrees:
            return degrees / 1e3
    return None


def _number(file: Path) -> int | None:
    try:
        return int(file.read_text())
    except (OSError, ValueError):
        return None
