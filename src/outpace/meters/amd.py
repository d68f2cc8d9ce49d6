"""AMD cards by the package ``amdsmi``, which comes with ROCm."""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Mapping
from typing import Any

from outpace.meters import Gauge, Reading
from outpace.meters._counting import Counter, Metered, Unreadable, doubt
from outpace.records import Device
from outpace.visible import same_card

SOURCE = "amdsmi energy counter (where it is frozen: power, integrated), whole card"
HINT = "pip install /opt/rocm/share/amd_smi, and see whether `amd-smi metric --energy --power` tells anything"
CAVEAT = "on MI100 and with old ROCm the counter may be frozen or absurd, which is checked when it is opened"
POWER_CAVEAT = "power is summed up between readings, so what happens faster than those is missed"
SECOND_DIE = "the second die of a MI250 tells no energy: that of the whole card is told with the first one"

#: Counters of gpu_metrics that grow while something holds the clock down (MI300 and newer).
RESIDENCIES = {
    "ppt_residency_acc": "power limit",
    "socket_thm_residency_acc": "temperature",
    "hbm_thm_residency_acc": "temperature",
    "vr_thm_residency_acc": "temperature",
    "prochot_residency_acc": "external signal",
}

#: Who uses amdsmi now. Unlike NVML it does not count its starts, so that one `why_not` would shut it down
#: under an open gauge.
_users = 0


def covers(device: Device) -> bool:
    """ROCm devices, which PyTorch calls ``cuda``."""
    return device.id.startswith("cuda") and (device.driver or "").startswith("ROCm")


def why_not(device: Device) -> str | None:
    """Why amdsmi gives no energy for *device*."""
    try:
        amdsmi = _started()
    except Unreadable as reason:
        return str(reason)
    try:
        _usable(amdsmi, device)
    except (Unreadable, amdsmi.AmdSmiException) as reason:
        return str(reason)
    finally:
        _stop(amdsmi)
    return None


def open(device: Device) -> Gauge:
    """The energy counter of the card of *device*, or its power summed up at each reading.

    Raises:
        OutpaceError: where `why_not` has a reason.
    """
    try:
        amdsmi = _started()
    except Unreadable as reason:
        raise reason.refusal(device, HINT) from reason
    try:
        return _gauge(amdsmi, device, *_usable(amdsmi, device))
    except (Unreadable, amdsmi.AmdSmiException) as reason:
        _stop(amdsmi)
        raise Unreadable(reason).refusal(device, HINT) from reason


def _gauge(amdsmi: Any, device: Device, handle: Any, missing: str | None) -> Metered:
    """A gauge of the card; *missing*: why its counter is of no use."""
    if missing is None and _watts(amdsmi, handle) is not None:
        missing = doubt(_counter(amdsmi, handle), lambda: _watts(amdsmi, handle))
    return Metered(
        source="amdsmi energy counter" if missing is None else "amdsmi power, integrated",
        scope="card (of which this is a part)" if _is_part(amdsmi, device, handle) else "card",
        caveat=CAVEAT if missing is None else f"{POWER_CAVEAT}; {missing}",
        state=_state(amdsmi, handle),
        counters=[_counter(amdsmi, handle)] if missing is None else [],
        release=lambda: _stop(amdsmi),
        errors=(amdsmi.AmdSmiException,),
    )


def _started() -> Any:
    """amdsmi, initialised; every start needs a `_stop`."""
    global _users
    try:
        with contextlib.redirect_stdout(None):  # where it misses its library, it prints so
            import amdsmi  # type: ignore[import-not-found, import-untyped, unused-ignore]
    except (ImportError, KeyError, OSError, AttributeError):  # its own look-up of the library fails, or
        # the package is of another release than ROCm
        raise Unreadable(
            "amdsmi is missing; it comes with ROCm: pip install /opt/rocm/share/amd_smi"
        ) from None
    try:
        if not _users:
            amdsmi.amdsmi_init()
    except amdsmi.AmdSmiException as error:
        raise Unreadable(f"amdsmi does not start: {error}") from error
    _users += 1
    return amdsmi


def _stop(amdsmi: Any) -> None:
    global _users
    _users -= 1
    if not _users:
        amdsmi.amdsmi_shut_down()


def _usable(amdsmi: Any, device: Device) -> tuple[Any, str | None]:
    """(handle of the card of *device*, why its counter is of no use and power must serve)."""
    try:
        handles = amdsmi.amdsmi_get_processor_handles()
        # the order of HIP differs from that of amdsmi (MI350X), so only the address names a card
        addressed = (h for h in handles if same_card(amdsmi.amdsmi_get_gpu_device_bdf(h), device.pci_address))
        handle = next(addressed, None)
    except amdsmi.AmdSmiException as error:
        raise Unreadable(f"amdsmi does not list its cards: {error}") from error
    if handle is None:
        raise Unreadable("amdsmi lists no card with this PCI address")
    missing = None
    try:
        if _counter(amdsmi, handle).read() <= 0:
            missing = "the energy counter of this card stands at zero"
    except amdsmi.AmdSmiException as error:
        missing = f"this card or driver has no energy counter ({error})"
    if _watts(amdsmi, handle) is None:
        missing = missing or doubt(_counter(amdsmi, handle))
        if missing and "MI250" in device.name:
            raise Unreadable(SECOND_DIE)
        if missing:
            raise Unreadable(f"{missing}, and it tells no power")
    return handle, missing


def _counter(amdsmi: Any, handle: Any) -> Counter:
    def joules() -> float:
        count = amdsmi.amdsmi_get_energy_count(handle)
        steps = count.get("energy_accumulator", count.get("power", 0))  # "power" before ROCm 6.2
        return float(steps * count.get("counter_resolution", 15.3)) / 1e6  # a step: 15.3 uJ

    return Counter(joules)


def _watts(amdsmi: Any, handle: Any) -> float | None:
    """What the card draws now. MI300X tells no average, MI210 only that; the second die of a MI250 0 W."""
    told = _asked(amdsmi, "amdsmi_get_power_info", handle) or {}
    for name in ("current_socket_power", "average_socket_power", "socket_power"):
        if watts := _number(told.get(name)):
            return watts
    return None


def _state(amdsmi: Any, handle: Any) -> Callable[[], Reading]:
    """Reads power, clock, temperature, and what throttled since the reading before."""
    clock = getattr(amdsmi, "AmdSmiClkType", None)
    clocks = _asked(amdsmi, "amdsmi_get_clock_info", handle, clock.GFX) if clock is not None else None
    limit = _number((clocks or {}).get("max_clk"))
    before: Mapping[str, Any] = {}

    def state() -> Reading:
        nonlocal before
        told = _asked(amdsmi, "amdsmi_get_gpu_metrics_info", handle) or {}
        megahertz = _number(told.get("current_gfxclk"))
        reading = Reading(
            joules=None,
            watts=_watts(amdsmi, handle),
            clock_hertz=megahertz * 1e6 if megahertz else None,
            clock_limit_hertz=limit * 1e6 if limit else None,
            throttled=throttled(before, told),
            celsius=_number(told.get("temperature_hotspot")),
        )
        before = told
        return reading

    return state


def throttled(before: Mapping[str, Any], now: Mapping[str, Any]) -> tuple[str, ...]:
    """What held the clock down between two readings of gpu_metrics, in plain words."""
    words = []
    for name, word in RESIDENCIES.items():
        start, end = _number(before.get(name)), _number(now.get(name))
        if start is not None and end is not None and end > start:
            words.append(word)
    # amdsmi folds the bits that say why into one yes or no
    if not words and now.get("indep_throttle_status") is True:
        words.append("the driver does not say why")
    return tuple(dict.fromkeys(words))


def _is_part(amdsmi: Any, device: Device, handle: Any) -> bool:
    """Whether the framework's device is less than the card: a die of a MI250, a partition of a MI300X."""
    if "MI250" in device.name:
        return True
    partition = _asked(amdsmi, "amdsmi_get_gpu_compute_partition", handle)
    return partition in ("DPX", "TPX", "QPX", "CPX")


def _asked(amdsmi: Any, function: str, *arguments: Any) -> Any:
    """The answer, or ``None``: releases differ in functions, cards in answers."""
    call = getattr(amdsmi, function, None)
    if call is None:
        return None
    try:
        return call(*arguments)
    except amdsmi.AmdSmiException:
        return None


def _number(value: Any) -> float | None:
    """amdsmi says ``N/A`` for what a card does not tell."""
    return float(value) if isinstance(value, (int, float)) and not isinstance(value, bool) else None
