"""When is a training step over? One optimizer: at each of its steps. Several: when the round is."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any


@dataclass
class Part:
    """What happened up to one optimizer's step."""

    at: float = 0.0
    batches: int = 0
    """Newly fetched batches that gradients were computed of."""
    fetched: int = 0
    """Samples in them."""
    forwarded: int = 0
    """Samples by the leading dimension of what the model was called with."""
    interrupted: bool = False
    losses: list[Any] = field(default_factory=list)


def samples(parts: list[Part]) -> int | None:
    """Samples of a training step.

    New data count once, however many models look at them; without a data loader it is the smallest batch that
    an optimizer's gradient came from (a discriminator sees a real and a generated batch, the generator one).
    """
    if len(parts) == 1:
        return parts[0].fetched or parts[0].forwarded or None
    fetched = sum(part.fetched for part in parts)
    if fetched:
        return fetched
    return min((part.forwarded for part in parts if part.forwarded), default=None)


class Rounds:
    """Groups the steps of optimizers into training steps.

    A round is over when the optimizer that opened it steps again. When another one of the round steps again
    first, the round was two: an optimizer has taken over (a new fold, a second phase), or steps more often.

    Args:
        close: takes the parts of each training step, in order; the last one's ``at`` is its end.
    """

    def __init__(self, close: Callable[[list[Part]], None]) -> None:
        self._close = close
        self._optimizers: list[int] = []
        self._parts: list[Part] = []

    def stepped(self, optimizer: int, part: Part) -> None:
        """*optimizer* has stepped; *part* is what happened since the step before."""
        if optimizer in self._optimizers:
            split = self._optimizers.index(optimizer)
            if split:
                self._close(self._parts[:split])
            self._close(self._parts[split:])
            self._optimizers, self._parts = [], []
        self._optimizers.append(optimizer)
        self._parts.append(part)

    def finish(self) -> None:
        """Nothing follows: the open round is over."""
        if self._parts:
            self._close(self._parts)
        self._optimizers, self._parts = [], []
