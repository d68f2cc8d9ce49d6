"""``fit`` and ``train_on_batch``: steps at Keras' own batch boundaries, samples as the batches hold.

Nothing is added to the callbacks of a script: Keras runs them beside the training only while none of them needs
values at once, and one more could change that. Our functions stand around those of the list itself.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterator
from typing import Any

import keras

from outpace.observe.keras.losses import EpochMean, leading_size
from outpace.observe.keras.places import tell_place
from outpace.patch import around
from outpace.watch import Watch


class Fit:
    """What is known of the ``fit`` that is running.

    Args:
        watch: told about each training step.
    """

    def __init__(self, watch: Watch) -> None:
        self.watch = watch
        self.backend = keras.backend.backend()
        self.depth = 0
        """Above zero while Keras' own loop runs, and its optimizer calls are not a custom loop's."""
        self.placed = False
        self.sizes: deque[int | None] = deque(maxlen=4096)
        self.begin_step = 0
        self.mean = EpochMean()
        self.in_epoch = False

    def install(self) -> None:
        """Stand around ``fit``, ``train_on_batch`` and the list of callbacks."""
        around(keras.Model, "fit", self._fit)
        around(keras.Model, "train_on_batch", self._train_on_batch)
        around(keras.Model, "make_train_function", self._make_train_function)
        lists = keras.callbacks.CallbackList
        around(lists, "on_epoch_begin", self._epoch_begins)
        around(lists, "on_epoch_end", self._epoch_ends)
        around(lists, "on_train_batch_begin", self._batch_begins)
        around(lists, "on_train_batch_end", self._batch_ends)
        around(lists, "on_test_begin", self._interrupt)
        around(lists, "on_predict_begin", self._interrupt)

    def _fit(self, original: Callable[..., Any], model: Any, *args: Any, **kwargs: Any) -> Any:
        self.watch.claim("keras")
        self.depth += 1
        try:
            return original(model, *args, **kwargs)
        finally:
            self.depth -= 1

    def _train_on_batch(
        self, original: Callable[..., Any], model: Any, x: Any, *args: Any, **kwargs: Any
    ) -> Any:
        self.watch.claim("keras")
        self.watch.begin()
        self.depth += 1
        try:
            result = original(model, x, *args, **kwargs)
        finally:
            self.depth -= 1
        self._tell_place(model)
        self.sizes.clear()
        loss = result.get("loss") if isinstance(result, dict) else result
        loss = loss[0] if isinstance(loss, (list, tuple)) else loss
        self.watch.step(witness="keras", samples=leading_size(x), loss=loss)
        return result

    def _make_train_function(
        self, original: Callable[..., Any], model: Any, *args: Any, **kwargs: Any
    ) -> Any:
        """Count samples where the batches pass by: in the graph under TensorFlow, on their way in elsewhere."""
        if self.backend == "tensorflow" and "_outpace_counter" not in model.__dict__:
            self._count_in_graph(model)
        result = original(model, *args, **kwargs)
        if self.backend != "tensorflow" and not hasattr(model.train_function, "_outpace"):
            self._count_on_the_way(model)
        return result

    def _count_in_graph(self, model: Any) -> None:
        import tensorflow

        if model.distribute_strategy.num_replicas_in_sync > 1:
            return
        counter = tensorflow.Variable(0, dtype=tensorflow.int64, trainable=False)
        train_step = model.train_step

        def counted(data: Any) -> Any:
            first = next((part for part in tensorflow.nest.flatten(data) if part is not None), None)
            if first is not None:
                counter.assign_add(tensorflow.shape(first, out_type=tensorflow.int64)[0])
            return train_step(data)

        object.__setattr__(model, "train_step", counted)
        object.__setattr__(model, "_outpace_counter", counter)
        object.__setattr__(model, "_outpace_counted", 0)

    def _count_on_the_way(self, model: Any) -> None:
        inner = model.train_function

        if self.backend == "jax":

            def train_function(state: Any, batches: Any) -> Any:
                return inner(state, self._counted(iter(batches)))

        else:

            def train_function(batches: Any) -> Any:  # type: ignore[misc]
                return inner(list(self._counted(iter(batches))))

        train_function._outpace = True  # type: ignore[attr-defined]
        model.train_function = train_function

    def _counted(self, batches: Iterator[Any]) -> Iterator[Any]:
        for batch in batches:
            self.sizes.append(leading_size(batch))
            yield batch

    def _epoch_begins(self, original: Callable[..., Any], callbacks: Any, epoch: int, *args: Any) -> Any:
        self.in_epoch = True
        self.sizes.clear()
        self.mean = EpochMean()
        params = callbacks.params or {}
        self.watch.progress(epoch=epoch + 1, epochs=params.get("epochs"), steps_per_epoch=params.get("steps"))
        return original(callbacks, epoch, *args)

    def _epoch_ends(self, original: Callable[..., Any], callbacks: Any, epoch: int, logs: Any = None) -> Any:
        self.in_epoch = False
        result = original(callbacks, epoch, logs)
        self.watch.metrics(logs or {})
        return result

    def _batch_begins(self, original: Callable[..., Any], callbacks: Any, batch: int, *args: Any) -> Any:
        self.watch.begin()
        self.begin_step = batch
        return original(callbacks, batch, *args)

    def _batch_ends(self, original: Callable[..., Any], callbacks: Any, batch: int, logs: Any = None) -> Any:
        try:
            self._record(callbacks.model, batch - self.begin_step + 1, logs)
        finally:
            result = original(callbacks, batch, logs)
        return result

    def _record(self, model: Any, steps: int, logs: Any) -> None:
        """One execution of the train function ended: one step, or several in one graph."""
        self._tell_place(model)
        sizes = self._sizes_of(model, steps)
        end = self.watch.now()
        loss = (logs or {}).get("loss")
        begin = self.watch.last_end
        for index, size in enumerate(sizes):
            share = (index + 1) / len(sizes)
            last = index == len(sizes) - 1
            own = None
            if last and loss is not None:
                known = [size or 0 for size in sizes]
                own = self.mean.loss(loss, sum(known), raw=_returns_raw_loss(model))
            at = begin + (end - begin) * share if begin is not None else end
            self.watch.step(witness="keras", samples=size, loss=own, at=at)

    def _sizes_of(self, model: Any, steps: int) -> list[int | None]:
        """Samples of each step of an execution; the last execution of an epoch may hold fewer steps."""
        if self.backend != "tensorflow":
            sizes = [self.sizes.popleft() for _ in range(min(steps, len(self.sizes)))]
            return sizes or [None]
        counter = getattr(model, "_outpace_counter", None)
        if counter is None:
            return [None] * steps
        count = int(counter.numpy())
        fresh = count - model._outpace_counted
        object.__setattr__(model, "_outpace_counted", count)
        return split(fresh, steps, self.mean.full)

    def _interrupt(self, original: Callable[..., Any], *args: Any, **kwargs: Any) -> Any:
        self.watch.interrupt()
        return original(*args, **kwargs)

    def _tell_place(self, model: Any) -> None:
        if not self.placed and model.trainable_variables:
            self.placed = True
            tell_place(self.watch, model.trainable_variables[0])


def split(samples: int, steps: int, full: int | None) -> list[int | None]:
    """*samples* of one execution over its *steps*: full batches first, the rest in the last one.

    At the end of an epoch an execution may hold fewer steps than it could; *full* is the size of earlier ones.
    """
    size = full or -(-samples // max(steps, 1))
    sizes: list[int | None] = []
    left = samples
    while left > 0:
        sizes.append(min(size, left))
        left -= size
    return sizes or [0]


def _returns_raw_loss(model: Any) -> bool:
    """Whether the logs hold the loss of the step itself, not the mean of the epoch so far.

    Keras' own train step keeps a mean; one that the script wrote may return what it likes, and shows by not
    using the mean that it does.
    """
    tracker = getattr(model, "_loss_tracker", None)
    if tracker is None:
        return not any(metric.name == "loss" for metric in getattr(model, "metrics", []))
    if type(model).train_step is _own_train_step(model):
        return False
    try:
        return float(keras.ops.convert_to_numpy(tracker.count)) == 0.0
    except Exception:
        return False


def _own_train_step(model: Any) -> Any:
    """Keras' train step: that of the first class in the model's order which Keras itself defines."""
    for owner in type(model).__mro__:
        if "train_step" in owner.__dict__:
            return owner.__dict__["train_step"] if owner.__module__.startswith("keras.") else None
    return None
