"""Losses and metrics as numbers: not before they are there, and never raising."""

from __future__ import annotations

import math
from typing import Any, Protocol


class Loss(Protocol):
    """A loss that may still be on its way from the device."""

    def ready(self) -> bool: ...
    def __float__(self) -> float: ...


def ready(loss: Any) -> bool:
    """Whether *loss* can be read without waiting; what cannot be asked is."""
    ask = getattr(loss, "ready", None) or getattr(loss, "is_ready", None)
    return bool(ask()) if callable(ask) else True


def number(value: Any) -> float | None:
    """The value as a finite float, else ``None``; never raises: a script must not fail for being observed."""
    try:
        number = float(value)
    except Exception:
        try:
            number = float(value.item())
        except Exception:
            return None
    return number if math.isfinite(number) else None
