"""Records the operators of one training step of Keras on TensorFlow or on JAX, out of its compiled functions.

Nothing runs again: TensorFlow has the graph, JAX the jaxpr of what it has compiled. On PyTorch, the observer
of PyTorch records.
"""

from __future__ import annotations

import weakref
from collections.abc import Callable
from typing import Any

import msgspec

from outpace import protocol
from outpace.observe.keras.places import common_id, jax_id
from outpace.observe.keras.sizes import Counted, leading_size
from outpace.patch import around
from outpace.records import Operator, StepMemory
from outpace.xla.fusion import merged

Made = Callable[[], list[Operator]]

NOTHING = "no compiled function was called in the traced step: operators that run one by one are not seen"


class Tracer:
    """Keeps the calls of a step while it is on.

    Args:
        backend: of Keras; with ``torch`` there is nothing to do here.
    """

    def __init__(self, backend: str) -> None:
        self.backend = backend
        self.on = False
        self._known: weakref.WeakKeyDictionary[Any, dict[Any, list[Operator]]] = weakref.WeakKeyDictionary()
        """The operators of a graph, by what it ran on; a large one takes seconds."""
        self._inside = False
        self._reset()

    def _reset(self) -> None:
        self._calls: list[tuple[str, int | None, Made]] = []
        """What was called, on how many samples as far as its arguments tell, how to get its operators."""
        self._notes: list[str] = []
        self._samples: int | None = None
        self._memory: StepMemory | None = None
        self._device = "cpu"
        self._steps = 1
        self._trained = 0
        """Calls of a train function of Keras since the start."""

    def install(self) -> None:
        """Stand around the functions that TensorFlow compiles. Idle until `start`."""
        if self.backend == "tensorflow":
            from tensorflow.python.eager.polymorphic_function.polymorphic_function import Function

            around(Function, "__call__", self._function)

    def start(self) -> None:
        """A step begins."""
        self._reset()
        self.on = self.backend != "torch"

    def stop(self) -> protocol.Traced | None:
        """The step is over: its operators; ``None`` on PyTorch. What could not be had is in the notes."""
        if not self.on:
            return None
        self.on = False
        found: list[Operator] = []
        for name, batch, make in self._calls:
            try:
                operators = make()
            except Exception as error:
                self._give_up(name, error)
                continue
            found += operators
            if any(operator.phase == "backward" for operator in operators):
                self._samples = self._samples or batch
        if not self._calls and not self._notes:
            self._notes.append(NOTHING)
        return protocol.Traced(
            framework=f"keras on {self.backend}",
            device=self._device,
            operators=_of_one(merged(found), self._steps),
            samples=self._samples,
            memory=self._memory,
            settings=self._settings(),
            notes=self._notes,
        )

    def called(
        self, inner: Callable[..., Any], args: tuple[Any, ...], backend: str, *, model: Any = None
    ) -> tuple[Any, ...]:
        """A train function is about to be called with *args*; returns those to call it with.

        Args:
            model: asked for the memory of its variables, and how many steps a call is.
        """
        if not self.on:
            return args
        self._trained += 1
        if self._trained > 1:  # steps are told of later than they happen; one is enough
            return args
        try:
            self._about(model)
            if backend == "jax":
                return self._jax_called(inner, args)
        except Exception as error:
            self._give_up("the train function", error)
        return args

    def graph_called(self, function: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> None:
        """A function of TensorFlow has been called from outside of any graph."""
        batch = leading_size([*args, *kwargs.values()])

        def make() -> list[Operator]:
            from outpace.observe.keras.graph_operators import operators_of_graph, shapes_of_inputs

            concrete = function.get_concrete_function(*args, **kwargs)
            compiled = bool(getattr(function, "_jit_compile", False))
            size = batch or self._samples
            if size is None:
                self._notes.append("the size of the batch is not known; counted as 1")
            shapes = shapes_of_inputs(concrete, args, kwargs)
            known = self._known.setdefault(concrete.graph, {})
            key = (size, None if shapes is None else tuple(shapes))
            if key not in known:
                known[key] = operators_of_graph(concrete.graph, size, shapes, compiled=compiled)
            return known[key]

        self._calls.append((getattr(function, "__name__", "a function"), batch, make))

    def saw_samples(self, samples: int | None, *, steps: int | None = None) -> None:
        """What only running it told: the samples of a step, and how many steps the call was."""
        self._samples = samples or self._samples
        self._steps = steps or self._steps

    def _function(self, original: Callable[..., Any], function: Any, *args: Any, **kwargs: Any) -> Any:
        import tensorflow

        if not self.on or self._inside or self._trained > 1 or not tensorflow.executing_eagerly():
            return original(function, *args, **kwargs)
        self._inside = True
        try:
            result = original(function, *args, **kwargs)
        finally:
            self._inside = False
        try:
            self.graph_called(function, args, kwargs)
        except Exception as error:
            self._give_up("a function", error)
        return result

    def _jax_called(self, inner: Callable[..., Any], args: tuple[Any, ...]) -> tuple[Any, ...]:
        from outpace.xla.calls import abstract, jaxpr_of
        from outpace.xla.jaxprs import operators_of

        state, batches = args
        shapes = abstract(state)
        self._device = next(
            (jax_id(device) for part in state for one in part for device in one.devices()), "cpu"
        )
        kept: list[Any] = []

        def make() -> list[Operator]:
            return operators_of(
                jaxpr_of(lambda state, data: inner(state, iter([data])), (shapes, kept[0]), {})
            )

        self._calls.append(("the train function", None, make))
        self._steps = 1  # of several in one call, only the first will be looked at
        self._memory = self._memory or _memory_of_state(shapes)
        return state, _Kept(batches, kept, self, abstract)

    def _about(self, model: Any) -> None:
        if model is None:
            return
        self._steps = int(getattr(model, "steps_per_execution", 1) or 1)
        self._memory = _memory(model)
        if self.backend == "tensorflow" and model.trainable_variables:
            value = model.trainable_variables[0].value
            self._device = common_id(str((value() if callable(value) else value).device))

    def _settings(self) -> dict[str, str]:
        if self.backend == "jax":
            from outpace.xla.calls import settings

            return settings()
        import tensorflow

        on = tensorflow.config.experimental.tensor_float_32_execution_enabled()
        return dict.fromkeys(("matmul_fp32", "convolution_fp32"), "tf32" if on else "fp32")

    def _give_up(self, name: str, error: Exception) -> None:
        first = str(error).partition("\n")[0]
        self._notes.append(f"the operators of {name} are not known ({type(error).__name__}: {first})")


class _Kept(Counted):
    """An iterator that keeps the shapes of what goes through it."""

    def __init__(self, batches: Any, kept: list[Any], tracer: Tracer, abstract: Callable[[Any], Any]) -> None:
        super().__init__(batches)
        self._counts = not isinstance(batches, Counted)
        if isinstance(batches, Counted):
            self.sizes = batches.sizes
        self._kept = kept
        self._tracer = tracer
        self._abstract = abstract

    def __next__(self) -> Any:
        batch = super().__next__() if self._counts else next(self._batches)
        if not self._kept:
            self._kept.append(self._abstract(batch))
            self._tracer.saw_samples(leading_size(batch))
        return batch


def _of_one(found: list[Operator], steps: int) -> list[Operator]:
    """The operators of one of several equal steps."""
    return [msgspec.structs.replace(one, count=max(round(one.count / steps), 1)) for one in found]


def _bytes(variables: Any) -> int:
    """Of arrays, variables, or their shapes."""
    total = 0
    for variable in variables:
        size = 1
        for length in variable.shape:
            size *= int(length)
        dtype = variable.dtype
        total += size * int(getattr(dtype, "itemsize", 0) or getattr(dtype, "size", 0) or _itemsize(dtype))
    return total


def _itemsize(name: Any) -> int:
    """Bytes of a type by its name, as Keras' variables tell it: ``float32``, ``bool``, ``float8_e4m3fn``."""
    digits = "".join(letter for letter in str(name).partition("_")[0] if letter.isdigit())
    return max(int(digits or 8) // 8, 1)


def _memory(model: Any) -> StepMemory:
    trained = _bytes(model.trainable_variables)
    optimizer = getattr(model, "optimizer", None)
    return StepMemory(
        parameters_bytes=trained + _bytes(model.non_trainable_variables),
        gradients_bytes=trained,
        optimizer_state_bytes=None if optimizer is None else _bytes(optimizer.variables),
    )


def _memory_of_state(state: Any) -> StepMemory | None:
    """Of what a train function on JAX is given: variables trained, fixed, of the optimizer, of metrics."""
    if not isinstance(state, tuple) or len(state) != 4:
        return None
    trained, fixed, optimizer, _ = map(_bytes, state)
    return StepMemory(
        parameters_bytes=trained + fixed, gradients_bytes=trained, optimizer_state_bytes=optimizer
    )
