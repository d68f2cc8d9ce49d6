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
COMPILED = "the script compiles its model itself"
NOTHING = "nothing here takes it"


class Stage:
    """The speed-ups of one training; they can be switched between two steps.

    Args:
        watch: told what has taken effect.
        names: of the speed-ups that are on from the beginning.
    """

    def __init__(self, watch: Watch, names: Sequence[str]) -> None:
        self._watch = watch
        self._known: dict[str, Part] = {}
        self._on: dict[str, Part] = {}
        self._refused: dict[str, str] = {}
        self._asked = list(names)
        self._idle = not names and watch.job.race is None
        self._applied: set[str] = set()
        self._models: weakref.WeakSet[torch.nn.Module] = weakref.WeakSet()
        self._calls: weakref.WeakKeyDictionary[Any, Callable[..., Any]] = weakref.WeakKeyDictionary()
        """What to call in place of each model, with those that are on."""
        self._pass: tuple[Any, weakref.ref[Any]] | None = None
        self._depth = 0
        self._driving = False
        self.see: Callable[[torch.nn.Module, tuple[Any, ...]], tuple[Any, ...]] = lambda _module, args: args
        """Shows a call to the observer."""
        self.switch(names)
        watch.before_end.append(self._say_what_had_no_effect)

    def switch(self, names: Sequence[str]) -> None:
        """Between two steps: *names* are on, and no others."""
        models = list(self._models)
        for name in [name for name in reversed(self._on) if name not in names]:
            self._on.pop(name).off(models)
        for name in names:
            if name not in self._on:
                self._switch_on(name, models)
        self._on = {name: self._on[name] for name in names if name in self._on}
        self._calls.clear()

    def _switch_on(self, name: str, models: Sequence[torch.nn.Module]) -> None:
        if name not in self._known and name not in self._refused:
            try:
                self._known[name] = speedups.load(name).torch(functools.partial(self._tell, name))
            except OutpaceError as error:
                self._refused[name] = error.what
        if name in self._refused:
            return
        part = self._on[name] = self._known[name]
        part.on()
        for model in models:
            part.model(model)
        if self._pass is not None:
            loader, reference = self._pass
            iterator = reference()
            if iterator is not None:
                part.batches(loader, iterator)

    def why_not(self, name: str) -> str | None:
        """Why *name*, which has been on for some steps, had no effect."""
        if name in self._applied:
            return None
        if name in self._refused:
            return self._refused[name]
        return (name in self._known and self._known[name].reason) or NOTHING

    def _tell(self, name: str, detail: str) -> None:
        if name not in self._applied:
            self._applied.add(name)
            self._watch.emit(protocol.Applied(name=name, detail=detail))

    def _say_what_had_no_effect(self) -> None:
        for name in self._asked:
            reason = self.why_not(name)
            if reason is not None and (self._watch.steps or name in self._refused):
                self._watch.note(f"{name} is not applied: {reason}")

    def batches(self, loader: Any, iterator: Any) -> None:
        """*iterator* is about to go through *loader*."""
        self._pass = loader, weakref.ref(iterator)
        for part in self._on.values():
            part.batches(loader, iterator)

    def called(self, module: torch.nn.Module, inputs: tuple[Any, ...]) -> tuple[Any, ...]:
        """*module* is being called in training; a first time that nothing drives, its inputs change here."""
        if self._idle or self._depth or module in self._models:
            return inputs
        if self._watch.witness == "keras":
            self._refuse(KERAS)
        self._models.add(module)
        for part in self._on.values():
            part.model(module)
        if not self._driving:
            self._install(module)
        if self._driving or not self._on:
            return inputs
        inputs, _ = self._enter(module, inputs, {})

        def first(_module: Any, _inputs: Any, result: Any) -> Any:
            once.remove()
            return self._leave(module, result)

        once = module.register_forward_hook(first)
        return inputs

    def _refuse(self, reason: str) -> None:
        self._refused |= dict.fromkeys([*self._asked, *self._known], reason)
        self._on, self._known = {}, {}

    def _install(self, module: torch.nn.Module) -> None:
        """Have calls of *module* come to `drive`; a compiled one's are brought there by the hooks."""
        if type(module).__call__ is not torch.nn.Module.__call__:
            return
        ours = weakref.ref(module)  # a module must not keep itself alive

        def call(*args: Any, **kwargs: Any) -> Any:
            return ours()._call_impl(*args, **kwargs)  # type: ignore[union-attr]

        def run(*args: Any, **kwargs: Any) -> Any:
            module = ours()
            assert module is not None
            return self.drive(module, call, args, kwargs, compiled=False)

        module._compiled_call_impl = run

    def drive(
        self,
        module: torch.nn.Module,
        call: Callable[..., Any],
        args: tuple[Any, ...],
        kwargs: dict[str, Any],
        *,
        compiled: bool,
    ) -> Any:
        """*call* the *module*, with the speed-ups where it trains.

        Args:
            compiled: the script has it compiled.
        """
        if torch.compiler.is_compiling() or self._depth:
            return call(*args, **kwargs)
        self._driving = True
        try:
            args = self.see(module, args)
        finally:
            self._driving = False
        if not (self._on and module.training and torch.is_grad_enabled()):
            return call(*args, **kwargs)
        inner = self._around(module, call) if not compiled else self._leave_compiled(call)
        args, kwargs = self._enter(module, args, kwargs)
        self._depth += 1
        try:
            result = inner(*args, **kwargs)
        finally:
            self._depth -= 1
        return self._leave(module, result)

    def _around(self, module: torch.nn.Module, call: Callable[..., Any]) -> Callable[..., Any]:
        if module not in self._calls:
            for part in self._on.values():
                call = part.around(module, call)
            self._calls[module] = call
        return self._calls[module]

    def _leave_compiled(self, call: Callable[..., Any]) -> Callable[..., Any]:
        for part in self._on.values():
            if type(part).around is not Part.around:
                part.reason = COMPILED
        return call

    def _enter(self, module: torch.nn.Module, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        for part in self._on.values():
            args, kwargs = part.enter(module, args, kwargs)
        return args, kwargs

    def _leave(self, module: torch.nn.Module, result: Any) -> Any:
        for part in reversed(self._on.values()):
            result = part.leave(module, result)
        return result

    def loss_ready(self) -> None:
        """What belongs to the loss is computed."""
        for part in self._on.values():
            part.loss_ready()

    def step(self, optimizer: Any) -> None:
        """*optimizer* is about to step."""
        for part in self._on.values():
            part.loss_ready()
            part.step(optimizer)
