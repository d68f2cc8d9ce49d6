"""Custom loops on TensorFlow: ``GradientTape``, eager or in a ``tf.function``.

In a ``tf.function`` Python runs only while the graph is traced. What is seen then (which optimizers step, how
often, in a loop or not) says how many training steps each later call of that function is.
"""

from __future__ import annotations

import weakref
from collections import Counter
from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING, Any

import tensorflow
from tensorflow.python.data.ops.iterator_ops import OwnedIterator
from tensorflow.python.eager.polymorphic_function.polymorphic_function import Function

from outpace.observe.keras.losses import held
from outpace.observe.keras.sizes import leading_size, static_size
from outpace.patch import around

if TYPE_CHECKING:
    from outpace.observe.keras.loops import Loops


class Trace:
    """What the training in one graph looks like.

    Args:
        root: the outermost graph.
    """

    def __init__(self, root: Any) -> None:
        self.root = weakref.ref(root)
        self.applied: Counter[int] = Counter()
        """Per optimizer, steps in the text of the graph (in replicas of it, each counts)."""
        self.optimizers: dict[int, Any] = {}
        self.replicas = 1
        self.looping = False
        """Steps are within a loop of the graph: only the optimizer's own count tells how many."""
        self.iterations = 0
        self.batch: int | None = None
        self.gradients = 0
        self.evaluates = False

    def add(self, other: Trace) -> None:
        """A function with the trace *other* is called in this graph."""
        self.applied += other.applied
        self.optimizers |= other.optimizers
        self.replicas = max(self.replicas, other.replicas)
        self.looping |= other.looping
        self.batch = other.batch or self.batch
        self.gradients += other.gradients

    @property
    def steps(self) -> int:
        """Training steps per call, where no loop hides them."""
        return max(self.applied.values(), default=0) // self.replicas


class Graphs:
    """Sees gradients of tapes, and calls of functions that train.

    Args:
        loops: told about the steps.
    """

    def __init__(self, loops: Loops) -> None:
        self.loops = loops
        self.fit = loops.fit
        self.traces: weakref.WeakKeyDictionary[Any, Trace] = weakref.WeakKeyDictionary()
        self.calling = False
        self.fresh: Trace | None = None
        """What was traced during the running call."""

    def install(self) -> None:
        """Stand around tapes, functions, iterators; hear of models and optimizers met while tracing."""
        around(Function, "__call__", self._function)
        around(tensorflow.GradientTape, "__enter__", self._tape_enters)
        around(tensorflow.GradientTape, "__exit__", self._tape_leaves)
        around(tensorflow.GradientTape, "gradient", self._gradient)
        around(OwnedIterator, "__next__", self.loops._fetch)
        self.loops.on_traced_call = self._model_called
        self.loops.on_traced_apply = self._applied

    def _tape_enters(self, original: Callable[..., Any], tape: Any) -> Any:
        self.loops.tapes += 1
        return original(tape)

    def _tape_leaves(self, original: Callable[..., Any], tape: Any, *raised: Any) -> Any:
        self.loops.tapes = max(self.loops.tapes - 1, 0)
        return original(tape, *raised)

    def _gradient(
        self, original: Callable[..., Any], tape: Any, target: Any, *args: Any, **kwargs: Any
    ) -> Any:
        result = original(tape, target, *args, **kwargs)
        if not self.fit.inside:
            self.fit.quietly(self._computed, target)
        return result

    def _computed(self, target: Any) -> None:
        if tensorflow.executing_eagerly():
            self.loops.gradient(target)
        elif (trace := self._open_trace()) is not None:
            trace.gradients += 1

    def _open_trace(self) -> Trace | None:
        """The trace of the outermost graph that is being built; a function may be built more than once."""
        if not self.calling:
            return None
        root = list(_graphs())[-1]
        if self.fresh is None or self.fresh.root() is not root:
            self.fresh = Trace(root)
        return self.fresh

    def _model_called(self, size: int | None, training: bool) -> None:
        trace = self._open_trace()
        if trace is not None:
            if training:
                trace.batch = size or trace.batch
            else:
                trace.evaluates = True

    def _applied(self, optimizer: Any) -> None:
        trace = self._open_trace()
        if trace is None:
            return
        key = id(optimizer)
        if not trace.optimizers:
            with tensorflow.init_scope():
                trace.iterations = _iterations(optimizer)
        trace.applied[key] += 1
        trace.optimizers[key] = optimizer
        trace.replicas = tensorflow.distribute.get_strategy().num_replicas_in_sync
        trace.looping |= any("while" in getattr(graph, "name", "") for graph in _graphs())

    def _function(self, original: Callable[..., Any], function: Any, *args: Any, **kwargs: Any) -> Any:
        if self.fit.inside:
            return original(function, *args, **kwargs)
        if self.calling or not tensorflow.executing_eagerly():
            result = original(function, *args, **kwargs)
            self.fit.quietly(self._called_within, function)
            return result
        known = self.traces.get(function)
        before = self.fit.quietly(self._count, known) or 0
        if known is not None and known.applied:
            self.loops.watch.begin()
        started = self.loops.watch.now()
        self.calling, self.fresh = True, None
        try:
            result = original(function, *args, **kwargs)
        finally:
            self.calling, fresh, self.fresh = False, self.fresh, None
        if fresh is not None:
            known = self.traces[function] = fresh
            before = before or fresh.iterations
        if known is not None:
            self.fit.quietly(self._called, known, before, started, (args, kwargs), result)
        return result

    def _called_within(self, function: Any) -> None:
        """A function traced earlier is called in a graph that is being built."""
        inner = self.traces.get(function)
        trace = self._open_trace() if inner is not None and not tensorflow.executing_eagerly() else None
        if trace is not None and inner is not None:
            trace.add(inner)

    def _count(self, trace: Trace | None) -> int:
        if trace is None or not trace.looping:
            return 0
        return max(map(_iterations, trace.optimizers.values()), default=0)

    def _called(self, trace: Trace, before: int, started: float, args: Any, result: Any) -> None:
        """A function that trains, or evaluates, has been called."""
        if not trace.applied:
            self.loops.part.interrupted |= trace.evaluates and not trace.gradients
            return
        steps = self._count(trace) - before if trace.looping else trace.steps
        optimizer = next(iter(trace.optimizers.values()))
        if steps == 1:
            part = self.loops.part
            part.forwarded += leading_size(_arrays(args)) or _promised(args) or trace.batch or 0
            part.losses += _losses(result, trace.gradients // trace.replicas)
            self.loops.take_fetched()
            self.loops.stepped(optimizer)
        elif steps > 1:
            self._several(steps, trace, started, args)
            self.loops.place(optimizer)

    def _several(self, steps: int, trace: Trace, started: float, args: Any) -> None:
        watch = self.loops.watch
        self.loops.rounds.finish()
        self.loops.fetched = None
        watch.claim("keras")
        size = trace.batch or _promised(args)
        if size is None and not trace.looping:
            size = leading_size(_arrays(args))
        end = watch.now()
        begin = started if watch.last_end is None else max(watch.last_end, started)
        for index in range(steps):
            watch.step(
                witness="keras",
                samples=size,
                at=begin + (end - begin) * (index + 1) / steps,
                interrupted=self.loops.part.interrupted and index == 0,
            )
        self.loops.part.interrupted = False
        watch.leave_if_over()


def _graphs() -> Iterator[Any]:
    """The graph that is being built, and those around it."""
    graph = tensorflow.compat.v1.get_default_graph()
    while graph is not None:
        outer = getattr(graph, "outer_graph", None)
        yield graph
        graph = outer if hasattr(outer, "outer_graph") else None


def _iterations(optimizer: Any) -> int:
    return int(keras_value(optimizer.iterations))


def keras_value(variable: Any) -> Any:
    """A variable's value, as NumPy."""
    return getattr(variable, "value", variable).numpy()


def _arrays(args: Any) -> list[Any]:
    """The arguments that are data: tensors and arrays, not models or numbers."""
    positional, named = args
    return [value for value in (*positional, *named.values()) if not hasattr(value, "trainable_variables")]


def _promised(args: Any) -> int | None:
    return next((size for value in _arrays(args) if (size := static_size(value)) is not None), None)


def _losses(result: Any, gradients: int) -> list[Any]:
    """The losses among what a function returns: ``loss`` of a dict, a scalar, or one scalar per gradient."""
    if isinstance(result, dict):
        result = result.get("loss", list(result.values()))
    values = [
        value
        for value in (result if isinstance(result, (list, tuple)) else [result])
        if getattr(value, "shape", None) == () and "float" in str(getattr(value, "dtype", ""))
    ]
    if not values or (gradients > 1 and len(values) != gradients):
        return []
    return [held(value) for value in values[: max(gradients, 1)]]
