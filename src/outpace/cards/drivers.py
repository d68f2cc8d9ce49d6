"""Which card is it that a driver or a framework reports? Exact names only; else it is unknown."""

from __future__ import annotations

import functools
import re

import msgspec

from outpace.cards.table import load
from outpace.records import Card
from outpace.units import GIB

MEMORY_TOLERANCE = 0.10
"""Drivers keep up to 9 % of the nominal size back (error correction, reserved pages): L4 22.05 of 24 GiB."""

_CONFIGURABLE_MEMORY = ("soc", "cpu")
_MIG = re.compile(
    r"^(?P<parent>.+?)\s+MIG\s+"
    r"(?P<profile>(?:(?P<compute>\d+)c\.)?(?P<slices>\d+)g\.(?P<gib>\d+)gb\S*)$",
    re.I,
)
_VGPU = re.compile(
    r"^(?:NVIDIA\s+)?(?:GRID\s+)?(?P<board>[A-Z]+\d+[A-Z]*(?:-Ada)?)-"
    r"(?P<profile>(?:(?P<slices>\d)-)?(?P<gib>\d+)[ABCQ](?:ME)?)$",
    re.I,
)
_MIG_SLICES = {"a30": 4, "rtx-pro-6000-server": 4, "rtx-pro-6000-workstation": 4, "rtx-pro-6000-max-q": 4}

# How the virtual GPU software abbreviates boards: its user guide, "virtual GPU types reference".
_VGPU_BOARDS = {
    **{name: name for name in ("p4", "p40", "t4", "a2", "a10", "a16", "a30", "a40", "l4", "l40", "l40s")},
    "p100": "p100-pcie-16gb",
    "p100c": "p100-pcie-12gb",
    "p100x": "p100-sxm2-16gb",
    "v100": "v100-pcie-16gb",
    "v100d": "v100-pcie-32gb",
    "v100x": "v100-sxm2-16gb",
    "v100dx": "v100-sxm2-32gb",
    "v100s": "v100s-pcie-32gb",
    "a100": "a100-pcie-40gb",
    "a100d": "a100-pcie-80gb",
    "a100x": "a100-sxm-40gb",
    "a100dx": "a100-sxm-80gb",
    "h100": "h100-pcie-80gb",
    "h100l": "h100-nvl-94gb",
    "h100xm": "h100-sxm-80gb",
    "rtx6000": "quadro-rtx-6000",
    "rtx8000": "quadro-rtx-8000",
    "rtxa5000": "rtx-a5000",
    "rtxa5500": "rtx-a5500",
    "rtxa6000": "rtx-a6000",
    "rtx5000-ada": "rtx-5000-ada",
    "rtx6000-ada": "rtx-6000-ada",
}


class Slice(msgspec.Struct, frozen=True, kw_only=True):
    """A part of a card that a driver reports as if it were one. Power readings are the whole card's."""

    kind: str
    """``mig`` (a hardware partition) or ``vgpu`` (a virtual GPU, time-shared unless on a partition)."""
    profile: str
    """As the vendor writes it: ``1g.5gb``, ``10C``."""
    parent: Card | None
    """The whole card, where the table has it and the name says which."""
    memory_bytes: int
    compute_share: float | None
    """Part of the card's compute slices, as the vendor counts them; ``None`` where time is shared."""


def match(driver_name: str, memory_bytes: int | None = None) -> Card | None:
    """The card that a driver or framework reports under this exact name (case and spaces apart), or ``None``.

    Args:
        driver_name: as ``nvidia-smi``, ``torch.cuda.get_device_name`` and their like report it.
        memory_bytes: total memory as reported. Needed where one name serves several cards (``NVIDIA GeForce
            RTX 3080`` with 10 and 12 GiB); a card whose size is more than 10 % off is not the one.
    """
    rows = _by_driver_name().get(_key(driver_name), ())
    if memory_bytes is None:
        return rows[0] if len(rows) == 1 else None
    fitting = [(off, card) for card in rows if (off := _off(card, memory_bytes)) <= MEMORY_TOLERANCE]
    fitting.sort(key=lambda pair: pair[0])
    if len(fitting) > 1 and fitting[0][0] == fitting[1][0]:
        return None
    return fitting[0][1] if fitting else None


def parent_of_slice(driver_name: str) -> Slice | None:
    """What ``NVIDIA A100-SXM4-40GB MIG 1g.5gb`` or ``GRID A100D-20C`` is a part of; ``None`` if whole."""
    name = " ".join(driver_name.split())
    if match(name) is not None:
        return None
    if found := _MIG.match(name):
        return _slice("mig", found, match(found["parent"]), found["compute"] or found["slices"])
    if found := _VGPU.match(name):
        board = _VGPU_BOARDS.get(found["board"].casefold())
        return _slice("vgpu", found, load()[board] if board else None, found["slices"])
    return None


def _slice(kind: str, found: re.Match[str], parent: Card | None, slices: str | None) -> Slice:
    of = _MIG_SLICES.get(parent.name, 7) if parent else None
    return Slice(
        kind=kind,
        profile=found["profile"],
        parent=parent,
        memory_bytes=int(found["gib"]) * GIB,
        compute_share=int(slices) / of if slices and of else None,
    )


@functools.cache
def _by_driver_name() -> dict[str, tuple[Card, ...]]:
    names: dict[str, list[Card]] = {}
    for card in load().values():
        for key in dict.fromkeys(map(_key, card.driver_names)):
            names.setdefault(key, []).append(card)
    return {key: tuple(cards) for key, cards in names.items()}


def _off(card: Card, memory_bytes: int) -> float:
    if card.memory_bytes is None or card.kind in _CONFIGURABLE_MEMORY:
        return 0.0
    return abs(memory_bytes - card.memory_bytes) / card.memory_bytes


def _key(driver_name: str) -> str:
    return "".join(driver_name.split()).casefold()
