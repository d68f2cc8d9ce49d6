"""``fit`` and ``train_on_batch``: each call of the train function is a step, or several in one graph.

Nothing is added to the callbacks of a script. A step's values are read where Keras itself has just read those
of the same step, in the same thread; so a step is reported a little after it ended, with the time of its end.
With several steps per execution, the loss recorded is that of the last of them.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable
from typing import Any

import keras

from outpace.observe.keras import taps
from outpace.observe.keras.execution import Execution
from outpace.observe.keras.losses import EpochMean
from outpace.observe.keras.places import tell_place
from outpace.observe.keras.sizes import Counted, split
from outpace.observe.keras.tracing import Tracer
from outpace.patch import around
from outpace.watcher import Watch


class Fit:
    """What is known of the ``fit`` that is running.

    Args:
        watch: told about each training step.
        tracer: records the operators of a step, where that is planned.
    """

    def __init__(self, watch: Watch, tracer: Tracer | None = None) -> None:
        self.watch = watch
        self.tracer = tracer
        self.backend = keras.backend.backend()
        self.inside = 0
        """Above zero while a train function runs, whose optimizer calls are not a custom loop's."""
        self.interrupted = False
        self.placed = False
        self.pending: deque[Execution] = deque()
        self.mean = EpochMean()
        self.last_end: float | None = None

    def install(self) -> None:
        """Stand around the making of train functions and the list of callbacks."""
        taps.install()
        model, lists = keras.Model, keras.callbacks.CallbackList
        around(model, "make_train_function", self._make_train_function)
        around(model, "train_on_batch", self._train_on_batch)
        around(model, "reset_metrics", self._reset_metrics)
        around(lists, "on_train_begin", self._train_begins)
        around(lists, "on_epoch_begin", self._epoch_begins)
        around(lists, "on_epoch_end", self._epoch_ends)
        behind = "_on_train_batch_end" if hasattr(lists, "_on_train_batch_end") else "on_train_batch_end"
        around(lists, behind, self._batch_ends)
        for owner, name in (
            (lists, "on_test_begin"),
            (lists, "on_predict_begin"),
            (model, "test_on_batch"),
            (model, "predict_on_batch"),
        ):
            around(owner, name, self._interrupt)
        self.watch.before_end.append(self.finish)

    def finish(self) -> None:
        """The script is over: report what is open, waiting for it."""
        for execution in self.pending:
            execution.settle()
        self._report()

    def quietly(self, act: Callable[..., Any], *args: Any) -> Any:
        """Call *act*; an error of ours costs the observation, never the training."""
        try:
            return act(*args)
        except Exception as error:
            self.watch.note(f"Keras is not fully observed here ({type(error).__name__}: {error})")
            return None

    def _make_train_function(
        self, original: Callable[..., Any], model: Any, *args: Any, **kwargs: Any
    ) -> Any:
        attributes = vars(model)
        own = attributes.get("train_step")
        tapped = self.quietly(self._tapped, model)
        if tapped is not None:
            attributes["train_step"] = tapped
        try:
            return original(model, *args, **kwargs)
        finally:
            if tapped is not None:
                del attributes["train_step"]
                if own is not None:
                    attributes["train_step"] = own
            self.quietly(self._observe, model)

    def _tapped(self, model: Any) -> Callable[..., Any] | None:
        if self.backend == "jax":
            return taps.jax_step(model.train_step)
        if self.backend != "tensorflow":
            return None
        import tensorflow

        replicas = model.distribute_strategy.num_replicas_in_sync
        counter = None
        if replicas == 1 and getattr(model, "steps_per_execution", 1) > 1:
            counter = tensorflow.Variable([0, 0, 0], dtype=tensorflow.int64, trainable=False)
        return taps.tensorflow_step(model.train_step, replicas, counter)

    def _observe(self, model: Any) -> None:
        """Stand around the model's train function."""
        inner = model.train_function
        if inner is None or hasattr(inner, "_outpace"):
            return
        counted = [0, 0]

        def train_function(*args: Any) -> Any:
            execution, args = self.quietly(self._enter, model, args, counted) or (None, args)
            if self.tracer is not None:
                args = self.tracer.called(inner, args, self.backend, model=model)
            self.inside += 1
            seen = taps.Seen()
            try:
                if self.backend == "torch" and not model.jit_compile:
                    with seen:
                        result = inner(*args)
                else:
                    result = inner(*args)
            finally:
                self.inside -= 1
            left = self.quietly(self._leave, execution, seen, args, result)
            return left[0] if left else _without_ours(result)

        train_function._outpace = True  # type: ignore[attr-defined]
        model.train_function = train_function

    def _enter(
        self, model: Any, args: tuple[Any, ...], counted: list[int]
    ) -> tuple[Execution, tuple[Any, ...]]:
        self.watch.claim("keras")
        self.watch.begin()
        execution = Execution(self.watch.now())
        execution.counted = counted
        execution.interrupted, self.interrupted = self.interrupted, False
        if not execution.interrupted and self.last_end is not None:
            execution.start = self.last_end
        execution.expected_steps = int(getattr(model, "steps_per_execution", 1))
        if self.backend == "tensorflow":
            execution.replicas = model.distribute_strategy.num_replicas_in_sync
        if _keras_own_step(model):
            execution.mean = self.mean
        if self.backend == "torch":
            execution.sizes = [taps.size_of_list(args[0])]
        elif not hasattr(args[-1], "get_next"):
            args = (*args[:-1], Counted(iter(args[-1])))
        return execution, args

    def _leave(self, execution: Execution, seen: taps.Seen, args: tuple[Any, ...], result: Any) -> tuple[Any]:
        execution.end = self.last_end = self.watch.now()
        logs = result[0] if self.backend == "jax" else result
        logs, execution.loss, execution.count = taps.taken_out(logs)
        if self.backend == "torch":
            execution.loss = taps.torch_loss(seen, logs)
        if isinstance(args[-1], Counted):
            execution.sizes = args[-1].sizes
            self.watch.fetched(args[-1].seconds)
            execution.count = None
        execution.logs = logs
        self.pending.append(execution)
        self._report()
        self.watch.leave_if_over()
        return ((logs, *result[1:]) if self.backend == "jax" else logs,)

    def _train_on_batch(self, original: Callable[..., Any], model: Any, *args: Any, **kwargs: Any) -> Any:
        result = original(model, *args, **kwargs)
        self.quietly(self.finish)
        self.quietly(self._place, model)
        return result

    def _reset_metrics(self, original: Callable[..., Any], model: Any) -> Any:
        self.mean = EpochMean()
        return original(model)

    def _train_begins(self, original: Callable[..., Any], callbacks: Any, *args: Any, **kwargs: Any) -> Any:
        self.quietly(self._observe, callbacks.model)
        self.quietly(self._place, callbacks.model)
        return original(callbacks, *args, **kwargs)

    def _epoch_begins(self, original: Callable[..., Any], callbacks: Any, epoch: int, *args: Any) -> Any:
        self.quietly(self._new_epoch, callbacks.params or {}, epoch)
        return original(callbacks, epoch, *args)

    def _new_epoch(self, params: dict[str, Any], epoch: int) -> None:
        self._report()
        self.watch.flush()
        self.watch.progress(epoch=epoch + 1, epochs=params.get("epochs"), steps_per_epoch=params.get("steps"))

    def _epoch_ends(self, original: Callable[..., Any], callbacks: Any, epoch: int, logs: Any = None) -> Any:
        result = original(callbacks, epoch, logs)
        self.quietly(self._end_epoch, callbacks.model, logs)
        return result

    def _end_epoch(self, model: Any, logs: Any) -> None:
        self.finish()  # Keras has waited for every step
        self._place(model)
        values: dict[str, Any] = {}
        for name, value in (logs or {}).items():
            values |= value if isinstance(value, dict) else {name: value}
        self.watch.metrics(values)

    def _batch_ends(self, original: Callable[..., Any], callbacks: Any, batch: int, logs: Any = None) -> Any:
        result = original(callbacks, batch, logs)
        self.quietly(self._settle, logs)
        return result

    def _settle(self, logs: Any) -> None:
        """In a thread beside the training where Keras uses one."""
        open_ = list(self.pending)
        for execution in [one for one in open_ if one.logs is logs] or open_:
            execution.settle()

    def _interrupt(self, original: Callable[..., Any], *args: Any, **kwargs: Any) -> Any:
        self.interrupted = True
        self.watch.pause()
        return original(*args, **kwargs)

    def _report(self) -> None:
        """Tell of the executions whose values are known, in order."""
        while self.pending and self.pending[0].settled:
            execution = self.pending.popleft()
            sizes = self._sizes(execution)
            if self.tracer is not None and self.tracer.on:
                self.tracer.saw_samples(sizes[0] if sizes else None)
            loss = execution.loss
            if loss is not None and execution.mean is not None:
                loss = execution.mean.own(loss, sum(size or 0 for size in sizes))
            span = execution.end - execution.start
            for index, size in enumerate(sizes):
                self.watch.step(
                    witness="keras",
                    samples=size,
                    loss=loss if index == len(sizes) - 1 else None,
                    at=execution.start + span * (index + 1) / len(sizes),
                    interrupted=execution.interrupted and index == 0,
                )

    def _sizes(self, execution: Execution) -> list[int | None]:
        """Samples of each step; the last execution of an epoch may hold fewer steps."""
        if execution.sizes:
            return execution.sizes
        if not execution.count:
            return [None] * execution.expected_steps
        if len(execution.count) == 1:
            return [round(execution.count[0] * execution.replicas)]
        samples, steps, largest = map(int, execution.count)
        before = execution.counted[:]
        execution.counted[:] = [samples, steps]
        return split(samples - before[0], steps - before[1], largest)

    def _place(self, model: Any) -> None:
        variables = model.trainable_variables
        if not self.placed and variables:
            tell_place(self.watch, variables[0])
            self.placed = True


def _without_ours(result: Any) -> Any:
    if isinstance(result, tuple):
        return (taps.taken_out(result[0])[0], *result[1:])
    return taps.taken_out(result)[0]


def _keras_own_step(model: Any) -> bool:
    """Whether the train step is Keras' and not the script's."""
    return str(getattr(model.train_step, "__module__", "")).startswith("keras.")
