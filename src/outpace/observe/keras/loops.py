"""Custom loops that step a Keras optimizer themselves, where Python runs at each step.

Steps of several optimizers (a GAN) are grouped as everywhere. A step's samples are those fetched from a
``tf.data`` iterator or a PyTorch loader since the step before, else the batch that the model was called with.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import keras

from outpace.observe.keras.fit import Fit
from outpace.observe.keras.losses import Total, held
from outpace.observe.keras.places import tell_place
from outpace.observe.keras.sizes import leading_size
from outpace.patch import around
from outpace.rounds import Part, Rounds, samples
from outpace.watcher import Watch


class Loops:
    """What has been seen since the last step of an optimizer.

    Args:
        watch: told about each training step.
        fit: knows whether Keras' own loop is running.
    """

    def __init__(self, watch: Watch, fit: Fit) -> None:
        self.watch = watch
        self.fit = fit
        self.rounds = Rounds(self._close_step)
        self.part = Part()
        self.tapes = 0
        self.called_with = 0
        """Samples in the largest training call of a model since the last gradient."""
        self.fetched: int | None = None
        """Samples of the latest batch of a loader, until gradients are computed of it."""
        self.unscaled: tuple[Any, Any] = (None, None)
        self.placed = False
        self._calling = False
        self._applying = False
        self.on_traced_call: Callable[[int | None, bool], None] = lambda _size, _training: None
        self.on_traced_apply: Callable[[Any], None] = lambda _optimizer: None

    def install(self) -> None:
        """Stand around optimizers and models, and around gradients and loaders of the back-end."""
        optimizers = keras.optimizers
        around(optimizers.Optimizer, "apply", self._apply)
        around(optimizers.LossScaleOptimizer, "apply", self._apply)
        around(optimizers.LossScaleOptimizer, "scale_loss", self._scale_loss)
        around(keras.Model, "__call__", self._call)
        self.watch.before_end.append(self.rounds.finish)
        if self.fit.backend == "tensorflow":
            from outpace.observe.keras.graphs import Graphs

            Graphs(self).install()
        elif self.fit.backend == "torch":
            import torch
            from torch.utils.data.dataloader import _BaseDataLoaderIter

            around(torch.autograd, "backward", self._backward)
            around(_BaseDataLoaderIter, "__next__", self._fetch)

    def _call(self, original: Callable[..., Any], model: Any, *args: Any, **kwargs: Any) -> Any:
        if self._calling or self.fit.inside:
            return original(model, *args, **kwargs)
        self.fit.quietly(self._called, args, kwargs)
        self._calling = True
        try:
            return original(model, *args, **kwargs)
        finally:
            self._calling = False

    def _called(self, args: tuple[Any, ...], kwargs: dict[str, Any]) -> None:
        size = leading_size(args) or leading_size(list(kwargs.values()))
        training = kwargs.get("training") is not False and self._recording()
        if self._tracing(args):
            self.on_traced_call(size, training)
        elif training:
            self.watch.seen.add("forward")
            self.watch.begin()
            self.called_with = max(self.called_with, size or 0)
        else:
            self.part.interrupted = True
            self.watch.pause()

    def _recording(self) -> bool:
        if self.fit.backend == "tensorflow":
            return self.tapes > 0
        if self.fit.backend == "torch":
            import torch

            return torch.is_grad_enabled()
        return True

    def _tracing(self, values: Any) -> bool:
        """Whether Python runs now to build a graph that runs later."""
        if self.fit.backend == "tensorflow":
            import tensorflow

            return not tensorflow.executing_eagerly()
        if self.fit.backend == "torch":
            import torch

            return bool(torch.compiler.is_compiling())
        import jax

        return any(isinstance(leaf, jax.core.Tracer) for leaf in jax.tree_util.tree_leaves(values))

    def _fetch(self, original: Callable[..., Any], iterator: Any) -> Any:
        began = self.watch.now()
        batch = original(iterator)
        if self.fit.backend != "torch":  # PyTorch's own observer sees its loaders
            self.watch.fetched(self.watch.now() - began)
        if not self.fit.inside:
            self.fetched = self.fit.quietly(leading_size, batch)
        return batch

    def _backward(self, original: Callable[..., Any], tensors: Any, *args: Any, **kwargs: Any) -> Any:
        result = original(tensors, *args, **kwargs)
        if not self.fit.inside:
            self.fit.quietly(self.gradient, tensors)
        return result

    def gradient(self, loss: Any) -> None:
        """Gradients of *loss* were computed."""
        self.watch.seen.add("backward")
        scaled, unscaled = self.unscaled
        self.unscaled = (None, None)
        loss = unscaled if loss is scaled and scaled is not None else loss
        if hasattr(loss, "shape"):
            self.part.losses.append(held(loss))
        self.part.forwarded += self.called_with
        self.called_with = 0
        self.take_fetched()

    def take_fetched(self) -> None:
        """The latest batch of a loader has been trained on."""
        if self.fetched:
            self.part.fetched += self.fetched
            self.part.batches += 1
        self.fetched = None

    def _scale_loss(self, original: Callable[..., Any], optimizer: Any, loss: Any) -> Any:
        scaled = original(optimizer, loss)
        if not self.fit.inside and scaled is not loss:
            self.unscaled = (scaled, loss)
        return scaled

    def _apply(self, original: Callable[..., Any], optimizer: Any, *args: Any, **kwargs: Any) -> Any:
        if self._applying or self.fit.inside:
            return original(optimizer, *args, **kwargs)
        self._applying = True
        try:
            result = original(optimizer, *args, **kwargs)
        finally:
            self._applying = False
        self.fit.quietly(self._applied, optimizer, (args, list(kwargs.values())))
        return result

    def _applied(self, optimizer: Any, values: Any) -> None:
        if self._tracing(values):
            self.watch.seen.add("traced")
            self.on_traced_apply(optimizer)
            return
        if not self.part.forwarded and self.called_with:  # gradients of a kind that is not seen
            self.part.forwarded, self.called_with = self.called_with, 0
        self.stepped(optimizer)

    def stepped(self, optimizer: Any) -> None:
        """An optimizer took a step, and what was seen since the last one belongs to it."""
        self.watch.claim("keras")
        part, self.part = self.part, Part()
        part.at = self.watch.now()
        part.interrupted |= self.fit.interrupted
        self.fit.interrupted = False
        self.place(optimizer)
        self.rounds.stepped(id(optimizer), part)
        self.watch.leave_if_over()

    def place(self, optimizer: Any) -> None:
        """Tell once where the training runs."""
        variables = getattr(optimizer, "_trainable_variables", None)
        if not self.placed and variables:
            self.placed = True
            tell_place(self.watch, variables[0])

    def _close_step(self, parts: list[Part]) -> None:
        losses = [loss for part in parts for loss in part.losses]
        self.watch.step(
            witness="keras",
            samples=samples(parts),
            loss=Total(losses) if losses else None,
            at=parts[-1].at,
            interrupted=any(part.interrupted for part in parts),
        )
