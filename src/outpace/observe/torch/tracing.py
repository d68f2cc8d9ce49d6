"""Records the operators of one training step."""

from __future__ import annotations

import contextlib
import sys
import time
from collections.abc import Callable
from typing import Any

import msgspec
import torch
from torch.utils._python_dispatch import TorchDispatchMode, _pop_mode, _push_mode

from outpace.observe.torch.memory import MemoryWatch
from outpace.observe.torch.operators import describe
from outpace.observe.torch.operators_call import tensors
from outpace.observe.torch.settings import settings
from outpace.protocol import Traced
from outpace.records import Operator, StepMemory


class Tracer:
    """Sees every operator of PyTorch between `start` and `stop`, on whatever thread autograd runs it.

    Results stay bit by bit what they are without it. Compiled models run uncompiled meanwhile, since compiled
    code shows no operators.

    Args:
        phase: which part of the step is running: ``forward``, ``backward`` or ``optimizer``.
    """

    def __init__(self, phase: Callable[[], str]) -> None:
        self._phase = phase
        self._mode: _Recorder | None = None
        self._stance: Any = None

    def start(self) -> None:
        """Record from now on, on this thread."""
        if "torch._dynamo" in sys.modules:  # else nothing can have been compiled
            with contextlib.suppress(RuntimeError):  # not within compiled code
                self._stance = torch.compiler.set_stance("force_eager")
        self._mode = _Recorder(self._phase)
        _enter_below(self._mode)

    def stop(self) -> Traced:
        """Stop recording; what was seen. Waits for the device, to read the times."""
        mode, self._mode = self._mode, None
        assert mode is not None, "stop without start"
        _leave(mode)
        if self._stance is not None:
            self._stance.__exit__(None, None, None)
            self._stance = None
        return mode.finish()


class _Recorder(TorchDispatchMode):  # type: ignore[no-untyped-call]
    # flex_attention and its like would else raise under a mode
    supports_higher_order_operators = True

    def __init__(self, phase: Callable[[], str]) -> None:
        super().__init__()  # type: ignore[no-untyped-call]
        self._phase = phase
        self._calls: list[tuple[Operator, _Timing]] = []
        self._memory: MemoryWatch | None = MemoryWatch()
        self._notes: list[str] = []

    def __torch_dispatch__(
        self, func: Any, types: Any, args: tuple[Any, ...] = (), kwargs: dict[str, Any] | None = None
    ) -> Any:
        kwargs = kwargs or {}
        if any(not _plain(kind) for kind in types):
            return NotImplemented  # sharded, nested, quantized: what it does with plain tensors comes by here
        timing = _Timing(args, kwargs)
        result = func(*args, **kwargs)
        timing.end(result)
        try:
            self._record(func, args, kwargs, result, timing)
        except Exception as error:
            self._notes.append(f"{func}: {type(error).__name__}: {error}")
        return result

    def _record(self, func: Any, args: Any, kwargs: dict[str, Any], result: Any, timing: _Timing) -> None:
        phase = self._phase()
        if self._memory is not None:
            try:
                self._memory.call(phase, tensors([*args, *kwargs.values()]), tensors(result))
            except Exception:  # rather no memory than half of it
                self._memory.close()
                self._memory = None
        operator = describe(func, args, kwargs, result, phase)
        if operator is not None:
            self._calls.append((operator, timing))

    def finish(self) -> Traced:
        places = list(dict.fromkeys(timing.place for _, timing in self._calls))
        main = next((place for place in places if place not in ("cpu", "meta", "")), "cpu")
        fakes = _fakes()
        for place in places:
            kind = place.partition(":")[0]
            if kind in ("cuda", "xpu") and fakes is None:
                getattr(torch, kind).synchronize(place)
        operators = _merged(
            [
                (_placed(operator, timing.place, main), None if fakes else timing.seconds())
                for operator, timing in self._calls
            ]
        )
        return Traced(
            framework="torch",
            device="meta" if fakes else main,
            operators=operators,
            memory=self._step_memory(),
            settings=settings(main),
            notes=sorted({*self._notes, *(fakes.notes if fakes else ())}),
        )

    def _step_memory(self) -> StepMemory | None:
        try:
            return self._memory.close() if self._memory is not None else None
        except Exception:
            return None


def _fakes() -> Any:
    """The fake mode of `fake.install`, if the script runs in it."""
    module = sys.modules.get("outpace.observe.torch.fake")
    return None if module is None else module.installed


def _plain(kind: type) -> bool:
    # FakeTensor and Parameter are plain tensors in all that matters here
    return kind in (torch.Tensor, torch.nn.Parameter) or kind.__name__ == "FakeTensor"


class _Timing:
    """The time of one call: events around it on an accelerator, the clock on the CPU."""

    def __init__(self, args: Any, kwargs: dict[str, Any]) -> None:
        self.place = _place(tensors([*args, *kwargs.values()]))
        self._end: Any = None
        self._start = self._event()
        self._before = time.perf_counter()
        self._after = self._before

    def _event(self) -> Any:
        """What marks this moment on the device, or ``None`` where that cannot be had."""
        kind = self.place.partition(":")[0]
        if kind not in ("cuda", "xpu") or _fakes() is not None:
            return None
        backend = getattr(torch, kind)
        try:
            if kind == "cuda" and torch.cuda.is_current_stream_capturing():
                return None  # it would become part of the script's graph
            event = backend.Event(enable_timing=True)
            event.record(backend.current_stream(self.place))
        except RuntimeError:
            return None
        return event

    def end(self, result: Any) -> None:
        self._after = time.perf_counter()
        if self._start is not None:
            self._end = self._event()
        elif not self.place:
            self.place = _place(tensors(result))

    def seconds(self) -> float | None:
        kind = self.place.partition(":")[0]
        if kind in ("cpu", ""):
            return self._after - self._before
        if self._start is None or self._end is None:
            return None
        try:
            return float(self._start.elapsed_time(self._end)) / 1000
        except RuntimeError:
            return None


def _place(given: Any) -> str:
    places = {str(tensor.device): tensor.device for tensor in given}
    for name, device in places.items():
        if device.type != "cpu":
            return name
    return next(iter(places), "")


def _placed(operator: Operator, place: str, main: str) -> Operator:
    """Say so if an operator ran elsewhere than the training: step counters of optimizers, on the CPU."""
    if place in ("", main):
        return operator
    return msgspec.structs.replace(operator, attributes={**operator.attributes, "device": place})


def _merged(calls: list[tuple[Operator, float | None]]) -> list[Operator]:
    groups: dict[bytes, list[Any]] = {}
    for operator, seconds in calls:
        group = groups.setdefault(msgspec.json.encode(operator), [operator, 0, 0.0])
        group[1] += 1
        group[2] = None if seconds is None or group[2] is None else group[2] + seconds
    return [
        msgspec.structs.replace(operator, count=count, seconds=seconds)
        for operator, count, seconds in groups.values()
    ]


def _enter_below(mode: TorchDispatchMode) -> None:
    """Enter *mode* below those of the script, which may leave theirs before we leave ours."""
    above = _take_off(None)
    mode.__enter__()  # type: ignore[no-untyped-call]
    for other in reversed(above):
        _push_mode(other)


def _leave(mode: TorchDispatchMode) -> None:
    above = _take_off(mode)
    count = torch._C._len_torch_dispatch_stack()
    if count and torch._C._get_dispatch_stack_at(count - 1) is mode:  # else the script took it off itself
        mode.__exit__(None, None, None)
    for other in reversed(above):
        _push_mode(other)


def _take_off(until: TorchDispatchMode | None) -> list[TorchDispatchMode]:
    """Take the script's modes off the stack, the last first, down to *until* or to PyTorch's own."""
    taken: list[TorchDispatchMode] = []
    while True:
        count = torch._C._len_torch_dispatch_stack()
        if not count:
            return taken
        top = torch._C._get_dispatch_stack_at(count - 1)
        if top is until or getattr(top, "_mode_key", None) is not None:
            return taken
        taken.append(_pop_mode())
