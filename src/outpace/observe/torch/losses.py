"""Loss values without waiting for the device."""

from __future__ import annotations

from typing import Any

import torch


def loss_of(tensors: Any) -> torch.Tensor | None:
    """The loss that ``backward`` was called on, before loss scaling: a single value, else ``None``."""
    if not isinstance(tensors, torch.Tensor) or tensors.numel() != 1 or tensors.is_meta:
        return None
    unscaled = getattr(tensors, "_outpace_unscaled", None)
    return (tensors if unscaled is None else unscaled).detach()


def total(losses: list[torch.Tensor]) -> float | OnItsWay | None:
    """The sum of the losses of one step: at once from the CPU, later from a device."""
    if not losses:
        return None
    if len(losses) == 1 and losses[0].is_cpu:
        return losses[0].item()
    if all(loss.device.type == "cpu" for loss in losses):
        return sum(loss.item() for loss in losses)
    device = next(loss.device for loss in losses if loss.device.type != "cpu")
    return OnItsWay(torch.stack([loss.reshape(()).float().to(device) for loss in losses]).sum())


class OnItsWay:
    """A value that is copied from the device while training goes on.

    Args:
        value: a scalar on an accelerator.
    """

    def __init__(self, value: torch.Tensor) -> None:
        self._event: torch.Event | None = None
        if value.device.type in ("cuda", "xpu"):
            self._value = torch.empty((), pin_memory=True)
            self._value.copy_(value, non_blocking=True)
            self._event = torch.Event(device=value.device)
            self._event.record()
        else:
            self._value = value

    def ready(self) -> bool:
        """Whether the copy is done; without an event (MPS) reading may wait."""
        return self._event is None or bool(self._event.query())

    def __float__(self) -> float:
        if self._event is not None:
            self._event.synchronize()
        return float(self._value.item())
