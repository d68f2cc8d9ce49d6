"""Lets speed-ups act on a PyTorch training, at the places that `Hooks` sees go by.

The seam is ``_compiled_call_impl`` of each module that the script itself calls: it lies outside of what
``torch.compile`` looks at, pickling and copying a module leave it behind, and modules inside are not slowed.
"""

from __future__ import annotations

import functools
import weakref
from collections.abc import Callable, Sequence
from typing import Any

import torch

from outpace import protocol, speedups
from outpace.errors import OutpaceError
from outpace.speedups import Part
from outpace.watcher import Watch

KERAS = "Keras trains here, and has a precision and a layout of its own"


class Stage:
    """The speed-ups of one training.

    Args:
        watch: told what has taken effect.
        names: of the speed-ups.
    """

    def __init__(self, watch: Watch, names: Sequence[str]) -> None:
        self._watch = watch
        self._parts: dict[str, Part] = {}
        self._refused: dict[str, str] = {}
        self._applied: set[str] = set()
        self._models: weakref.WeakSet[torch.nn.Module] = weakref.WeakSet()
        self._depth = 0
        self.see: Callable[[torch.nn.Module, tuple[Any, ...]], tuple[Any, ...]] = lambda _module, args: args
        """Shows a call to the observer."""
        for name in names:
            try:
                self._parts[name] = speedups.load(name).torch(functools.partial(self._tell, name))
            except OutpaceError as error:
                self._refused[name] = error.what
        for part in self._parts.values():
            part.begin()
        watch.before_end.append(self._say_what_had_no_effect)

    def _tell(self, name: str, detail: str) -> None:
        if name not in self._applied:
            self._applied.add(name)
            self._watch.emit(protocol.Applied(name=name, detail=detail))

    def _say_what_had_no_effect(self) -> None:
        for name, reason in self._refused.items():
            self._watch.note(f"{name} is not applied: {reason}")
        for name, part in self._parts.items():
            if name not in self._applied and self._watch.steps:
                self._watch.note(f"{name} is not applied: {part.reason or 'nothing here takes it'}")

    def batches(self, loader: Any, iterator: Any) -> None:
        """*iterator* is about to go through *loader*."""
        for part in self._parts.values():
            part.batches(loader, iterator)

    def called(self, module: torch.nn.Module, inputs: tuple[Any, ...]) -> tuple[Any, ...]:
        """*module* is being called in training; of the first time, its inputs as they shall be."""
        if not self._parts or self._depth or module in self._models:
            return inputs
        if self._watch.witness == "keras":
            self._refused |= dict.fromkeys(self._parts, KERAS)
            self._parts = {}
        self._models.add(module)
        for part in self._parts.values():
            part.model(module)
        own = module._compiled_call_impl
        if own is None and type(module).__call__ is torch.nn.Module.__call__:
            module._compiled_call_impl = self._around(module)
        inputs, _ = self._enter(module, inputs, {})

        def first(_module: Any, _inputs: Any, result: Any) -> Any:
            once.remove()
            return self._leave(module, result)

        once = module.register_forward_hook(first)
        return inputs

    def _around(self, module: torch.nn.Module) -> Callable[..., Any]:
        ours = weakref.ref(module)  # a module must not keep itself alive

        def plain(*args: Any, **kwargs: Any) -> Any:
            return ours()._call_impl(*args, **kwargs)  # type: ignore[union-attr]

        inner: Callable[..., Any] = plain
        for part in self._parts.values():
            inner = part.around(module, inner)

        def run(*args: Any, **kwargs: Any) -> Any:
            module = ours()
            assert module is not None
            if torch.compiler.is_compiling() or self._depth:
                return plain(*args, **kwargs)
            args = self.see(module, args)
            if not (module.training and torch.is_grad_enabled()):
                return plain(*args, **kwargs)
            args, kwargs = self._enter(module, args, kwargs)
            self._depth += 1
            try:
                result = inner(*args, **kwargs)
            finally:
                self._depth -= 1
            return self._leave(module, result)

        return run

    def _enter(self, module: torch.nn.Module, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        for part in self._parts.values():
            args, kwargs = part.enter(module, args, kwargs)
        return args, kwargs

    def _leave(self, module: torch.nn.Module, result: Any) -> Any:
        for part in reversed(self._parts.values()):
            result = part.leave(module, result)
        return result

    def loss_ready(self) -> None:
        """What belongs to the loss is computed."""
        for part in self._parts.values():
            part.loss_ready()

    def step(self, optimizer: Any) -> None:
        """*optimizer* is about to step."""
        for part in self._parts.values():
            part.loss_ready()
            part.step(optimizer)
