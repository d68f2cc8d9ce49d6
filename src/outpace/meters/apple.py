"""Apple chips: macOS tells power to root only, but its energy model to ``zeus-apple-silicon``."""

from __future__ import annotations

from typing import Any

from outpace.meters import Gauge, Reading
from outpace.meters._counting import Counter, Metered, Unreadable, doubt
from outpace.records import Device

SOURCE = "IOReport energy model, whole chip"
HINT = "pip install zeus-apple-silicon"
CAVEAT = "Apple estimates these figures from use, clock and voltage, and calls them possibly inaccurate"
#: The parts of the chip that do not contain each other, in millijoules.
PARTS = ("cpu_total_mj", "gpu_mj", "gpu_sram_mj", "ane_mj", "dram_mj")


def covers(device: Device) -> bool:
    """Apple's GPU and CPU, which are one chip."""
    return device.id == "mps" or device.name.startswith("Apple")


def why_not(_device: Device) -> str | None:
    """Without that package, macOS has no counter that an ordinary process may read."""
    try:
        _checked()
    except Unreadable as reason:
        return str(reason)
    return None


def open(device: Device) -> Gauge:
    """The energy of CPU, GPU, neural engine and memory together.

    Raises:
        OutpaceError: where `why_not` has a reason.
    """
    try:
        counter = _checked()
    except Unreadable as reason:
        raise reason.refusal(device, HINT) from reason
    return Metered(
        source="IOReport energy model",
        scope="chip",
        caveat=CAVEAT,
        state=lambda: Reading(joules=None),
        counters=[counter],
        errors=(RuntimeError,),
    )


def _checked() -> Counter:
    try:
        import zeus_apple_silicon as apple  # type: ignore[import-not-found, import-untyped, unused-ignore]
    except ImportError:
        raise Unreadable(
            "macOS tells power to root only (sudo powermetrics); without root: pip install zeus-apple-silicon"
        ) from None
    try:
        monitor = apple.AppleEnergyMonitor()
        counter = Counter(lambda: _joules(monitor.get_cumulative_energy()))
        reason = doubt(counter)
    except RuntimeError as error:
        raise Unreadable(f"the energy model of this chip cannot be read: {error}") from error
    if reason is not None:
        raise Unreadable(reason)
    return counter


def _joules(metrics: Any) -> float:
    """A part that this chip does not tell is ``None``."""
    return sum(getattr(metrics, part, None) or 0 for part in PARTS) / 1e3
