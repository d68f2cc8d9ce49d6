"""A function of ours around one of a framework's."""

from __future__ import annotations

import types
from collections.abc import Callable

from outpace.patch import around


class Owner:
    def method(self, value: int) -> int:
        """Doubles."""
        return 2 * value


def test_around_a_method() -> None:
    seen: list[int] = []

    def act(original: Callable[..., int], owner: Owner, value: int) -> int:
        seen.append(value)
        return original(owner, value) + 1

    around(Owner, "method", act)
    assert Owner().method(3) == 7
    assert seen == [3]
    assert Owner.method.__doc__ == "Doubles."
    assert isinstance(Owner.method, types.FunctionType), "compilers stop at anything else"
