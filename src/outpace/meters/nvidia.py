"""NVIDIA cards by NVML (the package ``nvidia-ml-py``)."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any, NamedTuple

from outpace.meters import Gauge, Reading
from outpace.meters._counting import Counter, Metered, Unreadable, doubt
from outpace.records import Device
from outpace.visible import Physical, same_card

SOURCE = "NVML energy counter (where it is missing: power, integrated), whole card"
HINT = "pip install nvidia-ml-py, and see whether nvidia-smi lists the card with its power"

SAMPLED = (
    "on A100 and H100 only 25 % of the time is sampled, and most cards since Ampere tell power as an average "
    "over 1 s: windows of many seconds, several repeats (arXiv 2312.02741)"
)
COUNTER_CAVEAT = f"if the counter sums up what the power sensor sees, the sensor's error is in it: {SAMPLED}"
MODULE = "module (GPU and CPU)"
MODULE_CAVEAT = "on GH200 the counter covers the whole module; on later ones this is assumed"

#: Bits of NVML's clock event reasons that slow a card down. Not among them: idle (0x1), clocks that somebody
#: set (0x2, 0x100), and the voltage limit (0x400), at which a healthy card runs at full clock.
THROTTLED = {
    0x04: "power limit",
    0x10: "sync boost",
    0x20: "temperature",
    0x40: "temperature",
    0x80: "power brake",
    0x200: "board limit",
}
HARDWARE_SLOWDOWN = 0x08  # comes with 0x40 or 0x80, which say why


class _Card(NamedTuple):
    handle: Any
    part: bool = False
    """Asked for a MIG slice; NVML counts its card."""


def covers(device: Device) -> bool:
    """CUDA devices, but not AMD's, which PyTorch calls ``cuda`` too."""
    return device.id.startswith("cuda") and not (device.driver or "").startswith("ROCm")


def why_not(device: Device) -> str | None:
    """Why NVML gives no energy for *device*."""
    try:
        nvml = _started()
    except Unreadable as reason:
        return str(reason)
    try:
        _usable(nvml, device)
    except (Unreadable, nvml.NVMLError) as reason:
        return str(reason)
    finally:
        nvml.nvmlShutdown()
    return None


def open(device: Device) -> Gauge:
    """The energy counter of the card of *device*, or its power summed up at each reading.

    Raises:
        OutpaceError: where `why_not` has a reason.
    """
    try:
        nvml = _started()
    except Unreadable as reason:
        raise reason.refusal(device, HINT) from reason
    try:
        return _gauge(nvml, *_usable(nvml, device))
    except (Unreadable, nvml.NVMLError) as reason:
        nvml.nvmlShutdown()
        raise Unreadable(reason).refusal(device, HINT) from reason


def _gauge(nvml: Any, card: _Card, missing: str | None) -> Metered:
    """A gauge of *card*; *missing*: why its counter is of no use."""
    handle = card.handle
    module = _is_module(nvml, handle)
    powered_module = module and _watts(nvml, handle, module=True) is not None

    def state(of_module: bool) -> Reading:
        return Reading(
            joules=None,
            watts=_watts(nvml, handle, module=of_module),
            clock_hertz=_megahertz(nvml, "nvmlDeviceGetClockInfo", handle),
            clock_limit_hertz=_megahertz(nvml, "nvmlDeviceGetMaxClockInfo", handle),
            throttled=throttled(_reasons(nvml, handle)),
            celsius=_asked(nvml, "nvmlDeviceGetTemperature", handle, 0)[0],
        )

    watts = _watts(nvml, handle, module=powered_module)
    if missing is None and watts is not None:
        missing = doubt(_counter(nvml, handle), lambda: _watts(nvml, handle, module=powered_module))
    counted = missing is None
    of_module = module if counted else powered_module  # without module power, a sum of power is the card's
    scope = MODULE if of_module else "card"
    caveats = [COUNTER_CAVEAT if counted else SAMPLED, missing, MODULE_CAVEAT if of_module else None]
    return Metered(
        source="NVML energy counter" if counted else "NVML power, integrated",
        scope=f"{scope} (of which this is a part)" if card.part else scope,
        caveat="; ".join(filter(None, caveats)),
        state=lambda: state(of_module),
        counters=[_counter(nvml, handle)] if counted else [],
        release=nvml.nvmlShutdown,
        errors=(nvml.NVMLError,),
    )


def _counter(nvml: Any, handle: Any) -> Counter:
    return Counter(lambda: float(nvml.nvmlDeviceGetTotalEnergyConsumption(handle)) / 1e3)  # mJ


def throttled(reasons: int) -> tuple[str, ...]:
    """NVML's bits of clock event *reasons* in plain words, each once."""
    words = [word for bit, word in THROTTLED.items() if reasons & bit]
    if reasons & HARDWARE_SLOWDOWN and not reasons & 0xC0:
        words.append("hardware slowdown")
    return tuple(dict.fromkeys(words))


def cards() -> list[Physical]:
    """The cards as NVML lists them, by PCI address; empty where NVML cannot be asked."""
    try:
        nvml = _started()
    except Unreadable:
        return []
    try:
        return [
            Physical(
                uuid=_text(nvml.nvmlDeviceGetUUID(handle)),
                pci_address=_text(nvml.nvmlDeviceGetPciInfo(handle).busId),
                name=_text(nvml.nvmlDeviceGetName(handle)),
            )
            for handle in _handles(nvml)
        ]
    except nvml.NVMLError:
        return []
    finally:
        nvml.nvmlShutdown()


def _started() -> Any:
    """NVML, initialised; it counts how often, so every start needs its own shutdown."""
    try:
        import pynvml  # type: ignore[import-not-found, import-untyped, unused-ignore]
    except ImportError:
        raise Unreadable("NVML is read through the package nvidia-ml-py: pip install nvidia-ml-py") from None
    try:
        pynvml.nvmlInit()
    except pynvml.NVMLError as error:
        raise Unreadable(f"NVML does not start: {error}") from error
    return pynvml


def _usable(nvml: Any, device: Device) -> tuple[_Card, str | None]:
    """(the card of *device*, why its counter is of no use and power must serve)."""
    try:
        card = _find(nvml, device)
    except nvml.NVMLError as error:
        raise Unreadable(f"NVML does not list its cards: {error}") from error
    if card is None:
        raise Unreadable("NVML lists no card with this UUID or PCI address")
    if _asked(nvml, "nvmlDeviceGetVirtualizationMode", card.handle)[0] == 2:
        raise Unreadable("this is a virtual GPU, whose card is counted on the host only")
    counted, why = _asked(nvml, "nvmlDeviceGetTotalEnergyConsumption", card.handle)
    missing = None
    if counted is None:
        missing = f"this card or driver has no energy counter ({why}); cards before Volta have none"
    elif not counted:
        missing = "the energy counter of this card stands at zero"
    if _watts(nvml, card.handle, module=False) is None:
        missing = missing or doubt(_counter(nvml, card.handle))
        if missing:
            raise Unreadable(f"{missing}, and it tells no power")
    return card, missing


def _find(nvml: Any, device: Device) -> _Card | None:
    """The card by UUID or PCI address: its index differs between CUDA and NVML."""
    uuid = (device.uuid or "").lower()
    slice_named = uuid.startswith("mig-") or " MIG " in f" {device.name} "
    if uuid.startswith("mig-gpu-"):  # before driver 470: MIG-GPU-<card>/<instance>/<instance>
        uuid = uuid[4:].partition("/")[0]
    for index in range(nvml.nvmlDeviceGetCount()):
        # a card that is lost, or that this container may not see, is no reason to miss the others
        handle = _asked(nvml, "nvmlDeviceGetHandleByIndex", index)[0]
        pci = _asked(nvml, "nvmlDeviceGetPciInfo", handle)[0] if handle is not None else None
        if pci is None:
            continue
        own, address = _text(_asked(nvml, "nvmlDeviceGetUUID", handle)[0]), _text(pci.busId)
        if same_card(own, uuid) or same_card(address, device.pci_address):
            modes = _asked(nvml, "nvmlDeviceGetMigMode", handle)[0]
            return _Card(handle, part=slice_named or bool(modes and modes[0]))
        # PyTorch leaves the MIG- out
        if any(
            name.lower().removeprefix("mig-") == uuid.removeprefix("mig-") for name in _slices(nvml, handle)
        ):
            return _Card(handle, part=True)
    return None


def _slices(nvml: Any, handle: Any) -> Iterator[str]:
    """The UUIDs of the MIG slices of a card."""
    for index in range(_asked(nvml, "nvmlDeviceGetMaxMigDeviceCount", handle)[0] or 0):
        part = _asked(nvml, "nvmlDeviceGetMigDeviceHandleByIndex", handle, index)[0]
        if part is not None:
            yield _text(nvml.nvmlDeviceGetUUID(part))


def _handles(nvml: Any) -> list[Any]:
    return [nvml.nvmlDeviceGetHandleByIndex(index) for index in range(nvml.nvmlDeviceGetCount())]


def _asked(nvml: Any, function: str, *arguments: Any) -> tuple[Any, str | None]:
    """(answer, why there is none); old releases of the library lack functions, old drivers their answers."""
    call = getattr(nvml, function, None)
    if call is None:
        return None, f"the installed nvidia-ml-py lacks {function}"
    try:
        return call(*arguments), None
    except nvml.NVMLError as error:
        return None, str(error)


def _watts(nvml: Any, handle: Any, *, module: bool) -> float | None:
    """What the card, or the module with its CPU, draws now; 0 W is no answer."""
    field = getattr(nvml, "NVML_FI_DEV_POWER_INSTANT", None)
    if field is not None:
        values, _ = _asked(nvml, "nvmlDeviceGetFieldValues", handle, [(field, 1 if module else 0)])
        if values and values[0].nvmlReturn == 0 and values[0].value.uiVal:
            return float(values[0].value.uiVal) / 1e3
    milliwatts = None if module else _asked(nvml, "nvmlDeviceGetPowerUsage", handle)[0]
    return milliwatts / 1e3 if milliwatts else None


def _is_module(nvml: Any, handle: Any) -> bool:
    """Whether GPU and CPU are one module (GH200, GB200): they are coupled chip to chip."""
    coupled = _asked(nvml, "nvmlDeviceGetC2cModeInfoV", handle)[0]
    name = _text(_asked(nvml, "nvmlDeviceGetName", handle)[0])
    return bool(coupled is not None and coupled.isC2cEnabled) or bool(re.search(r"\bG[HB]\d+\b", name))


def _megahertz(nvml: Any, function: str, handle: Any) -> float | None:
    megahertz = _asked(nvml, function, handle, 1)[0]  # 1: NVML_CLOCK_SM
    return megahertz * 1e6 if megahertz else None


def _reasons(nvml: Any, handle: Any) -> int:
    reasons = _asked(nvml, "nvmlDeviceGetCurrentClocksEventReasons", handle)[0]
    if reasons is None:  # its name before driver 535
        reasons = _asked(nvml, "nvmlDeviceGetCurrentClocksThrottleReasons", handle)[0]
    return int(reasons or 0)


def _text(value: Any) -> str:
    """Older releases of the library answer in bytes."""
    return value.decode() if isinstance(value, bytes) else str(value)
