"""What the device of a training can do at best, measured by its own framework in a process of its own."""

from __future__ import annotations

import os
import subprocess
import sys

import msgspec

from outpace import cards, ceilings, host, launch, observe
from outpace.errors import OutpaceError
from outpace.records import Ceilings, Device

TIMEOUT_SECONDS = 120

#: What a CPU's ceilings depend on, besides the machine and the versions.
VARIABLES = (
    *("OMP_NUM_THREADS", "MKL_NUM_THREADS", "OPENBLAS_NUM_THREADS", "KMP_AFFINITY", "XLA_FLAGS"),
    *("TF_NUM_INTRAOP_THREADS", "TF_NUM_INTEROP_THREADS", "NVIDIA_TF32_OVERRIDE", "CUDA_VISIBLE_DEVICES"),
)


def ceilings_of(
    device: Device,
    framework: str,
    version: str,
    *,
    measured: bool = False,
    again: bool = False,
    asked: str = "auto",
) -> tuple[Ceilings | None, str | None]:
    """The ceilings of *device*, or why there are none.

    A known card's are its datasheet's, with the cost of a call measured; a CPU's are measured, since no
    datasheet gives them.

    Args:
        framework: what trains: ``torch``, ``keras on jax`` …
        version: of that framework, on which a measurement depends.
        measured: measure those of a card too.
        again: what was measured before was too low; the better of both is kept.
        asked: the device that the training was given; with ``cuda:1`` it saw that one only, as ``cuda:0``.
    """
    found, why_not = _measured(device, framework.rpartition(" ")[2], version, again=again, asked=asked)
    if device.id == "cpu" or measured:
        return found, why_not
    if device.card is None:
        return None, f"no datasheet facts of {device.name} are known (--ceilings measured takes them here)"
    if device.part is not None:
        return (
            None,
            f"only a part of a card ({device.part}): --ceilings measured takes its limits here",
        )
    sheet = ceilings.of_card(cards.load()[device.card])
    launch = found.launch_seconds if found else None
    return msgspec.structs.replace(sheet, launch_seconds=launch), None


def _measured(
    device: Device, framework: str, version: str, *, again: bool, asked: str
) -> tuple[Ceilings | None, str | None]:
    identity = {
        "host": host.here().name,
        "cpu": host.cpu_name(),
        "cores": f"{host.cores():g}",
        "device": f"{device.id} {device.name} {device.uuid} {device.driver}",
        "framework": f"{framework} {version}",
        **{name: value for name in VARIABLES if (value := os.environ.get(name)) is not None},
    }
    path = ceilings.cache_path(identity)
    before = ceilings.cached(path)
    if before is not None and not again:
        return before, None
    if not hasattr(observe.load(framework), "bench"):
        return None, f"{framework} cannot be asked for the limits of a device"
    code = f"from outpace.verbs.ceilings import answer; answer({framework!r}, {device.id!r})"
    code = f"import sys; sys.path.pop(0); {code}"  # a file here must not stand in for a module
    env = launch.environment(asked, os.environ) | {"TF_CPP_MIN_LOG_LEVEL": "3"}
    try:
        answered = subprocess.run(
            [sys.executable, "-c", code], env=env, capture_output=True, timeout=TIMEOUT_SECONDS, check=False
        )
        found = msgspec.json.decode(answered.stdout.splitlines()[-1], type=Ceilings)
    except subprocess.TimeoutExpired:
        return None, f"measuring the limits took more than {TIMEOUT_SECONDS} s"
    except (IndexError, msgspec.MsgspecError):
        last = answered.stderr.decode(errors="replace").strip().splitlines()
        return None, f"measuring the limits failed: {last[-1] if last else 'without a word'}"
    found = ceilings.better(found, before) if before is not None else found
    ceilings.keep(path, found)
    return found, None


def answer(framework: str, device: str) -> None:
    """In the framework's own process: print the ceilings as one JSON line.

    Raises:
        OutpaceError: the framework cannot be asked.
    """
    bench = getattr(observe.load(framework), "bench", None)
    if bench is None:
        raise OutpaceError(f"{framework} cannot be asked")
    found = ceilings.measure(bench(device), device=device, cores=host.cores())
    sys.stdout.write("\n" + msgspec.json.encode(found).decode() + "\n")
