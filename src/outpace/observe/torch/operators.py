"""One operator record of each call that a dispatch mode sees."""

from __future__ import annotations

import functools
from typing import Any

import torch

from outpace.observe.torch import formulas, formulas_attention, formulas_light, formulas_rnn
from outpace.observe.torch.formulas import Counted, Formula
from outpace.observe.torch.memory_traffic import same_storage, traffic
from outpace.observe.torch.operators_call import (
    Call,
    arithmetic_type,
    call_of,
    plain_name,
    shape,
    tensors,
    type_name,
    words,
)
from outpace.records import Operator

FORMULAS: dict[str, Formula] = {
    **formulas_light.FORMULAS,
    **formulas.FORMULAS,
    **formulas_attention.FORMULAS,
    **formulas_rnn.FORMULAS,
}

#: They only reserve memory, or ask something.
_NO_KERNEL = words("""
    empty empty_like empty_strided new_empty new_empty_strided empty_permuted resize set lift
    _fused_sdp_choice _use_cudnn_rnn_flatten_weight is_same_size is_pinned record_stream
    _has_same_storage_numel sym_size sym_numel sym_stride sym_storage_offset sym_is_contiguous
    _cudnn_init_dropout_state
""")


def describe(func: Any, args: Any, kwargs: dict[str, Any], result: Any, phase: str) -> Operator | None:
    """The record of one call, or ``None`` if it runs nothing on the device (views, queries, markers).

    Never raises: what cannot be counted becomes kind ``other``, ``guessed``, with the bytes of its tensors.
    """
    try:
        if not _runs(func, args, kwargs, result):
            return None
        call = _call(func, args, kwargs, result, phase)
        return _operator(call, _counted(call))
    except Exception:
        return _uncounted(func, args, kwargs, result, phase)


def _call(func: Any, args: Any, kwargs: dict[str, Any], result: Any, phase: str) -> Call:
    if hasattr(func, "_schema"):
        return call_of(func, args, kwargs, result, phase)
    # higher-order operators have no schema; those we know take query, key, value first
    names = ["query", "key", "value", *(f"argument{index}" for index in range(3, len(args)))]
    outputs = tuple(result) if isinstance(result, (list, tuple)) else (result,)
    return Call(func, func.name(), {**dict(zip(names, args, strict=False)), **kwargs}, outputs, phase)


def _counted(call: Call) -> Counted:
    formula = FORMULAS.get(call.name)
    if formula is not None:
        counted = formula(call)
        # numbers of a guess may be wrong in any way, but never negative
        return counted if counted.flops >= 0 else Counted("other", 0, guessed=True)
    return formulas_light.by_tag(call) or Counted("other", 0, guessed=True)


def _operator(call: Call, counted: Counted) -> Operator:
    read, written = traffic(call)
    attributes = dict(counted.attributes)
    attributes.update(_places(call))
    dtype = arithmetic_type(call)
    if dtype == "fp32" and _may_use_tf32(counted.kind):
        attributes["tf32"] = True
    if counted.kind in ("copy", "elementwise") and _strided(call):
        attributes["strided"] = True
    if call.name == "aten._to_copy" and call.out.dtype != call["self"].dtype:
        attributes["to"] = type_name(call.out.dtype)
    return Operator(
        kind=counted.kind,
        name=call.name,
        phase=call.phase,
        dtype=dtype,
        inputs=tuple(map(shape, call.inputs)),
        outputs=tuple(map(shape, call.results)),
        flops=counted.flops,
        bytes_read=read,
        bytes_written=written,
        attributes=attributes,
        guessed=counted.guessed,
    )


def _strided(call: Call) -> bool:
    """Whether a large input does not lie in memory in the order of the output: a transposition."""
    out = next((tensor for tensor in call.results if tensor.dim() > 1), None)
    if out is None or out.layout != torch.strided:
        return False
    order = _order(out)
    return any(
        tensor.layout == torch.strided and tensor.shape == out.shape and _order(tensor) != order
        for tensor in call.inputs
    )


def _order(tensor: torch.Tensor) -> list[int]:
    """Dimensions from the slowest to the fastest; those of one element, or repeated, do not count."""
    moving = [place for place in range(tensor.dim()) if tensor.shape[place] > 1 and tensor.stride(place)]
    strides = tensor.stride()
    return sorted(moving, key=lambda place: -strides[place])


def _places(call: Call) -> dict[str, str]:
    """``from`` and ``to`` of a copy between devices."""
    if call.name == "aten._to_copy":
        source, target = call["self"].device, call.out.device
    elif call.name == "aten.copy":
        source, target = call["src"].device, call["self"].device
    else:
        return {}
    return {} if source == target else {"from_device": source.type, "to_device": target.type}


@functools.cache
def _may_use_tf32(kind: str) -> bool:
    """Whether the script lets NVIDIA cards compute this kind of fp32 operator in TF32."""
    if kind in ("convolution", "rnn"):
        return bool(torch._C._get_cudnn_allow_tf32())
    if kind in ("matmul", "attention"):
        return bool(torch._C._get_cublas_allow_tf32())
    return False


def _runs(func: Any, args: Any, kwargs: dict[str, Any], result: Any) -> bool:
    if not hasattr(func, "_schema"):
        return True
    space, _, name = plain_name(func).partition(".")
    if space in ("profiler", "prim") or name in _NO_KERNEL or func.is_view:
        return False
    if torch.Tag.inplace_view in func.tags:
        return False
    outputs = list(tensors(result))
    if not outputs:
        return True
    if any(argument.alias_info is not None for argument in func._schema.arguments):
        return True
    # _unsafe_view, unsafe_split: views that hide it from autograd
    inputs = list(tensors([*args, *kwargs.values()]))
    return not all(any(same_storage(output, given) for given in inputs) for output in outputs)


def _uncounted(func: Any, args: Any, kwargs: dict[str, Any], result: Any, phase: str) -> Operator | None:
    try:
        inputs = list(tensors([*args, *kwargs.values()]))
        outputs = list(tensors(result))
        return Operator(
            kind="other",
            name=plain_name(func) if hasattr(func, "_schema") else str(func),
            phase=phase,
            dtype=type_name((inputs or outputs)[0].dtype),
            inputs=tuple(map(shape, inputs)),
            outputs=tuple(map(shape, outputs)),
            bytes_read=sum(tensor.numel() * tensor.element_size() for tensor in inputs),
            bytes_written=sum(tensor.numel() * tensor.element_size() for tensor in outputs),
            guessed=True,
        )
    except Exception:
        return Operator(kind="other", name=str(func), phase=phase, dtype="unknown", guessed=True)
