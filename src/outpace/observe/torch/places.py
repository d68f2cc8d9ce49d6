"""The devices that PyTorch sees, and which of them a training runs on."""

from __future__ import annotations

from typing import Any

import torch

from outpace import host
from outpace.errors import OutpaceError
from outpace.records import Device
from outpace.watcher import Watch


def all_devices() -> list[Device]:
    """The accelerators, then the CPU."""
    found = []
    for kind in ("cuda", "xpu"):
        backend = getattr(torch, kind)
        if backend.is_available():
            found += [_device(kind, index) for index in range(backend.device_count())]
    if torch.backends.mps.is_available():
        found.append(
            Device(framework="torch", id="mps", name=host.cpu_name(), memory_total_bytes=host.memory_bytes())
        )
    found.append(
        Device(framework="torch", id="cpu", name=host.cpu_name(), memory_total_bytes=host.memory_bytes())
    )
    return found


def _device(kind: str, index: int) -> Device:
    backend = getattr(torch, kind)
    facts = backend.get_device_properties(index)
    try:
        free, total = backend.mem_get_info(index)
    except (RuntimeError, AttributeError):
        free, total = None, facts.total_memory
    return Device(
        framework="torch",
        id=f"{kind}:{index}",
        name=facts.name,
        driver=driver(kind, facts),
        memory_total_bytes=total,
        memory_free_bytes=free,
        units=getattr(facts, "multi_processor_count", None),
        uuid=str(facts.uuid) if hasattr(facts, "uuid") else None,
        pci_address=_pci_address(facts),
        dtypes=_fast_dtypes(kind, facts),
    )


def _fast_dtypes(kind: str, facts: Any) -> dict[str, bool]:
    """Which types the hardware computes in itself, by compute capability; of other makes, what is known."""
    if kind == "cuda" and torch.version.hip is None:
        capability = (facts.major, facts.minor)
        # CUDA C++ Programming Guide, "Compute Capabilities": arithmetic and tensor core types
        floors = {"fp16": (5, 3), "tf32": (8, 0), "bf16": (8, 0), "fp8": (8, 9)}
        return {dtype: capability >= floor and capability != (6, 1) for dtype, floor in floors.items()}
    if kind == "xpu":
        return {"fp16": bool(facts.has_fp16)} if hasattr(facts, "has_fp16") else {}
    return {}


def driver(kind: str, facts: Any) -> str | None:
    """What the device is driven by: ``CUDA 12.8``, ``ROCm 6.4``, Level Zero's version."""
    if kind == "cuda":
        return f"ROCm {torch.version.hip}" if torch.version.hip else f"CUDA {torch.version.cuda}"
    return getattr(facts, "driver_version", None)


def _pci_address(facts: Any) -> str | None:
    if not hasattr(facts, "pci_bus_id"):
        return None
    return f"{facts.pci_domain_id:08x}:{facts.pci_bus_id:02x}:{facts.pci_device_id:02x}.0"


def accelerator_here() -> str | None:
    """The first accelerator that this PyTorch can use: ``cuda:0``, ``xpu:0``, ``mps``."""
    if torch.cuda.is_available():
        return "cuda:0"
    if torch.xpu.is_available():
        return "xpu:0"
    return "mps" if torch.backends.mps.is_available() else None


def missing(asked: str) -> bool:
    """Whether there is no such device here; ``auto`` stands for any accelerator."""
    if asked == "auto":
        return accelerator_here() is None
    if asked == "cpu":
        return False
    backend = torch.backends.mps if asked == "mps" else getattr(torch, asked)
    return not backend.is_available()


def check_asked(asked: str) -> None:
    """That the device kind *asked* for is usable by this PyTorch.

    Raises:
        OutpaceError: it is not; the message says whether this PyTorch or the machine lacks it.
    """
    kind = asked.partition(":")[0]
    if kind in ("auto", "cpu"):
        return
    backend = torch.backends.mps if kind == "mps" else getattr(torch, kind)
    if backend.is_available():
        return
    built = {
        "cuda": torch.version.cuda or torch.version.hip,
        "xpu": getattr(torch.version, "xpu", None),
        "mps": torch.backends.mps.is_built(),
    }[kind]
    if built:
        raise OutpaceError(
            f"no {asked} device is here", "outpace devices lists what is; is the driver installed?"
        )
    raise OutpaceError(
        f"PyTorch {torch.__version__} is built without {kind}, so {asked} cannot be used",
        "install the PyTorch build for this card, or use --device auto",
    )


def tell_place(watch: Watch, device: torch.device) -> None:
    """Tell *watch* where the training runs, and warn when that is the CPU beside an idle accelerator."""
    kind = device.type
    if kind in ("cuda", "xpu"):
        index = device.index or 0
        here = _device(kind, index)
        watch.place(
            here.id,
            here.name,
            here.driver,
            uuid=here.uuid,
            pci_address=here.pci_address,
            memory_total_bytes=here.memory_total_bytes,
            units=here.units,
        )
        return
    known = kind in ("cpu", "mps")
    watch.place(kind, host.cpu_name() if known else None, synchronous=kind == "cpu")
    better = accelerator_here()
    if kind == "cpu" and better and watch.job.device == "auto":
        watch.note(
            f"this script trains on the CPU although {better} is here; "
            f"--device {better.partition(':')[0]} moves it there, unchanged"
        )


def synchronize(_loss: object = None) -> None:
    """Wait until the accelerators in use are through."""
    for kind in ("cuda", "xpu"):
        backend = getattr(torch, kind)
        if backend.is_initialized():
            for index in range(backend.device_count()):
                backend.synchronize(index)
    if torch.backends.mps.is_available():
        torch.mps.synchronize()


def peak() -> tuple[int, str] | None:
    """The peak of PyTorch's allocator over its accelerators: (bytes, source)."""
    for kind in ("cuda", "xpu"):
        backend = getattr(torch, kind)
        if backend.is_initialized():
            used = sum(backend.max_memory_allocated(index) for index in range(backend.device_count()))
            if used:
                return used, f"torch.{kind}"
    return None
