"""Traces one training step of a model over shapes: nothing is computed, nothing is allocated."""

from __future__ import annotations

import contextlib
import copy
import sys
from collections.abc import Callable, Iterator, Mapping
from typing import Any

import torch

from outpace import host
from outpace.errors import OutpaceError, UsageError
from outpace.observe.torch import fake
from outpace.observe.torch.as_on_card import AsOnCard
from outpace.observe.torch.fake import CannotFake, Fakes
from outpace.observe.torch.operators_call import tensors
from outpace.observe.torch.tracing import Tracer
from outpace.protocol import Traced

_HALF = {"fp16-amp": torch.float16, "bf16-amp": torch.bfloat16, "fp16": torch.float16, "bf16": torch.bfloat16}
PRECISIONS = ("fp32", "tf32", "fp16-amp", "bf16-amp", "fp16", "bf16")
LAYOUTS = ("channels-first", "channels-last")
#: Optimizers by name, with what makes them what people train with.
OPTIMIZERS: dict[str, tuple[str, dict[str, Any]]] = {
    "sgd": ("SGD", {"lr": 0.1}),
    "momentum": ("SGD", {"lr": 0.1, "momentum": 0.9, "weight_decay": 1e-4}),
    "adam": ("Adam", {"lr": 1e-3}),
    "adamw": ("AdamW", {"lr": 1e-3}),
    "rmsprop": ("RMSprop", {"lr": 1e-3}),
    "adagrad": ("Adagrad", {"lr": 1e-2}),
}


def trace(
    model: Any,
    example_inputs: Any,
    *,
    loss: Callable[[Any], Any] | None,
    optimizer: str | Callable[[Any], Any] | None,
    precision: str,
    layout: str,
    train: bool,
) -> Traced:
    """The operators and the memory of one step of *model*; see `outpace.trace_model`.

    Raises:
        UsageError: an unknown precision, layout or optimizer, or no tensor among the inputs.
        OutpaceError: the model cannot be run on shapes alone.
    """
    _check(precision, layout, optimizer)
    before = fake.installed
    fakes = Fakes()
    fake.installed = fakes
    try:
        with fakes:
            return _traced(model, example_inputs, loss, optimizer, precision, layout, train)
    except CannotFake as error:
        raise OutpaceError(str(error), "trace a real step of its script: outpace trace") from error
    finally:
        fake.installed = before


def _check(precision: str, layout: str, optimizer: Any) -> None:
    for name, value, known in (
        ("precision", precision, PRECISIONS),
        ("layout", layout, LAYOUTS),
        ("optimizer", optimizer if isinstance(optimizer, str) else "sgd", tuple(OPTIMIZERS)),
    ):
        if value not in known:
            raise UsageError(f"unknown {name} {value!r}", f"one of {', '.join(known)}")


def _traced(
    model: Any,
    example_inputs: Any,
    loss: Callable[[Any], Any] | None,
    optimizer: Any,
    precision: str,
    layout: str,
    train: bool,
) -> Traced:
    half = _HALF.get(precision) if precision in ("fp16", "bf16") else None
    channels_last = layout == "channels-last"
    own = without_values(model, dtype=half, channels_last=channels_last)
    inputs = _fake(example_inputs, half, channels_last=channels_last)
    if not list(_all_tensors(inputs)):
        raise UsageError(
            "there is no tensor among the example inputs", "a tensor, or several, or a dict of them"
        )
    own.train(train)
    stepper = _optimizer(optimizer, own) if train else None
    assert fake.installed is not None
    card = AsOnCard(_HALF[precision] if precision.endswith("-amp") else None, fake.installed.note)
    phase = ["forward"]
    tracer = Tracer(lambda: phase[0])
    with _tf32(allowed=precision == "tf32"), torch.set_grad_enabled(train):
        for last in (False, True):  # the first step makes the optimizer's state
            if last:
                tracer.start()
            try:
                _step(own, inputs, loss, stepper, card, phase)
            finally:
                traced = tracer.stop() if last else None
    assert traced is not None
    return traced


def _step(own: Any, inputs: Any, loss: Any, stepper: Any, card: AsOnCard, phase: list[str]) -> None:
    phase[0] = "forward"
    card.new_step()
    with card:
        output = own(**inputs) if isinstance(inputs, Mapping) else own(*inputs)
        value = _loss(output, loss) if stepper is not None else None
    if stepper is None or value is None:
        return
    phase[0] = "backward"
    value.backward()  # type: ignore[no-untyped-call]
    phase[0] = "optimizer"
    stepper.step()
    stepper.zero_grad()


def _loss(output: Any, loss: Callable[[Any], Any] | None) -> torch.Tensor:
    """Of *output*: by the given function, the model's own, or cross-entropy with made-up labels."""
    if loss is not None:
        value = loss(output)
        assert isinstance(value, torch.Tensor)
        return value
    own = getattr(output, "loss", None)
    if isinstance(own, torch.Tensor):
        return own
    first = next((tensor for tensor in _all_tensors(output) if tensor.is_floating_point()), None)
    if first is None:
        raise UsageError("the model gives no tensor that could have a loss", "loss=function of the output")
    if first.dim() == 0:
        return first
    if first.dim() == 2:
        labels = torch.zeros(first.shape[0], dtype=torch.long)
        return torch.nn.functional.cross_entropy(first, labels)
    return first.float().mean()


def without_values(model: Any, *, dtype: torch.dtype | None = None, channels_last: bool = False) -> Any:
    """A copy of *model* whose parameters and buffers have shapes only; ties between them stay.

    The deep copy is told the stand-in of each tensor beforehand, so that no value is ever copied.

    Args:
        dtype: of the copy's floating-point tensors; ``None``: their own.
        channels_last: four-dimensional tensors are laid out so.
    """
    if not isinstance(model, torch.nn.Module):
        raise UsageError(
            f"{type(model).__name__} is no torch.nn.Module", "trace_model(model, example_inputs)"
        )
    stand_ins: dict[int, Any] = {}
    for tensor in (*model.parameters(), *model.buffers()):
        made = _stand_in(tensor, dtype, channels_last=channels_last)
        if isinstance(tensor, torch.nn.Parameter):
            made = torch.nn.Parameter(made, requires_grad=tensor.requires_grad)
        stand_ins[id(tensor)] = made
    own = copy.deepcopy(model, stand_ins)
    assert isinstance(own, torch.nn.Module)
    return own


def _stand_in(tensor: torch.Tensor, dtype: torch.dtype | None, *, channels_last: bool) -> torch.Tensor:
    own = dtype if dtype is not None and tensor.is_floating_point() else tensor.dtype
    if channels_last and tensor.dim() == 4:
        return torch.empty(tensor.shape, dtype=own, device="cpu", memory_format=torch.channels_last)
    return torch.empty_strided(tensor.shape, tensor.stride(), dtype=own, device="cpu")


def _fake(value: Any, dtype: torch.dtype | None, *, channels_last: bool) -> Any:
    if isinstance(value, torch.Tensor):
        return _stand_in(value, dtype, channels_last=channels_last).requires_grad_(value.requires_grad)
    if isinstance(value, Mapping):
        return {name: _fake(each, dtype, channels_last=channels_last) for name, each in value.items()}
    if isinstance(value, (list, tuple)):
        return [_fake(each, dtype, channels_last=channels_last) for each in value]
    return value


def _all_tensors(value: Any) -> Iterator[torch.Tensor]:
    if isinstance(value, Mapping):
        for each in value.values():
            yield from _all_tensors(each)
    elif isinstance(value, (torch.Tensor, list, tuple)):
        yield from tensors(value)


def _optimizer(asked: Any, model: Any) -> Any:
    parameters = [parameter for parameter in model.parameters() if parameter.requires_grad]
    if asked is None or not parameters:
        return _NoOptimizer(parameters)
    if callable(asked):
        return asked(parameters)
    name, settings = OPTIMIZERS[asked]
    return getattr(torch.optim, name)(parameters, foreach=True, **settings)  # the default on accelerators


class _NoOptimizer:
    """Forward and backward only."""

    def __init__(self, parameters: list[Any]) -> None:
        self._parameters = parameters

    def step(self) -> None:
        """Nothing."""

    def zero_grad(self) -> None:
        """As optimizers do."""
        for parameter in self._parameters:
            parameter.grad = None


@contextlib.contextmanager
def _tf32(*, allowed: bool) -> Iterator[None]:
    """Whether fp32 products may use TF32 while inside: both kinds alike, unlike PyTorch's defaults."""
    matmul, convolution = torch.backends.cuda.matmul.allow_tf32, torch.backends.cudnn.allow_tf32
    torch.backends.cuda.matmul.allow_tf32 = torch.backends.cudnn.allow_tf32 = allowed
    _forget_tf32()
    try:
        yield
    finally:
        torch.backends.cuda.matmul.allow_tf32, torch.backends.cudnn.allow_tf32 = matmul, convolution
        _forget_tf32()


def _forget_tf32() -> None:
    from outpace.observe.torch import operators

    operators._may_use_tf32.cache_clear()


def facts() -> dict[str, Any]:
    """What a trace says of where it was made."""
    version = sys.version_info
    return {
        "host": host.here(),
        "versions": {
            "python": f"{version.major}.{version.minor}.{version.micro}",
            "torch": str(torch.__version__),
        },
    }
