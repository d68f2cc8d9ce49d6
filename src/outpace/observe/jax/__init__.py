"""JAX: its version, its devices, where it runs. Its compiled loops show no steps: ``outpace.step`` tells."""

from __future__ import annotations

import functools
import importlib.util
import sys
from typing import TYPE_CHECKING, Any

from outpace import host
from outpace.errors import OutpaceError
from outpace.records import Device

if TYPE_CHECKING:
    from outpace.ceilings import Bench
    from outpace.watcher import Watch

IMPORTS = ("jax",)

#: What scripts of other frameworks call JAX' platforms.
KINDS = {"gpu": "cuda", "rocm": "cuda", "metal": "mps"}


def why_not() -> str | None:
    """Why JAX cannot be used here."""
    if importlib.util.find_spec("jax") is None:
        return 'JAX is not installed: pip install "outpace[jax]"'
    return None


def devices() -> list[Device]:
    """The devices that JAX sees: accelerators, then the CPU."""
    import jax

    found = [_device(device) for device in jax.local_devices() if device.platform != "cpu"]
    found.append(
        Device(framework="jax", id="cpu", name=host.cpu_name(), memory_total_bytes=host.memory_bytes())
    )
    return found


def _device(device: Any) -> Device:
    stats = memory_stats(device)
    limit, used = stats.get("bytes_limit"), stats.get("bytes_in_use")
    return Device(
        framework="jax",
        id=id_of(device),
        name=str(device.device_kind),
        driver=_driver(device),
        memory_total_bytes=limit,
        memory_free_bytes=limit - used if limit is not None and used is not None else None,
    )


def id_of(device: Any) -> str:
    """A JAX device as scripts of other frameworks say it: ``cuda:0``."""
    kind = KINDS.get(device.platform.lower(), device.platform.lower())
    return kind if kind in ("cpu", "mps") else f"{kind}:{getattr(device, 'local_hardware_id', None) or 0}"


def memory_stats(device: Any) -> dict[str, int]:
    """What the allocator of *device* tells; nothing on the CPU and from plug-ins that do not count."""
    try:
        return device.memory_stats() or {}
    except Exception:
        return {}


def _driver(device: Any) -> str | None:
    """The version of the platform's run-time: its first line."""
    version = getattr(getattr(device, "client", None), "platform_version", None)
    return str(version).strip().splitlines()[0] if version else None


def bench(device: str) -> Bench:
    """Work for *device*, to measure its limits."""
    from outpace.observe.jax.work import Work

    return Work(device)


def attach(watch: Watch) -> None:
    """Report where the training runs, at its end: asking earlier would start JAX before it is set up.

    Raises:
        OutpaceError: the device that the job asks for is not here.
    """
    import jax

    watch.framework("jax", jax.__version__)
    check_asked(watch.job.device)
    watch.peaks.append(peak)
    watch.synchronizers.append(synchronize)
    told = functools.cache(functools.partial(tell_place, watch))
    watch.at_begin.append(lambda: told() if told_by_script(watch) else None)
    watch.before_end.append(told)
    if watch.job.plan is not None and watch.job.plan.trace:
        from outpace.observe.jax.tracing import Tracer

        tracer = Tracer(lambda: told_by_script(watch))
        tracer.install()
        watch.tracers.append(tracer)


def check_asked(asked: str) -> None:
    """That JAX has the kind of device that was asked for.

    Raises:
        OutpaceError: it has not.
    """
    kind = asked.partition(":")[0]
    if kind in ("auto", "cpu"):
        return
    import jax

    try:
        found = jax.local_devices()
    except RuntimeError as error:  # there is a plug-in for the card, and the driver fails
        raise OutpaceError(
            f"no {asked} device: {error}".splitlines()[0], "is the driver installed?"
        ) from error
    if not any(id_of(device).partition(":")[0] == kind for device in found):
        raise OutpaceError(
            f"JAX {jax.__version__} sees no {asked} device",
            "install JAX for this card (its cuda extra, a ROCm or Metal plug-in), or use --device auto",
        )


def tell_place(watch: Watch) -> None:
    """Tell *watch* on which device JAX computed, if it did and no one else knows better."""
    if not started() or not told_by_script(watch):
        return
    import jax

    default: Any = getattr(jax.config, "jax_default_device", None)
    found = jax.local_devices()
    device: Any = default if hasattr(default, "platform") else found[0]
    here = id_of(device)
    watch.place(here, host.cpu_name() if here == "cpu" else str(device.device_kind), _driver(device))
    better = next((other for other in map(id_of, found) if other != "cpu"), None)
    if here == "cpu" and better and watch.job.device == "auto":
        watch.note(f"this script trains on the CPU although {better} is here")


def synchronize(loss: Any = None) -> None:
    """Wait until every array that JAX holds is computed."""
    if started():
        import jax

        jax.block_until_ready((loss, jax.live_arrays()))  # type: ignore[no-untyped-call]


def told_by_script(watch: Watch) -> bool:
    """Whether the run's steps are those that the script told, in a process with no other framework."""
    return watch.witness == "script" and not any(name in sys.modules for name in ("torch", "tensorflow"))


def started() -> bool:
    """Whether JAX has computed anything; asking for its devices would start it."""
    bridge = sys.modules.get("jax._src.xla_bridge")
    return bool(getattr(bridge, "_backends", None))


def peak() -> tuple[int, str] | None:
    """The peak of JAX' allocator over its accelerators: (bytes, source)."""
    if not started():
        return None
    import jax

    used = sum(memory_stats(device).get("peak_bytes_in_use", 0) for device in jax.local_devices())
    return (used, "jax") if used else None
