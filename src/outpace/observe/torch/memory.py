"""What a training step keeps in memory, by use."""

from __future__ import annotations

import weakref
from collections.abc import Iterable
from typing import Any

import torch
from torch.optim.optimizer import register_optimizer_step_pre_hook

from outpace.observe.torch.memory_traffic import distinct_bytes, storage_key
from outpace.observe.torch.operators_call import tensors
from outpace.records import StepMemory


class MemoryWatch:
    """Measures parameters, gradients, optimizer state and activations of one step.

    Activations are what the forward pass made or read with gradients in mind, and what still lives when the
    backward pass begins: whatever saved it, autograd, a custom function or a checkpoint. No hook of autograd
    is needed, so its checks of changed tensors stay as they are.
    """

    def __init__(self) -> None:
        self._parameters: dict[int, torch.Tensor] = {}
        self._optimizers: dict[int, Any] = {}
        self._gradients = 0
        self._forward: dict[int, tuple[weakref.ref[torch.UntypedStorage], int]] = {}
        self._activations = 0
        self._in_forward = True
        self._hook = register_optimizer_step_pre_hook(self._optimizer)

    def _optimizer(self, optimizer: Any, _args: Any, _kwargs: Any) -> None:
        try:
            if id(optimizer) not in self._optimizers:
                self._optimizers[id(optimizer)] = optimizer
                self._gradients += distinct_bytes(_gradients(optimizer))
        except Exception:  # an optimizer of a kind of its own: it is not measured
            self._optimizers.pop(id(optimizer), None)

    def call(self, phase: str, inputs: Iterable[torch.Tensor], outputs: Iterable[torch.Tensor]) -> None:
        """An operator has run."""
        inputs = list(inputs)
        for tensor in inputs:
            if isinstance(tensor, torch.nn.Parameter):
                self._parameters.setdefault(storage_key(tensor), tensor)
        if phase != "forward":
            if self._in_forward:
                self._in_forward = False
                self._activations = max(self._activations, self._alive())
            return
        if not self._in_forward:  # the next part of a step that adds up gradients
            self._in_forward = True
            self._forward.clear()
        saves = torch.is_grad_enabled() and any(tensor.requires_grad for tensor in inputs)
        given = {storage_key(tensor) for tensor in inputs if tensor.layout == torch.strided}
        for tensor in (*(inputs if saves else ()), *outputs):
            if tensor.layout != torch.strided:
                continue
            key = storage_key(tensor)
            # a view of what was there before, such as one row of a data set, is nothing new
            if saves or key not in given:
                storage = tensor.untyped_storage()
                self._forward[key] = (weakref.ref(storage), int(storage.nbytes()))

    def _alive(self) -> int:
        kept = {
            key: size
            for key, (reference, size) in self._forward.items()
            if key not in self._parameters and reference() is not None
        }
        return sum(kept.values())

    def close(self) -> StepMemory:
        """Stop watching; the sizes in bytes."""
        self._hook.remove()
        optimized = [
            parameter
            for optimizer in self._optimizers.values()
            for group in optimizer.param_groups
            for parameter in group["params"]
        ]
        parameters = {**self._parameters, **{storage_key(tensor): tensor for tensor in optimized}}
        state = [
            value
            for optimizer in self._optimizers.values()
            for values in optimizer.state.values()
            for value in tensors(list(values.values()) if isinstance(values, dict) else values)
        ]
        gradients = self._gradients or distinct_bytes(
            tensor.grad for tensor in parameters.values() if tensor.grad is not None
        )
        return StepMemory(
            parameters_bytes=distinct_bytes(parameters.values()),
            gradients_bytes=gradients,
            optimizer_state_bytes=distinct_bytes(
                tensor for tensor in state if storage_key(tensor) not in parameters
            ),
            activations_bytes=self._activations,
        )


def _gradients(optimizer: Any) -> list[torch.Tensor]:
    return [
        parameter.grad
        for group in optimizer.param_groups
        for parameter in group["params"]
        if parameter.grad is not None
    ]
