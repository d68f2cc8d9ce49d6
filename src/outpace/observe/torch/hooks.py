"""Sees PyTorch training go by: data fetched, models called, gradients computed, optimizers stepping.

Of a model only the outermost call matters, and of that only the leading dimension of its input. So the one
global module hook takes itself out while a model runs, and comes back with the next fetch, gradient or
optimizer step: the modules inside run at full speed, and a compiled model never meets it.
"""

from __future__ import annotations

import math
import threading
import time
from collections.abc import Callable
from typing import Any

import torch
from torch.nn.modules import module as module_globals
from torch.optim.optimizer import register_optimizer_step_post_hook, register_optimizer_step_pre_hook
from torch.utils.data import DataLoader
from torch.utils.data.dataloader import _BaseDataLoaderIter

from outpace.observe.torch import batches, compilers, places
from outpace.observe.torch.gradients import ENOUGH, Unstepped, identity
from outpace.observe.torch.losses import loss_of, total
from outpace.observe.torch.placement import Placement
from outpace.observe.torch.stage import Stage
from outpace.patch import around
from outpace.rounds import Part, Rounds, samples
from outpace.watcher import Watch


class Hooks:
    """What the hooks of one process have seen since the last optimizer step.

    Args:
        watch: told about each training step.
        placement: moves models and data to the device that was asked for, or ``None``.
        stage: lets speed-ups act.
    """

    def __init__(self, watch: Watch, placement: Placement | None, stage: Stage) -> None:
        self.watch = watch
        self.placement = placement
        self.stage = stage
        stage.see = self._see
        self.rounds = Rounds(self._close_step)
        self.part = Part()
        self.called_with = 0
        """Samples in the largest training call of a model since the last gradient."""
        self.evaluated = 0
        """Samples in the last call that looked like evaluation; a gradient shows that it was training."""
        self.current: batches.Pass | None = None
        self.epoch = 0
        self.batches_per_step = 0
        self.optimizer_depth = 0
        self.optimizer_steps = 0
        self.closure_counted = False
        self.unstepped = Unstepped(self._close_step)
        self.thread = 0
        """The thread that called the model last."""
        self.placed = False
        self.phase = "forward"
        """Of the step, at this moment: ``forward``, ``backward`` or ``optimizer``."""
        self.skips: torch.Tensor | None = None
        self._hook_id = -1

    def install(self) -> None:
        """Put the hooks into PyTorch."""
        self._hook_id = module_globals.register_module_forward_pre_hook(self._call).id
        register_optimizer_step_pre_hook(self._optimizer_enters)
        register_optimizer_step_post_hook(self._optimizer_leaves)
        around(torch.autograd, "backward", self._backward)
        around(_BaseDataLoaderIter, "__next__", self._fetch)
        around(DataLoader, "__iter__", self._new_pass)
        around(torch.amp.GradScaler, "scale", self._scale)
        around(torch.amp.GradScaler, "step", self._scaler_step)
        compilers.meet(self.stage.drive)
        self.watch.at_begin.append(self._begins)
        self.watch.before_end.append(self.finish)

    def _begins(self) -> None:
        self.placed = False

    def _believed(self) -> bool:
        """Whether nobody knows the training better: Keras on PyTorch, or the script itself."""
        return self.watch.witness in (None, "torch")

    def finish(self) -> None:
        """The script is over: close the open round, read what loss scaling skipped."""
        self.rounds.finish()
        if len(self.unstepped) > 1 and not self.optimizer_steps:
            self._take_gradients_for_steps()
        if self.skips is not None:
            self.watch.skipped_steps += int(self.skips.item())
            self.skips = None

    def _arm(self) -> None:
        module_globals._global_forward_pre_hooks[self._hook_id] = self._call

    def _see(self, module: torch.nn.Module, inputs: tuple[Any, ...]) -> tuple[Any, ...]:
        armed = self._hook_id in module_globals._global_forward_pre_hooks
        return self._call(module, inputs) or inputs if armed else inputs

    def _new_pass(self, original: Callable[..., Any], loader: DataLoader[Any]) -> Any:
        iterator = original(loader)
        try:
            length = len(loader)
        except TypeError:
            length = None
        iterator._outpace_pass = batches.Pass(length)
        self.stage.batches(loader, iterator)
        return iterator

    def _fetch(self, original: Callable[..., Any], iterator: Any) -> Any:
        began = time.perf_counter()
        batch = original(iterator)
        if self.thread in (0, threading.get_ident()):  # not by a thread that fetches ahead
            self.watch.fetching += time.perf_counter() - began
        self.optimizer_depth = 0  # an optimizer that raised never left
        self.stage.loss_ready()
        self.current = getattr(iterator, "_outpace_pass", None)
        if self.current is not None:
            unused = self.current.unused
            if unused and self.called_with and self.thread == threading.get_ident():
                unused.popleft()  # the model was called with it, and no gradient came of it: it failed
                self.called_with = 0
            unused.append(batches.size(batch))
        self._arm()
        return self.placement.batch(batch) if self.placement else batch

    def _call(self, module: torch.nn.Module, inputs: tuple[Any, ...]) -> Any:
        if torch.compiler.is_compiling():
            return None
        module_globals._global_forward_pre_hooks.pop(self._hook_id, None)
        if self.placement is not None:
            inputs = self.placement.call(module, inputs)
        size = batches.size(inputs) or 0
        if torch.is_grad_enabled() and module.training:
            self.watch.seen.add("forward")
            self.watch.begin()
            self.called_with = max(self.called_with, size)
            self.thread = threading.get_ident()
            inputs = self.stage.called(module, inputs)
        else:
            self.stage.loss_ready()
            unused = self.current.unused if self.current is not None else None
            self.evaluated = (unused.popleft() if unused else None) or size
            self.part.interrupted = True
            if self._believed():
                self.watch.pause()
        return inputs

    def _backward(self, original: Callable[..., Any], tensors: Any, *args: Any, **kwargs: Any) -> Any:
        # counted before, since optimizers may step while the gradients come (one per parameter)
        self.watch.seen.add("backward")
        self.watch.begin()
        if not self.placed and isinstance(tensors, torch.Tensor):
            self.placed = True
            places.tell_place(self.watch, tensors.device)
        again = self.optimizer_depth > 0 and self.closure_counted
        if not again:
            self._count_samples()
            loss = loss_of(tensors)
            if loss is not None:
                self.part.losses.append(loss)
        self.closure_counted = self.optimizer_depth > 0
        self.called_with = self.evaluated = 0
        self.phase = "backward"
        self.stage.loss_ready()
        try:
            result = original(tensors, *args, **kwargs)
        finally:
            self.phase = "forward"
        if not self.optimizer_steps:
            self._gradient_without_optimizer()
        self._arm()
        if self.watch.stopping:
            self._leave()
        return result

    def _gradient_without_optimizer(self) -> None:
        """No optimizer has been seen yet: perhaps none will be, and this was the step."""
        self.unstepped.add(self.part, self.watch.now())
        if self.unstepped.are_steps:
            self.part = Part()
        if self.watch.course is not None and len(self.unstepped) >= ENOUGH:
            self._take_gradients_for_steps()

    def _take_gradients_for_steps(self) -> None:
        if self._believed():
            self.watch.note("no step of an optimizer could be seen; each gradient is taken for a step")
            self.part = Part()
            self.unstepped.take_for_steps()

    def _count_samples(self) -> None:
        """Gradients were computed: of which samples?"""
        size = self.called_with
        if not size and self.evaluated:  # the model trains in evaluation mode
            size = self.evaluated
            self.part.interrupted = False
        self.part.forwarded += size
        if self.current is None:
            return
        if self.current.unused:
            self.part.fetched += self.current.unused.popleft() or size
            self.part.batches += 1
            self._count_epoch(self.current)

    def _count_epoch(self, data: batches.Pass) -> None:
        if not data.trained:
            data.trained = True
            self.epoch += 1
            self.batches_per_step = 0
            if self._believed():
                self.watch.progress(epoch=self.epoch)

    def _optimizer_enters(self, optimizer: Any, _args: Any, _kwargs: Any) -> None:
        if torch.compiler.is_compiling():
            return
        if self.optimizer_depth == 0:
            self.closure_counted = False
        self.optimizer_depth += 1
        self.phase = "optimizer"
        self.stage.step(optimizer)

    def _optimizer_leaves(self, optimizer: Any, _args: Any, _kwargs: Any) -> None:
        if torch.compiler.is_compiling():
            return
        self.optimizer_depth = max(self.optimizer_depth - 1, 0)
        self.phase = "optimizer" if self.optimizer_depth else "forward"
        if self.optimizer_depth == 0:
            self._stepped(optimizer)

    def _stepped(self, optimizer: Any) -> None:
        self.optimizer_steps += 1
        part, self.part = self.part, Part()
        part.at = self.watch.now()
        if self.unstepped.are_steps:
            self.watch.restart()
        self.unstepped.forget()
        self.rounds.stepped(identity(optimizer), part)
        self._arm()
        if self.watch.stopping:
            self._leave()

    def _leave(self) -> None:
        """To be stopped in the thread that trains, and in no other."""
        if self.thread in (0, threading.get_ident()):
            self.watch.leave_if_over()

    def _close_step(self, parts: list[Part]) -> None:
        one = len(parts) == 1
        self.watch.step(
            witness="torch",
            samples=samples(parts),
            loss=total(parts[0].losses if one else [loss for part in parts for loss in part.losses]),
            at=parts[-1].at,
            interrupted=parts[0].interrupted if one else any(part.interrupted for part in parts),
        )
        fetched = parts[0].batches if one else sum(part.batches for part in parts)
        if not self._believed():
            return
        if fetched and fetched != self.batches_per_step and self.current is not None and self.current.length:
            self.batches_per_step = fetched
            self.watch.progress(epoch=self.epoch, steps_per_epoch=math.ceil(self.current.length / fetched))

    def _scale(self, original: Callable[..., Any], scaler: Any, outputs: Any) -> Any:
        scaled = original(scaler, outputs)
        if isinstance(outputs, torch.Tensor) and scaled is not outputs:
            scaled._outpace_unscaled = outputs.detach()
        return scaled

    def _scaler_step(
        self, original: Callable[..., Any], scaler: Any, optimizer: Any, *args: Any, **kwargs: Any
    ) -> Any:
        before = self.optimizer_steps
        result = original(scaler, optimizer, *args, **kwargs)
        if not scaler.is_enabled():
            return result
        if self.optimizer_steps == before:
            self.watch.skipped_steps += 1
            self._stepped(optimizer)
        elif getattr(optimizer, "_step_supports_amp_scaling", False):
            # the fused optimizer skips by itself, on the device: add up there, read at the end
            found = scaler._per_optimizer_states[id(optimizer)].get("found_inf_per_device", {})
            for found_inf in found.values():
                self.skips = found_inf.clone() if self.skips is None else self.skips + found_inf
                break
        return result
