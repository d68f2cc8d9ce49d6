"""One kernel for the optimizer's whole step instead of several per parameter."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from outpace.speedups import Part, Tell

SLOT = "optimizer"
EFFECT = "rounding"
LINES = "optimizer = torch.optim.AdamW(model.parameters(), ..., fused=True)"


def torch(tell: Tell) -> Part:
    """In PyTorch."""
    return _Fused(tell)


class _Fused(Part):
    def __init__(self, tell: Tell) -> None:
        self._tell = tell
        self._optimizers: list[Any] = []
        self._groups: dict[int, list[tuple[dict[str, Any], Any, Any]]] = {}
        """Of each optimizer met (by its identity) the groups with what they said before."""

    def step(self, optimizer: Any) -> None:
        if id(optimizer) in self._groups:
            return
        self._groups[id(optimizer)] = []
        name = type(optimizer).__name__
        self.reason = why_not(optimizer)
        if self.reason is not None:
            return
        for group in optimizer.param_groups:
            self._groups[id(optimizer)].append((group, group.get("fused"), group.get("foreach")))
            group["fused"], group["foreach"] = True, False
        self._optimizers.append(optimizer)
        _count_steps_on_the_device(optimizer, on_the_device=True)
        self._tell(f"{name} steps in one fused kernel")

    def off(self, models: Iterable[Any]) -> None:
        for groups in self._groups.values():
            for group, fused, foreach in groups:
                group["fused"], group["foreach"] = fused, foreach
        for optimizer in self._optimizers:
            _count_steps_on_the_device(optimizer, on_the_device=False)
        self._groups, self._optimizers = {}, []


def _count_steps_on_the_device(optimizer: Any, *, on_the_device: bool) -> None:
    """A fused kernel counts its steps there, the others on the host."""
    for group in optimizer.param_groups:
        for parameter in group["params"]:
            counted = optimizer.state.get(parameter, {}).get("step")
            if hasattr(counted, "to"):
                optimizer.state[parameter]["step"] = counted.to(parameter.device if on_the_device else "cpu")


def why_not(optimizer: Any) -> str | None:  # noqa: PLR0911 - one reason each
    """Why *optimizer* cannot be fused."""
    from torch.utils._foreach_utils import _get_fused_kernels_supported_devices

    name = type(optimizer).__name__
    if not type(optimizer).__module__.startswith("torch.optim") or "fused" not in optimizer.defaults:
        return f"{name} has no fused kernel"
    for group in optimizer.param_groups:
        if group.get("fused") is not None or group.get("foreach") is not None:
            return "the script chooses itself how its optimizer steps (fused=, foreach=)"
        if group.get("differentiable") or group.get("capturable"):
            return f"{name} is made differentiable or capturable"
        for parameter in group["params"]:
            if parameter.device.type not in _get_fused_kernels_supported_devices():
                return f"there is no fused kernel for {parameter.device.type}"
            if not parameter.is_floating_point() or parameter.is_sparse:
                return f"{name} has parameters that no fused kernel takes"
            if parameter.grad is not None and parameter.grad.is_sparse:
                return "the gradients are sparse"
    return None
