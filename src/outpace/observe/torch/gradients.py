"""Gradients that no optimizer has followed yet: updates by hand, or an optimizer within compiled code."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from outpace.rounds import Part

#: A measurement, which is to be stopped some time, takes gradients for steps after so many.
ENOUGH = 64


class Unstepped:
    """Keeps what each gradient came of, in case that it was a step of its own.

    Args:
        close: takes the parts of each training step.
    """

    def __init__(self, close: Callable[[list[Part]], None]) -> None:
        self._close = close
        self._parts: list[Part] = []
        self.are_steps = False
        """It is decided: each gradient is a step."""

    def __len__(self) -> int:
        return len(self._parts)

    def add(self, part: Part, at: float) -> None:
        """A gradient was computed at *at*; *part* holds all since the last optimizer step."""
        if self.are_steps:
            part.at = at
            self._close([part])
            return
        self._parts.append(
            Part(
                at=at,
                batches=part.batches - sum(earlier.batches for earlier in self._parts),
                fetched=part.fetched - sum(earlier.fetched for earlier in self._parts),
                forwarded=part.forwarded - sum(earlier.forwarded for earlier in self._parts),
                losses=part.losses[sum(len(earlier.losses) for earlier in self._parts) :],
            )
        )

    def take_for_steps(self) -> None:
        """No optimizer will come: each gradient was a step, and will be."""
        self.are_steps = True
        parts, self._parts = self._parts, []
        for part in parts:
            self._close([part])

    def forget(self) -> None:
        """An optimizer has stepped."""
        self._parts.clear()
        self.are_steps = False


def identity(optimizer: Any) -> int:
    """What stays the same when a script makes its optimizer anew each step: the parameters it works on."""
    try:
        return id(optimizer.param_groups[0]["params"][0])
    except (AttributeError, LookupError, TypeError):
        return id(optimizer)
