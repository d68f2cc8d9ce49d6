"""How many bytes an operator reads and writes, from the storages of its tensors."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable

import torch

from outpace.observe.torch.operators_call import Call, tensors, words


def storage_key(tensor: torch.Tensor) -> int:
    """The same for all tensors that share memory, as long as that lives."""
    return int(tensor.untyped_storage()._cdata)


def same_storage(one: torch.Tensor, other: torch.Tensor) -> bool:
    """Whether both tensors live in the same memory."""
    return storage_key(one) == storage_key(other)


def touched_bytes(tensor: torch.Tensor) -> int:
    """Of the memory behind *tensor*: an expanded dimension counts once, a slice counts as the slice."""
    if tensor.layout != torch.strided:
        return tensor.numel() * tensor.element_size()
    sizes = [
        int(size) for size, stride in zip(tensor.shape, tensor.stride(), strict=True) if stride or size == 0
    ]
    own = math.prod(sizes) * tensor.element_size()
    return min(own, int(tensor.untyped_storage().nbytes()))  # windows that overlap read their storage once


def distinct_bytes(given: Iterable[torch.Tensor]) -> int:
    """Of all tensors together: the same view counts once, views of one storage at most the storage."""
    views: dict[int, dict[tuple[object, ...], int]] = {}
    whole: dict[int, int] = {}
    for tensor in given:
        key = storage_key(tensor) if tensor.layout == torch.strided else -id(tensor)
        view = (tensor.storage_offset(), tuple(tensor.shape), tensor.stride()) if key >= 0 else ()
        views.setdefault(key, {})[view] = touched_bytes(tensor)
        whole[key] = int(tensor.untyped_storage().nbytes()) if key >= 0 else touched_bytes(tensor)
    return sum(min(sum(parts.values()), whole[key]) for key, parts in views.items())


#: Arguments that give only their shape.
_NOT_READ = dict.fromkeys(
    (
        f"aten.{name}"
        for name in words("""
    zeros_like ones_like full_like rand_like randn_like randint_like bernoulli_like new_zeros new_ones
    new_full copy fill zero normal uniform random exponential max_pool2d_with_indices_backward
    max_pool3d_with_indices_backward avg_pool2d_backward avg_pool3d_backward
    _adaptive_avg_pool2d_backward _adaptive_avg_pool3d_backward nll_loss_backward nll_loss2d_backward
    _foreach_copy _foreach_zero
""")
    ),
    ("self",),
)

#: Of these arguments no more is read than comes out: rows are picked.
_PICKED = {
    "aten.embedding": "weight",
    "aten.index": "self",
    "aten.index_select": "self",
    "aten.gather": "self",
    "aten.take": "self",
    "aten.nll_loss_forward": "self",
    "aten.nll_loss2d_forward": "self",
}

#: In place, and no more is written than comes in.
_PUT = {
    "aten.index_put": "values",
    "aten._index_put_impl": "values",
    "aten.scatter": "src",
    "aten.scatter_add": "src",
    "aten.index_add": "source",
    "aten.index_copy": "source",
}


def traffic(call: Call) -> tuple[int, int]:
    """(bytes read, bytes written) if every tensor goes through memory once, as in one fused kernel."""
    mutated = _mutated(call)
    written_keys = {storage_key(tensor) for tensor in mutated if tensor.layout == torch.strided}
    input_keys = {storage_key(tensor) for tensor in call.inputs if tensor.layout == torch.strided}
    fresh = [
        tensor
        for tensor in call.results
        if tensor.layout != torch.strided or storage_key(tensor) not in (input_keys | written_keys)
    ]
    if call.name in _PUT and mutated:
        return _put(call, mutated)
    return _read(call), distinct_bytes([*mutated, *fresh])


def _arguments(call: Call, wanted: Callable[[object], bool]) -> list[torch.Tensor]:
    schema = getattr(call.func, "_schema", None)
    if schema is None:
        return []
    names = [argument.name for argument in schema.arguments if wanted(argument)]
    return list(tensors([call.get(name) for name in names]))


def _mutated(call: Call) -> list[torch.Tensor]:
    if call.name.startswith("aten._fused_") and call.get("grads") is not None:
        # the schema lets gradients be written; that happens only while unscaling them
        changed = [value for name, value in call.arguments.items() if name not in ("grads", "state_steps")]
        if call.get("grad_scale") is not None:
            changed.append(call["grads"])
        return [tensor for value in changed if isinstance(value, list) for tensor in tensors(value)]
    return _arguments(call, lambda argument: bool(argument.alias_info and argument.alias_info.is_write))  # type: ignore[attr-defined]


def _read(call: Call) -> int:
    skipped = set(_NOT_READ.get(call.name, ()))
    schema = getattr(call.func, "_schema", None)
    if schema is not None:
        skipped |= {argument.name for argument in schema.arguments if argument.is_out}
    if call.name.endswith("convolution_backward"):
        mask = call["output_mask"]
        skipped |= {name for name, needed in (("weight", mask[0]), ("input", mask[1])) if not needed}
    picked = _PICKED.get(call.name)
    if picked:
        skipped.add(picked)
    total = distinct_bytes(
        tensor for name, value in call.arguments.items() if name not in skipped for tensor in tensors(value)
    )
    if picked:
        source = call[picked]
        wanted = call["target"] if "target" in call.arguments else call.out
        total += min(touched_bytes(source), wanted.numel() * source.element_size())
    return total


def _put(call: Call, mutated: list[torch.Tensor]) -> tuple[int, int]:
    """Only the places that are put to are written, and read where values are added to them."""
    source = call.get(_PUT[call.name])
    if not isinstance(source, torch.Tensor):  # a number is put
        source = call["index"] if "index" in call.arguments else mutated[0]
    put = min(source.numel() * mutated[0].element_size(), touched_bytes(mutated[0]))
    others = distinct_bytes(tensor for tensor in call.inputs if tensor is not mutated[0])
    adds = bool(call.get("accumulate")) or call.name.endswith("_add")
    return others + (put if adds else 0), put
