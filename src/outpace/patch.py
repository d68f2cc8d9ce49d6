"""Puts a function of ours around one of a framework's."""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any


def around(owner: Any, name: str, act: Callable[..., Any]) -> None:
    """Replace ``owner.name`` by a plain function that calls ``act(original, ...)``.

    A plain function, since compilers of frameworks trace through it where they would stop at an object.
    """
    original = getattr(owner, name)

    @functools.wraps(original)
    def wrapper(*args: Any, **kwargs: Any) -> Any:
        return act(original, *args, **kwargs)

    setattr(owner, name, wrapper)
