"""One call of a train function, until its values can be read."""

from __future__ import annotations

from typing import Any

from outpace.observe.keras.losses import EpochMean, number


class Execution:
    """One call of a train function."""

    def __init__(self, start: float) -> None:
        self.start = start
        self.end = start
        self.interrupted = False
        self.sizes: list[int | None] = []
        self.replicas = 1
        self.expected_steps = 1
        self.logs: Any = None
        self.loss: Any = None
        self.count: Any = None
        self.mean: EpochMean | None = None
        """Where the step's own loss is not to be had: the mean to take it out of."""
        self.counted = [0, 0]
        """Samples and steps before; shared by the executions of a train function that adds them up."""
        self.settled = False

    def settle(self) -> None:
        """Read the values, which the framework has ready."""
        if self.settled:
            return
        try:
            if self.loss is None and self.mean is not None and self.logs:
                self.loss = number(self.logs["loss"])
            elif self.loss is not None:
                self.mean, self.loss = None, number(self.loss)
            self.count = None if self.count is None else [float(value) for value in _flat(self.count)]
        except Exception:
            self.loss = self.count = None
        self.logs = None
        self.settled = True


def _flat(count: Any) -> list[Any]:
    values = count.numpy()
    return list(values.reshape(-1)) if values.ndim else [values]
