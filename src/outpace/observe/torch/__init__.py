"""PyTorch (CUDA, ROCm, XPU, MPS, CPU), and what trains through it: Lightning, Accelerate, Transformers."""

from __future__ import annotations

import importlib.util
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from outpace.ceilings import Bench
    from outpace.records import Device
    from outpace.watcher import Watch

IMPORTS = ("torch",)


def why_not() -> str | None:
    """Why PyTorch cannot be used here."""
    if importlib.util.find_spec("torch") is None:
        return 'PyTorch is not installed: pip install "outpace[torch]"'
    return None


def devices() -> list[Device]:
    """The devices that PyTorch sees."""
    from outpace.observe.torch.places import all_devices

    return all_devices()


def bench(device: str) -> Bench:
    """Work for *device*, to measure its limits."""
    from outpace.observe.torch.work import Work

    return Work(device)


def attach(watch: Watch) -> None:
    """Report training steps to *watch* from now on.

    Raises:
        OutpaceError: the device that the job asks for is not here.
    """
    import torch

    from outpace.observe.torch import places
    from outpace.observe.torch.hooks import Hooks
    from outpace.observe.torch.placement import Placement, Substitution
    from outpace.observe.torch.stage import Stage

    watch.framework("torch", torch.__version__)
    plan = watch.job.plan
    asked = watch.job.device.partition(":")[0]
    if plan is not None and not plan.measure and places.missing(asked):
        asked = "cpu"  # the operators of a step are the same, wherever it runs
    places.check_asked(asked)
    placement = None
    if asked == "cpu":
        torch.backends.mps.is_available = lambda: False  # type: ignore[assignment]
        if not torch.cuda.is_available():
            Substitution(lambda kind: watch.note(f"the script names {kind}; it runs on the CPU")).install()
    elif asked != "auto":
        placement = Placement(asked)
        placement.__enter__()  # type: ignore[no-untyped-call]
    watch.peaks.append(places.peak)
    watch.synchronizers.append(places.synchronize)
    stage = watch.stage = Stage(watch, watch.job.speedups)
    hooks = Hooks(watch, placement, stage)
    hooks.install()
    if plan is not None and plan.trace:
        from outpace.observe.torch.tracing import Tracer

        watch.tracers.append(Tracer(lambda: hooks.phase))
    if plan is not None and plan.fake:
        from outpace.observe.torch import fake

        fakes = fake.install()
        if plan.as_on_card:
            from outpace.observe.torch.as_on_card import AsOnCard

            AsOnCard(note=fakes.note).__enter__()
