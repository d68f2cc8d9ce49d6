"""The verb: the operators of one training step of a PyTorch model, over shapes alone."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from typing import Any

from outpace import __version__, observe
from outpace.errors import OutpaceError, UsageError
from outpace.records import Trace


def trace_model(
    model: Any,
    example_inputs: Any,
    *,
    loss: Callable[[Any], Any] | None = None,
    optimizer: str | Callable[[Any], Any] | None = "sgd",
    precision: str = "fp32",
    layout: str = "channels-first",
    train: bool = True,
    samples: int | None = None,
) -> Trace:
    """Trace one step of *model* without computing or allocating it.

    Args:
        model: a ``torch.nn.Module``; make it under ``torch.device("meta")`` where it is too large for here.
        example_inputs: a tensor, several in a list, or a dict of keyword arguments; only shapes and types
            count.
        loss: of the model's output to a scalar; else the ``loss`` of the output, else cross-entropy of two
            dimensions (samples, classes), the mean of other outputs.
        optimizer: ``sgd``, ``momentum``, ``adam``, ``adamw``, ``rmsprop``, ``adagrad``, a function of the
            parameters that makes one, or ``None``: forward and backward only.
        precision: ``fp32`` (no TF32), ``tf32``, ``fp16-amp``, ``bf16-amp`` (autocast), ``fp16``, ``bf16``.
        layout: ``channels-first`` or ``channels-last``, of images.
        train: ``False``: the forward pass only.
        samples: in the batch; else the first size of the first input.

    Raises:
        UsageError: an unknown precision, layout or optimizer, or inputs without a tensor.
        OutpaceError: PyTorch is not here, or the model cannot be run on shapes alone.
    """
    reason = observe.load("torch").why_not()
    if reason is not None:
        raise OutpaceError(reason)
    from outpace.observe.torch import models

    if not isinstance(example_inputs, (Mapping, list, tuple)):
        example_inputs = [example_inputs]
    traced = models.trace(
        model,
        example_inputs,
        loss=loss,
        optimizer=optimizer,
        precision=precision,
        layout=layout,
        train=train,
    )
    if samples is None:
        samples = _samples(example_inputs)
    if samples is not None and not (math.isfinite(samples) and samples > 0):
        raise UsageError(f"a batch of {samples} samples makes no step")
    return Trace(
        outpace=__version__,
        target=type(model).__name__,
        script="",
        args=[],
        framework="torch",
        device=traced.device,
        samples=samples,
        operators=traced.operators,
        memory=traced.memory,
        settings={"precision": precision},
        notes=list(traced.notes),
        **models.facts(),
    )


def _samples(inputs: Any) -> int | None:
    values = inputs.values() if isinstance(inputs, Mapping) else inputs
    for value in values:
        shape = getattr(value, "shape", None)
        if shape is not None and len(shape):
            return int(shape[0])
    return None
