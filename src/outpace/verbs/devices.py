"""The verb: what is here to train on, per framework."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Mapping, Sequence

import msgspec

from outpace import cards, host, meters, observe
from outpace.meters import nvidia
from outpace.records import Device, Host
from outpace.visible import Physical, visible

#: A framework that takes longer than this to name its devices is hanging in a driver.
TIMEOUT_SECONDS = 120


class Answer(msgspec.Struct, frozen=True, kw_only=True):
    """One framework's devices, or why there are none."""

    framework: str
    devices: list[Device] = []
    why_not: str | None = None


class Found(msgspec.Struct, frozen=True, kw_only=True):
    """This machine, and what each framework sees of it."""

    host: Host
    frameworks: list[Answer]


def devices() -> Found:
    """What is here to train on. Each framework is asked in a process of its own: two in one get in each
    other's way over memory."""
    return Found(host=host.here(), frameworks=[_ask(name) for name in observe.names()])


def _ask(name: str) -> Answer:
    missing = observe.load(name).why_not()
    if missing is not None:
        return Answer(framework=name, why_not=missing)
    env = os.environ | {"TF_CPP_MIN_LOG_LEVEL": "3", "XLA_PYTHON_CLIENT_PREALLOCATE": "false"}
    code = f"from outpace.verbs.devices import answer; answer({name!r})"
    try:
        asked = subprocess.run(
            [sys.executable, "-c", code], env=env, capture_output=True, timeout=TIMEOUT_SECONDS, check=False
        )
    except subprocess.TimeoutExpired:
        return Answer(
            framework=name, why_not=f"{name} gave no answer in {TIMEOUT_SECONDS} s; is a driver hanging?"
        )
    try:
        found = msgspec.json.decode(asked.stdout.splitlines()[-1], type=Answer)
        return msgspec.structs.replace(found, devices=[known(device) for device in found.devices])
    except (IndexError, msgspec.MsgspecError):
        last = asked.stderr.decode(errors="replace").strip().splitlines()
        return Answer(
            framework=name, why_not=f"{name} fails to start: {last[-1] if last else 'without a word'}"
        )


def known(device: Device) -> Device:
    """*device* with what the card table, the processor and the energy meters know of it."""
    if device.id.startswith("cuda") and device.uuid is None and device.pci_address is None:
        device = identified(device, nvidia.cards(), os.environ)
    part = cards.parent_of_slice(device.name)
    if part is not None:
        card = part.parent
    else:
        memory = None if device.id.startswith("cpu") else device.memory_total_bytes
        card = cards.match(device.name, memory, device.units)
    source, missing = meters.source_of(device)
    dtypes = device.dtypes
    if device.id.startswith("cpu"):
        dtypes = host.fast_dtypes(host.matrix_extensions())
    return msgspec.structs.replace(
        device,
        card=card.name if card else None,
        part=f"{PARTS[part.kind]} {part.profile}" if part else None,
        dtypes=dtypes,
        energy_source=f"{source} (of which this is a part)" if source and part else source,
        energy_missing_because=missing,
    )


def identified(device: Device, physical: Sequence[Physical], environ: Mapping[str, str]) -> Device:
    """*device* with the UUID and PCI address of its card, for frameworks that tell only an index.

    The index counts the visible cards. Their order is known only if all are of one model,
    or if ``CUDA_DEVICE_ORDER=PCI_BUS_ID`` says so; otherwise nothing is claimed.
    """
    if len({card.name for card in physical}) > 1 and environ.get("CUDA_DEVICE_ORDER") != "PCI_BUS_ID":
        return device
    seen = visible(physical, environ)
    index = int(device.id.partition(":")[2] or 0)
    if index >= len(seen):
        return device
    return msgspec.structs.replace(device, uuid=seen[index].uuid, pci_address=seen[index].pci_address)


#: What a person calls a part of a card.
PARTS = {"mig": "MIG slice", "vgpu": "virtual GPU"}


def answer(name: str) -> None:
    """In the framework's own process: print its devices as one JSON line."""
    found = Answer(framework=name, devices=observe.load(name).devices())
    sys.stdout.write("\n" + msgspec.json.encode(found).decode() + "\n")
