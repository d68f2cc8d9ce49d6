"""Records of trainings that were never run."""

from __future__ import annotations

from typing import Any

from outpace.records import (
    Ceilings,
    Environment,
    Host,
    Measurement,
    Method,
    Span,
    StepSeconds,
)

HOST = Host(name="here", system="Linux", cpu="a CPU", cores=2.0)
METHOD = Method(
    warm_up_steps=12, warm_up_seconds=1.5, settled=True, windows=30, steps=300, seconds=3.0, clock="waited"
)
CEILINGS = Ceilings(
    device="cuda:0",
    source="measured here with torch 2.9",
    measured=True,
    matrix_flops_per_second={"fp32": 10e12, "tf32": 80e12, "bf16": 160e12},
    vector_flops_per_second={"fp32": 10e12},
    bandwidths=[(65536, 4e12), (2**22, 2e12), (2**28, 1e12)],
    launch_seconds=5e-6,
)


def step_seconds(median: float, spread: float = 0.01) -> StepSeconds:
    return StepSeconds(
        median=median,
        low=median * (1 - spread),
        high=median * (1 + spread),
        least=median * (1 - 2 * spread),
        most=median * (1 + 2 * spread),
    )


def measurement(seconds: float = 0.010, **known: Any) -> Measurement:
    """Of steps of 64 samples that take so many *seconds*."""
    facts: dict[str, Any] = {
        "outpace": "1",
        "target": "cnn",
        "script": "/x/cnn.py",
        "args": [],
        "script_sha256": "ab",
        "started_at": "2026-01-02T03:04:05Z",
        "device": "cuda:0",
        "device_name": "NVIDIA H100 80GB HBM3",
        "device_driver": "CUDA 12.8",
        "card": "h100-sxm-80gb",
        "environment": Environment(host=HOST, versions={"torch": "2.9"}),
        "method": METHOD,
        "samples_per_second": 64 / seconds,
        "samples_per_step": 64,
        "step_seconds": step_seconds(seconds),
        "startup_seconds": 2.0,
        "peak_bytes": 432 * 2**20,
        "peak_bytes_source": "torch.cuda",
        "limit_missing_because": "no operators of the step could be recorded",
        "energy_missing_because": "the counter is missing",
    }
    return Measurement(**(facts | known))


def several(*seconds: float, **known: Any) -> list[Measurement]:
    return [measurement(one, **known) for one in seconds]


def span(median: float) -> Span:
    return Span(median=median, low=0.9 * median, high=1.1 * median)
