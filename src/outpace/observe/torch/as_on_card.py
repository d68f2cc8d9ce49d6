"""Runs a step on shapes as an accelerator would run it: autocast, fused attention, an RNN as one operator.

A trace over shapes is made without an accelerator, where PyTorch would pick the CPU's ways.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch
from torch.overrides import TorchFunctionMode

from outpace.observe.torch import rnn_operator
from outpace.observe.torch.operators_call import tensors, words

#: What autocast of CUDA computes in 16 bits, and in 32 (``aten/src/ATen/autocast_mode.h``).
_HALF = words("""
    conv1d conv2d conv3d conv_tbc conv_transpose1d conv_transpose2d conv_transpose3d convolution linear matmul
    __matmul__ __rmatmul__ mm mv bmm addmm addmv addbmm baddbmm addr chain_matmul einsum multi_dot prelu
    scaled_dot_product_attention lstm gru rnn_tanh rnn_relu
""")
_FULL = words("""
    __pow__ __rpow__ __rdiv__ acos asin binary_cross_entropy_with_logits cosh cosine_embedding_loss cdist
    cosine_similarity cross_entropy cumprod cumsum dist erfinv exp expm1 group_norm hinge_embedding_loss
    kl_div l1_loss layer_norm log log10 log_softmax log1p log2 margin_ranking_loss mse_loss
    multilabel_margin_loss multi_margin_loss nll_loss norm normalize pdist poisson_nll_loss pow prod
    reciprocal rms_norm rsqrt sinh smooth_l1_loss soft_margin_loss softmax softmin softplus sum tan
    triplet_margin_loss
""")
_WIDEST = words(
    "addcdiv addcmul atan2 bilinear cross dot grid_sample index_put scatter_add tensordot cat stack"
)


class AsOnCard(TorchFunctionMode):
    """While entered, functions of PyTorch on fake tensors run as on an accelerator.

    Args:
        half: compute in this type as autocast does; ``None``: in the type that the tensors have.
        note: takes each thing that was taken for granted.
    """

    def __init__(self, half: torch.dtype | None = None, note: Callable[[str], None] = lambda _: None) -> None:
        super().__init__()
        self._half = half
        self._cast: dict[int, tuple[torch.Tensor, torch.Tensor]] = {}
        self._note = note

    def __enter__(self) -> Any:
        # modules ask whether any autocast is on; that of CUDA does nothing to tensors of the CPU
        self._before = torch.is_autocast_enabled("cuda")
        if self._half is not None:
            torch.set_autocast_enabled("cuda", True)
        return super().__enter__()  # type: ignore[no-untyped-call]

    def __exit__(self, *raised: object) -> Any:
        torch.set_autocast_enabled("cuda", self._before)
        return super().__exit__(*raised)  # type: ignore[no-untyped-call]

    def new_step(self) -> None:
        """Forget the weights that were cast: autocast keeps them for a step."""
        self._cast.clear()

    def __torch_function__(
        self, func: Any, types: Any, args: tuple[Any, ...] = (), kwargs: dict[str, Any] | None = None
    ) -> Any:
        kwargs = dict(kwargs or {})
        name = getattr(func, "__name__", "")
        if self._half is not None and self._autocasts(args, kwargs):
            if name in _HALF:
                args, kwargs = self._to(self._half, args), self._to(self._half, kwargs)
            elif name in _FULL:
                args, kwargs = self._to(torch.float32, args), self._to(torch.float32, kwargs)
            elif name in _WIDEST:
                widest = self._widest(args, kwargs)
                args, kwargs = self._to(widest, args), self._to(widest, kwargs)
        if name == "scaled_dot_product_attention":
            return self._attention(func, args, kwargs)
        if name in ("dropout", "dropout_"):
            return _dropout(func, args, kwargs)
        if name in rnn_operator.CELLS and not _packed(args):
            with torch._C.DisableTorchFunction():
                return rnn_operator.call(name, *args)
        return func(*args, **kwargs)

    def _autocasts(self, args: Any, kwargs: Any) -> bool:
        return any(
            tensor.dtype in (torch.float32, self._half) for tensor in tensors([*args, *kwargs.values()])
        )

    def _widest(self, args: Any, kwargs: Any) -> torch.dtype:
        single = any(tensor.dtype == torch.float32 for tensor in tensors([*args, *kwargs.values()]))
        return torch.float32 if single or self._half is None else self._half

    def _to(self, dtype: torch.dtype, value: Any) -> Any:
        if isinstance(value, torch.Tensor):
            return self._one_to(dtype, value)
        if isinstance(value, (list, tuple)) and not hasattr(value, "_fields"):
            return type(value)(self._to(dtype, each) for each in value)
        if isinstance(value, dict):
            return {name: self._to(dtype, each) for name, each in value.items()}
        return value

    def _one_to(self, dtype: torch.dtype, tensor: torch.Tensor) -> torch.Tensor:
        if tensor.dtype == dtype or tensor.dtype not in (torch.float32, torch.float16, torch.bfloat16):
            return tensor
        kept = tensor.is_leaf and tensor.requires_grad and dtype == self._half
        if kept and id(tensor) in self._cast:
            return self._cast[id(tensor)][1]
        with torch._C.DisableTorchFunction():
            found = tensor.to(dtype)
        if kept:
            self._cast[id(tensor)] = (tensor, found)
        return found

    def _attention(self, func: Any, args: Any, kwargs: dict[str, Any]) -> Any:
        """Fused on every accelerator; the CPU falls to products where there is dropout."""
        names = ("query", "key", "value", "attn_mask", "dropout_p")
        given = {**dict(zip((*names, "is_causal"), args, strict=False)), **kwargs}
        if given.get("dropout_p"):
            self._note("dropout within attention is taken to be free, as fused kernels have it")
            given["dropout_p"] = 0.0
        for name in ("query", "key", "value"):
            if given[name].stride(-1) != 1:  # fused kernels want the last dimension dense
                given[name] = given[name].contiguous()
        query, mask = given["query"], given.get("attn_mask")
        if isinstance(mask, torch.Tensor) and mask.is_floating_point() and mask.dtype != query.dtype:
            given["attn_mask"] = mask.to(query.dtype)
        return func(**given)


def _dropout(func: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
    """One kernel that also writes the mask; the CPU takes three."""
    names = ("input", "p", "train" if "train" in kwargs else "training")
    given = {**dict(zip(names, args, strict=False)), **kwargs}
    training = given.get("training", given.get("train", True))
    if not training or not given.get("p", 0.5):
        return func(*args, **kwargs)
    return torch.native_dropout(given["input"], given.get("p", 0.5), True)[0]


def _packed(args: tuple[Any, ...]) -> bool:
    """Of packed sequences the second argument is a tensor of batch sizes, not the hidden state's list."""
    return len(args) > 1 and isinstance(args[1], torch.Tensor) and not args[1].is_floating_point()
