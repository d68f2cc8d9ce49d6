"""One thread: where operators are small, several threads only wait for each other."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from outpace.errors import OutpaceError
from outpace.speedups import Part, Tell

SLOT = "threads"
EFFECT = "rounding"
LINES = "torch.set_num_threads(1)"


def torch(tell: Tell) -> Part:
    """In PyTorch.

    Raises:
        OutpaceError: there is only one.
    """
    import torch

    if torch.get_num_threads() == 1:
        raise OutpaceError("there is only one thread")
    return _OneThread(tell)


class _OneThread(Part):
    def __init__(self, tell: Tell) -> None:
        self._tell = tell
        self._before = 1

    def on(self) -> None:
        import torch

        self._before = torch.get_num_threads()
        torch.set_num_threads(1)

    def off(self, models: Iterable[Any]) -> None:
        import torch

        if torch.get_num_threads() == 1:
            torch.set_num_threads(self._before)

    def model(self, module: object) -> None:
        import torch

        if torch.get_num_threads() == 1:
            self._tell("one thread computes")
        else:
            self.reason = "the script chooses its threads itself"
