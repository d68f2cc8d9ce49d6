"""Records the operators of one step of a plain JAX script: of the functions that it calls in it.

What is computed by single operators between those calls is not seen. Functions are not run again; JAX gives
the jaxpr of a compiled one out of its memory. One that is only differentiated (``jax.grad`` without
``jax.jit``) has its Python run once more, with shapes.
"""

from __future__ import annotations

import dataclasses
import weakref
from collections.abc import Callable
from typing import Any

import jax

from outpace import protocol
from outpace.observe.jax import calls, id_of
from outpace.records import Operator
from outpace.xla.calls import jaxpr_of, settings
from outpace.xla.fusion import merged
from outpace.xla.jaxprs import walk

NOTHING = (
    "no function made by jax.jit was called in the traced step: "
    "operators that JAX computes one by one are not seen"
)


@dataclasses.dataclass
class Call:
    """One outermost call.

    Args:
        shapes: its arguments, with shapes in place of arrays.
        sources: per array of them, which result of which call of the step it is.
    """

    function: Any
    shapes: Any
    sources: list[tuple[int, int] | None]


class Tracer:
    """Keeps the calls of a step while it is on.

    Args:
        wanted: asked at the end of a step whether it was one of a plain JAX script.
    """

    def __init__(self, wanted: Callable[[], bool] = lambda: True) -> None:
        self._wanted = wanted
        self._calls: list[Call] = []
        self._made: dict[int, tuple[weakref.ref[Any], tuple[int, int]]] = {}
        self._device: str | None = None
        self._notes: list[str] = []

    def install(self) -> None:
        """Stand around ``jax.jit``, before the script takes it. Idle until `start`."""
        calls.install()

    def start(self) -> None:
        """A step begins."""
        self._calls, self._made, self._device, self._notes = [], {}, None, []
        calls.listener = self._called

    def stop(self) -> protocol.Traced | None:
        """The step is over: its operators. Raises nothing; what could not be had is in the notes."""
        calls.listener = None
        if not self._wanted():
            return None
        operators = self._operators()
        if not self._calls and not self._notes:
            self._notes.append(NOTHING)
        elif operators and not any(operator.phase == "backward" for operator in operators):
            self._notes.append("no gradient was computed by the functions called in the traced step")
        self._made = {}
        return protocol.Traced(
            framework="jax",
            device=self._device or "cpu",
            operators=operators,
            settings=settings(),
            notes=self._notes,
        )

    def _called(self, function: Any, shapes: Any, real: Any, result: Any) -> None:
        try:
            self._keep(function, shapes, real, result)
        except Exception as error:
            self._give_up(function, error)

    def _keep(self, function: Any, shapes: Any, real: Any, result: Any) -> None:
        sources = []
        for leaf in jax.tree_util.tree_leaves(real):
            if hasattr(leaf, "shape") and hasattr(leaf, "dtype"):
                reference, source = self._made.get(id(leaf), (None, None))
                sources.append(source if reference is not None and reference() is leaf else None)
        index = len(self._calls)
        self._calls.append(Call(function, shapes, sources))
        for place, leaf in enumerate(jax.tree_util.tree_leaves(result)):
            if isinstance(leaf, jax.Array):
                self._made[id(leaf)] = (weakref.ref(leaf), (index, place))
                self._device = id_of(next(iter(leaf.devices())))

    def _operators(self) -> list[Operator]:
        found: list[Operator] = []
        marks: list[list[bool]] = []
        for call in self._calls:
            marks.append([])
            try:
                given = [source is not None and marks[source[0]][source[1]] for source in call.sources]
                operators, marks[-1] = walk(jaxpr_of(call.function, *call.shapes), given)
                found += operators
            except Exception as error:
                self._give_up(call.function, error)
        return merged(found)

    def _give_up(self, function: Any, error: Exception) -> None:
        name = getattr(function, "__name__", type(function).__name__)
        first = str(error).partition("\n")[0]
        self._notes.append(f"the operators of {name} are not known ({type(error).__name__}: {first})")
