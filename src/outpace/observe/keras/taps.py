"""Lets a train step return two values more: its own loss and its samples.

Keras reports the mean of the epoch so far. The loss itself is what the step hands to the metric whose result
it reports; it leaves the graph beside the logs and is taken out before anybody else sees them. What is added
stands after the step's own operations, so that random operations of the graph keep their seeds.
"""

from __future__ import annotations

import threading
from collections.abc import Callable
from typing import Any

import keras

from outpace.observe.keras.sizes import leading_size
from outpace.patch import around

LOSS = "_outpace_loss"
COUNT = "_outpace_count"

_open = threading.local()


class Seen:
    """What the metrics of a model did while one train step ran. A context."""

    def __init__(self) -> None:
        self.updates: list[tuple[Any, Any]] = []
        self.results: list[tuple[Any, Any]] = []
        self._outer: Seen | None = None

    def __enter__(self) -> Seen:
        self._outer = getattr(_open, "seen", None)
        _open.seen = self
        return self

    def __exit__(self, *_raised: object) -> None:
        _open.seen = self._outer

    def loss(self, logs: dict[str, Any], usable: Callable[[Any], bool]) -> Any:
        """The step's own loss: ``loss``, else the sum of all that end so; ``None`` if not known."""
        names = ["loss"] if "loss" in logs else [name for name in logs if str(name).endswith("loss")]
        found = [self._own(logs[name]) for name in names]
        if not found or any(value is None or not usable(value) for value in found):
            return None
        means = [keras.ops.mean(value) if getattr(value, "shape", ()) else value for value in found]
        return sum(means[1:], means[0])

    def _own(self, value: Any) -> Any:
        metric = next((metric for result, metric in self.results if result is value), None)
        if metric is None:
            return value
        updates = [update for owner, update in self.updates if owner is metric]
        return updates[0] if len(updates) == 1 else None


def install() -> None:
    """Hear what metrics are told and asked."""
    around(keras.metrics.Mean, "update_state", _update)
    around(keras.metrics.Mean, "result", _result)


def _update(original: Callable[..., Any], metric: Any, values: Any, *args: Any, **kwargs: Any) -> Any:
    seen = getattr(_open, "seen", None)
    if seen is not None:
        seen.updates.append((metric, values))
    return original(metric, values, *args, **kwargs)


def _result(original: Callable[..., Any], metric: Any) -> Any:
    result = original(metric)
    seen = getattr(_open, "seen", None)
    if seen is not None:
        seen.results.append((result, metric))
    return result


def tensorflow_step(train_step: Callable[[Any], Any], replicas: int, counter: Any) -> Callable[[Any], Any]:
    """*train_step* with its loss and its samples beside the logs.

    Args:
        replicas: how many of them run a batch; what they return is averaged.
        counter: a variable of three numbers that adds up, if one call of the train function is several steps:
            samples, steps, the largest step.
    """
    import tensorflow

    def usable(value: Any) -> bool:
        if not tensorflow.is_tensor(value) or tensorflow.executing_eagerly():
            return True
        return value.graph is tensorflow.compat.v1.get_default_graph()

    def samples(data: Any) -> Any:
        first = next(part for part in keras.tree.flatten(data) if part is not None)
        if replicas > 1:
            return tensorflow.cast(tensorflow.shape(first)[0], tensorflow.float32)
        if counter is None:
            return tensorflow.shape(first)[0]
        size = tensorflow.shape(first, out_type=tensorflow.int64)[0]
        before = counter.read_value()
        counter.assign([before[0] + size, before[1] + 1, tensorflow.maximum(before[2], size)])
        return counter.read_value()

    def tapped(data: Any) -> Any:
        with Seen() as seen:
            logs = train_step(data)
        if not isinstance(logs, dict):
            return logs
        try:
            loss = seen.loss(logs, usable)
            more = {} if loss is None else {LOSS: tensorflow.cast(loss, tensorflow.float32)}
            return {**logs, **more, COUNT: samples(data)}
        except Exception:
            return logs

    return tapped


def jax_step(train_step: Callable[[Any, Any], Any]) -> Callable[[Any, Any], Any]:
    """*train_step* with its loss beside the logs."""
    import jax

    def tapped(state: Any, data: Any) -> Any:
        with Seen() as seen:
            result = train_step(state, data)
        traces = [getattr(leaf, "_trace", None) for leaf in jax.tree_util.tree_leaves((state, data))]

        def usable(value: Any) -> bool:  # a value from within a gradient must not leave it
            return not isinstance(value, jax.core.Tracer) or any(value._trace is trace for trace in traces)

        try:
            logs, state = result
            loss = seen.loss(logs, usable)
        except Exception:
            return result
        return result if loss is None else ({**logs, LOSS: loss}, state)

    return tapped


def torch_loss(seen: Seen, logs: Any) -> Any:
    """The loss of a step that has run."""
    loss: Any = seen.loss(logs, lambda _value: True) if isinstance(logs, dict) else None
    return loss.detach() if hasattr(loss, "detach") else loss


def taken_out(logs: Any) -> tuple[Any, Any, Any]:
    """The logs as the step meant them, its loss, its count."""
    if not isinstance(logs, dict):
        return logs, None, None
    loss, count = logs.get(LOSS), logs.get(COUNT)
    if loss is None and count is None:
        return logs, None, None
    return {name: value for name, value in logs.items() if name not in (LOSS, COUNT)}, loss, count


def size_of_list(data: Any) -> int | None:
    """Samples in what the PyTorch back-end hands to its train function: a list of one batch."""
    return leading_size(data[0]) if isinstance(data, list) and data else None
