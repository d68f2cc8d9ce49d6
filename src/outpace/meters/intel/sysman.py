"""The counters of Level Zero Sysman (``libze_loader.so.1``), called as ``zes_api.h`` says."""

from __future__ import annotations

import ctypes
from collections.abc import Callable, Iterator
from typing import Any

from outpace.meters._counting import Counter, Unreadable
from outpace.records import Device
from outpace.visible import same_card

LIBRARY = "libze_loader.so.1"
PCI_PROPERTIES = 0x2  # ZES_STRUCTURE_TYPE_PCI_PROPERTIES
POWER_PROPERTIES = 0xD  # ZES_STRUCTURE_TYPE_POWER_PROPERTIES


class PciProperties(ctypes.Structure):
    """``zes_pci_properties_t``."""

    _fields_ = (
        ("stype", ctypes.c_int32),
        ("pNext", ctypes.c_void_p),
        ("domain", ctypes.c_uint32),
        ("bus", ctypes.c_uint32),
        ("device", ctypes.c_uint32),
        ("function", ctypes.c_uint32),
        ("generation", ctypes.c_int32),
        ("width", ctypes.c_int32),
        ("max_bandwidth", ctypes.c_int64),
        ("have_bandwidth_counters", ctypes.c_uint8),
        ("have_packet_counters", ctypes.c_uint8),
        ("have_replay_counters", ctypes.c_uint8),
    )


class PowerProperties(ctypes.Structure):
    """``zes_power_properties_t``."""

    _fields_ = (
        ("stype", ctypes.c_int32),
        ("pNext", ctypes.c_void_p),
        ("on_subdevice", ctypes.c_uint8),
        ("subdevice_id", ctypes.c_uint32),
        ("can_control", ctypes.c_uint8),
        ("has_energy_threshold", ctypes.c_uint8),
        ("default_limit", ctypes.c_int32),
        ("min_limit", ctypes.c_int32),
        ("max_limit", ctypes.c_int32),
    )


class EnergyCounter(ctypes.Structure):
    """``zes_power_energy_counter_t``: microjoules, and microseconds of a clock of its own."""

    _fields_ = (("energy", ctypes.c_uint64), ("timestamp", ctypes.c_uint64))


def find(device: Device) -> tuple[str, Counter, str]:
    """(scope, counter, PCI address) of *device*.

    Raises:
        Unreadable: no library, no such card, or no counter of it that counts.
    """
    zes = _library()
    _call(zes.zesInit, ctypes.c_uint32(0))
    drivers = _listed(zes.zesDriverGet)
    cards = [(card, _address(zes, card)) for driver in drivers for card in _listed(zes.zesDeviceGet, driver)]
    if device.pci_address is not None:
        cards = [card for card in cards if same_card(card[1], device.pci_address)]
    if not cards:
        raise Unreadable("it lists no card with this PCI address")
    if len(cards) > 1:
        raise Unreadable("the framework tells no PCI address, and there are several Intel cards")
    card, address = cards[0]
    for scope, domain in _domains(zes, card):
        try:
            counter = _counter(zes, domain)
            if counter.read() > 0:
                return scope, counter, address
        except Unreadable:  # another domain may be readable
            continue
    raise Unreadable("it tells no energy of this card (none of integrated GPUs, always zero on DG1)")


def _domains(zes: Any, card: ctypes.c_void_p) -> Iterator[tuple[str, ctypes.c_void_p]]:
    """(scope, handle) of what counts energy, the whole card first; what belongs to one tile is left out."""
    whole = ctypes.c_void_p()
    try:
        _call(zes.zesDeviceGetCardPowerDomain, card, ctypes.byref(whole))
        yield "card", whole
    except Unreadable:  # older runtimes and several cards have no such domain
        pass
    for domain in _listed(zes.zesDeviceEnumPowerDomains, card):
        properties = PowerProperties(stype=POWER_PROPERTIES)
        _call(zes.zesPowerGetProperties, domain, ctypes.byref(properties))
        if not properties.on_subdevice and domain.value != whole.value:
            yield "package", domain


def _counter(zes: Any, domain: ctypes.c_void_p) -> Counter:
    def joules() -> float:
        counter = EnergyCounter()
        _call(zes.zesPowerGetEnergyCounter, domain, ctypes.byref(counter))
        return int(counter.energy) / 1e6

    return Counter(joules)


def _address(zes: Any, card: ctypes.c_void_p) -> str:
    pci = PciProperties(stype=PCI_PROPERTIES)
    _call(zes.zesDevicePciGetProperties, card, ctypes.byref(pci))
    return f"{pci.domain:04x}:{pci.bus:02x}:{pci.device:02x}.{pci.function:x}"


def _listed(function: Any, *of: ctypes.c_void_p) -> list[ctypes.c_void_p]:
    """Handles, which Level Zero lists in two calls: how many, and which."""
    count = ctypes.c_uint32(0)
    _call(function, *of, ctypes.byref(count), None)
    handles = (ctypes.c_void_p * count.value)()
    if count.value:
        _call(function, *of, ctypes.byref(count), handles)
    return [ctypes.c_void_p(handle) for handle in handles]


def _call(function: Callable[..., int], *arguments: Any) -> None:
    code = function(*arguments)
    if code:
        raise Unreadable(f"{getattr(function, '__name__', 'a call')} fails with 0x{code & 0xFFFFFFFF:x}")


def _library() -> Any:
    try:
        return ctypes.CDLL(LIBRARY)
    except OSError:
        raise Unreadable(f"{LIBRARY} is missing") from None
