"""The kernel's counters of an Intel card, ``/sys/class/hwmon/hwmon*/energy*_input``, in microjoules."""

from __future__ import annotations

from pathlib import Path

from outpace.meters._counting import Counter, Unreadable
from outpace.records import Device
from outpace.visible import same_card

#: What the labels of the driver xe mean; i915 has one counter, of the whole card, without a label.
SCOPES = {"card": "card", "": "card", "pkg": "package"}


def find(device: Device, hwmon: Path) -> tuple[str, Counter, Path]:
    """(scope, counter, folder of the PCI device) of *device* in the folder *hwmon*.

    Raises:
        Unreadable: no such card, or none of its counters counts.
    """
    # i915 has further ones, i915_gt0 …, for the tiles of a card
    folders = [folder for folder in sorted(hwmon.glob("hwmon*")) if _text(folder / "name") in ("i915", "xe")]
    if not folders:
        raise Unreadable(
            "no hwmon of an i915 or xe card is here (kernel 6.2 or newer; most containers hide it)"
        )
    if device.pci_address is not None:
        folders = [folder for folder in folders if same_card(_pci(folder).name, device.pci_address)]
        if not folders:
            raise Unreadable("no hwmon of the kernel has this card's PCI address")
    if len(folders) > 1:
        raise Unreadable("the framework tells no PCI address, and there are several Intel cards")
    return (*_counter(folders[0]), _pci(folders[0]))


def _counter(folder: Path) -> tuple[str, Counter]:
    """(scope, counter), that of the whole card if it counts."""
    found = {}
    for file in folder.glob("energy*_input"):
        label = _text(file.with_name(file.name.replace("_input", "_label"))) or ""
        if label in SCOPES and (_text(file) or "0") != "0":
            found[label] = file
    counting = [label for label in SCOPES if label in found]
    if not counting:
        raise Unreadable("the energy counter of this card stands at zero or cannot be read")
    file = found[counting[0]]
    return SCOPES[counting[0]], Counter(lambda: int(file.read_text()) / 1e6)


def _pci(folder: Path) -> Path:
    return (folder / "device").resolve()


def _text(file: Path) -> str | None:
    try:
        return file.read_text().strip()
    except OSError:
        return None
