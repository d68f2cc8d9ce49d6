"""Which physical cards a process sees, and in which order: ``CUDA_VISIBLE_DEVICES`` and its like.

An index of a framework is not an index of the driver's tools: the visible list renumbers, and without
``CUDA_DEVICE_ORDER=PCI_BUS_ID`` CUDA sorts by speed. Only a UUID or a PCI address names a card.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import msgspec

from outpace.errors import OutpaceError


class Physical(msgspec.Struct, frozen=True, kw_only=True):
    """A card, or a MIG slice of one, as the driver's own library lists it."""

    uuid: str
    """``GPU-…`` or ``MIG-…``."""
    pci_address: str
    """``00000000:07:00.0``."""
    name: str = ""
    parent_uuid: str | None = None
    """Of a MIG slice: its card."""


def visible(
    cards: Sequence[Physical], environ: Mapping[str, str], variable: str = "CUDA_VISIBLE_DEVICES"
) -> list[Physical]:
    """The cards that a process with *environ* sees, in the order of its indices.

    Args:
        cards: all cards in the order in which the framework would number them without a list.
        environ: the environment.
        variable: ``CUDA_VISIBLE_DEVICES``, ``HIP_VISIBLE_DEVICES`` or ``ROCR_VISIBLE_DEVICES``.

    As CUDA does it: entries are numbers, UUIDs or beginnings of UUIDs; the first one that names nothing ends
    the list, and an empty list hides everything.

    Raises:
        OutpaceError: a beginning of a UUID fits several cards.
    """
    value = environ.get(variable)
    if value is None:
        return [card for card in cards if card.parent_uuid is None]
    seen: list[Physical] = []
    whole = [card for card in cards if card.parent_uuid is None]
    for entry in (part.strip() for part in value.split(",")):
        found = _named(entry, whole, cards)
        if found is None:
            break
        seen.append(found)
    return seen


def _named(entry: str, whole: Sequence[Physical], cards: Sequence[Physical]) -> Physical | None:
    if entry.isdecimal():
        return whole[int(entry)] if int(entry) < len(whole) else None
    if not entry.upper().startswith(("GPU-", "MIG-")):
        return None
    if entry.upper().startswith("MIG-GPU-"):  # before driver 470: MIG-GPU-<card>/<instance>/<instance>
        entry = entry[4:].partition("/")[0]
    fitting = [card for card in cards if card.uuid.lower().startswith(entry.lower())]
    if len(fitting) > 1:
        raise OutpaceError(f"{entry} names {len(fitting)} cards", "write more of the UUID")
    return fitting[0] if fitting else None


def same_card(one: str | None, other: str | None) -> bool:
    """Whether two UUIDs or two PCI addresses mean the same card, however they are written.

    ``GPU-`` may be missing from a UUID (PyTorch leaves it out); a PCI domain has four or eight digits.
    """
    if not one or not other:
        return False
    return _plain(one) == _plain(other)


def _plain(identifier: str) -> str:
    text = identifier.lower().removeprefix("gpu-")
    domain, colon, rest = text.partition(":")
    return f"{domain.lstrip('0') or '0'}:{rest}" if colon and rest.count(":") == 1 else text
