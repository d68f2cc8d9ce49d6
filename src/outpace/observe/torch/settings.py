"""What decides which units of the device compute, and whether code is compiled."""

from __future__ import annotations

import sys
from collections.abc import Callable

import torch


def settings(device: str) -> dict[str, str]:
    """See `outpace.records.Trace.settings`.

    Args:
        device: where the step ran; only CUDA has TF32.
    """
    found = {}
    if device.startswith("cuda") and torch.version.hip is None:
        found["matmul_fp32"] = _tf32(lambda: torch.backends.cuda.matmul.allow_tf32)
        found["convolution_fp32"] = _tf32(lambda: torch.backends.cudnn.allow_tf32)
    if compiled():
        found["compiled"] = "torch.compile"
    return found


def _tf32(allowed: Callable[[], bool]) -> str:
    try:
        return "tf32" if allowed() else "fp32"
    except RuntimeError:  # the script uses the newer setting, which forbids to read the older one
        return "tf32" if getattr(torch.backends, "fp32_precision", None) == "tf32" else "fp32"


def compiled() -> bool:
    """Whether any code of the script was compiled."""
    utils = sys.modules.get("torch._dynamo.utils")
    counters = getattr(utils, "counters", {})
    return bool(counters.get("frames", {}).get("ok", 0)) if counters else False
