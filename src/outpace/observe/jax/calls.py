"""Stands around ``jax.jit`` and its kin, so that the outermost calls of a script's functions can be kept."""

from __future__ import annotations

import copy
import sys
import threading
import types
from collections.abc import Callable
from typing import TYPE_CHECKING, Any, SupportsIndex

import jax
import wrapt

from outpace.patch import around
from outpace.xla.calls import abstract

#: Functions of JAX that return what a script then calls for each step.
MAKERS = ("jit", "grad", "value_and_grad", "vmap")

#: Told the function, its arguments (positional, named) with shapes in place of arrays, those as they are, and
#: its result.
Listener = Callable[[Any, Any, Any, Any], None]

listener: Listener | None = None
"""Told about outermost calls while a step is traced."""

_open = threading.local()


if TYPE_CHECKING:
    Proxy = wrapt.ObjectProxy[Any]
else:
    Proxy = wrapt.ObjectProxy


class Transformed(Proxy):
    """Stands for a function made by JAX in every respect; outermost calls are told to `listener`."""

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        tell = listener
        if tell is None or getattr(_open, "inside", False) or not outermost(args, kwargs):
            return self.__wrapped__(*args, **kwargs)
        shapes = abstract((args, kwargs))  # before: the call may delete what it is given
        _open.inside = True
        try:
            result = self.__wrapped__(*args, **kwargs)
            tell(self.__wrapped__, shapes, (args, kwargs), result)
        finally:
            _open.inside = False
        return result

    def __get__(self, instance: Any, _owner: Any = None) -> Any:
        return self if instance is None else types.MethodType(self, instance)

    def __copy__(self) -> Any:
        return copy.copy(self.__wrapped__)

    def __deepcopy__(self, memo: dict[int, Any]) -> Any:
        return copy.deepcopy(self.__wrapped__, memo)

    def __reduce_ex__(self, protocol: SupportsIndex) -> Any:
        return self.__wrapped__.__reduce_ex__(protocol)


def install() -> None:
    """Stand around the makers. JAX' own modules hold them under names of their own and go past this."""
    for name in MAKERS:
        around(jax, name, _make)


def _make(original: Callable[..., Any], *args: Any, **kwargs: Any) -> Any:
    if args:
        return _stand_for(original(_bare(args[0]), *args[1:], **kwargs))
    made = original(**kwargs)
    if "fun" in kwargs or not callable(made):
        return _stand_for(made)
    return lambda fun: _stand_for(made(_bare(fun)))  # a decorator with arguments


def _bare(function: Any) -> Any:
    """JAX' own function, under which it remembers what it has compiled."""
    return function.__wrapped__ if isinstance(function, Transformed) else function


def _stand_for(made: Any) -> Any:
    return Transformed(made) if callable(made) else made


def outermost(args: tuple[Any, ...], kwargs: dict[str, Any]) -> bool:
    """Whether a call really computes, and does not only build a larger function."""
    ask = getattr(sys.modules.get("jax._src.core"), "trace_state_clean", None)
    if ask is not None and not ask():
        return False
    return not any(isinstance(leaf, jax.core.Tracer) for leaf in jax.tree_util.tree_leaves((args, kwargs)))
