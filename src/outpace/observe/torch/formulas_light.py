"""Everything that memory bounds rather than arithmetic: a few FLOPs per element.

A comparison and a call of a function such as ``exp`` are one FLOP each. The numbers per element follow the
textbook form of each operator; they decide little, since these operators wait for memory.
"""

from __future__ import annotations

import math
from collections.abc import Callable

import torch

from outpace.observe.torch.formulas import Counted, Formula
from outpace.observe.torch.operators_call import Call, words

#: Per element; what is not here is one.
ELEMENTWISE = {
    "addcmul": 3,
    "addcdiv": 3,
    "lerp": 3,
    "gelu": 5,
    "gelu_backward": 10,
    "silu": 2,
    "silu_backward": 5,
    "sigmoid_backward": 3,
    "tanh_backward": 3,
    "leaky_relu": 2,
    "leaky_relu_backward": 2,
    "elu": 3,
    "elu_backward": 3,
    "softplus": 3,
    "softplus_backward": 4,
    "native_dropout_backward": 2,
    "mse_loss_backward": 3,
    "smooth_l1_loss_backward": 3,
    "huber_loss_backward": 3,
    "_thnn_fused_lstm_cell": 4,  # of each gate: two biases, their sum, its function; and the cell state
    "_thnn_fused_lstm_cell_backward_impl": 8,
    "_thnn_fused_gru_cell": 5,
    "_thnn_fused_gru_cell_backward": 8,
    "binary_cross_entropy_backward": 5,
    **dict.fromkeys(("masked_fill", "threshold", "threshold_backward", "abs", "heaviside", "copysign"), 1),
    **dict.fromkeys(("eq", "ne", "lt", "le", "gt", "ge", "isin", "rsub", "floor_divide", "_prelu_kernel"), 1),
    **dict.fromkeys(("hardtanh_backward", "hardshrink_backward", "softshrink_backward", "xlogy"), 2),
    **dict.fromkeys(("hardswish", "hardswish_backward", "hardsigmoid_backward", "glu", "mish"), 3),
    **dict.fromkeys(("log_sigmoid_forward", "log_sigmoid_backward", "glu_backward", "mish_backward"), 5),
    **dict.fromkeys(("_prelu_kernel_backward", "rrelu_with_noise_backward", "soft_margin_loss_backward"), 3),
    **dict.fromkeys(("upsample_linear1d", "upsample_linear1d_backward"), 4),
    **dict.fromkeys(("_upsample_bilinear2d_aa", "_upsample_bilinear2d_aa_backward"), 8),
    **dict.fromkeys(("upsample_bicubic2d", "upsample_bicubic2d_backward"), 40),
    **dict.fromkeys(("upsample_trilinear3d", "upsample_trilinear3d_backward"), 16),
    **dict.fromkeys(("grid_sampler_2d_backward", "grid_sampler_3d", "grid_sampler_3d_backward"), 24),
    **dict.fromkeys(("upsample_bilinear2d", "upsample_bilinear2d_backward"), 8),
    "grid_sampler_2d": 12,
}

REDUCTIONS = {
    **dict.fromkeys(("sum", "nansum", "mean", "prod", "amax", "amin", "max", "min", "any", "all"), 1),
    **dict.fromkeys(("argmax", "argmin", "cumsum", "cumprod", "cummax", "cummin", "count_nonzero"), 1),
    **dict.fromkeys(("aminmax", "norm", "linalg_vector_norm", "_foreach_norm", "histc", "bincount"), 2),
    **dict.fromkeys(("logsumexp", "logcumsumexp"), 3),
    **dict.fromkeys(("std", "var", "var_mean", "std_mean"), 4),
    **dict.fromkeys(("mse_loss", "smooth_l1_loss", "huber_loss", "soft_margin_loss"), 3),
    **dict.fromkeys(("binary_cross_entropy", "binary_cross_entropy_with_logits"), 6),
    **dict.fromkeys(("_amp_foreach_non_finite_check_and_unscale", "equal"), 2),
}

COPIES = words("""
    _to_copy copy clone contiguous cat stack index index_select gather take masked_select nonzero
    where_index slice_backward select_backward diagonal_backward unfold_backward slice_scatter
    select_scatter as_strided_scatter diagonal_scatter index_fill index_copy index_put _index_put_impl
    scatter masked_scatter fill zero zeros zeros_like ones ones_like full full_like new_zeros new_ones
    new_full arange linspace eye scalar_tensor tril triu tril_indices triu_indices repeat
    repeat_interleave roll flip constant_pad_nd reflection_pad1d reflection_pad2d replication_pad1d
    replication_pad2d im2col pixel_shuffle pixel_unshuffle channel_shuffle _local_scalar_dense
    _pin_memory narrow_copy one_hot _foreach_copy _foreach_zero upsample_nearest1d upsample_nearest2d
    upsample_nearest3d _upsample_nearest_exact1d _upsample_nearest_exact2d
    _pack_padded_sequence diag_embed block_diag rot90 logspace masked_scatter_backward put
    reflection_pad3d replication_pad3d _unsafe_index _unsafe_index_put resize_as _chunk_cat _stack
""")

ADDING_COPIES = words("""
    index_add scatter_add scatter_reduce index_reduce embedding_renorm col2im
    reflection_pad1d_backward reflection_pad2d_backward reflection_pad3d_backward
    replication_pad1d_backward replication_pad2d_backward replication_pad3d_backward
    upsample_nearest1d_backward upsample_nearest2d_backward upsample_nearest3d_backward
""")

SORTS = words("""
    sort topk kthvalue median nanmedian mode argsort msort _unique2 _unique unique_dim
    unique_consecutive searchsorted bucketize
""")

#: Per parameter: decay, moments, root, update. Adam's: Kingma and Ba 2015, algorithm 1.
FUSED_OPTIMIZERS = {"_fused_adam": 14, "_fused_adamw": 14, "_fused_adagrad": 7, "_fused_sgd": 6}

SOFTMAXES = {
    **dict.fromkeys(("_softmax", "_log_softmax", "_safe_softmax", "_masked_softmax"), 5),
    **dict.fromkeys(("_softmax_backward_data", "_log_softmax_backward_data", "_masked_softmax_backward"), 4),
}

#: Per element of the input: mean and variance 4, normalizing 2, scale and shift 2.
NORMALIZATIONS = {
    **dict.fromkeys(("native_batch_norm", "cudnn_batch_norm", "miopen_batch_norm"), 8),
    **dict.fromkeys(("_native_batch_norm_legit", "_native_batch_norm_legit_functional"), 8),
    **dict.fromkeys(("_batch_norm_with_update", "_batch_norm_with_update_functional"), 8),
    **dict.fromkeys(("native_layer_norm", "native_group_norm"), 8),
    **dict.fromkeys(("_native_batch_norm_legit_no_training", "_batch_norm_no_update", "batch_norm_elemt"), 4),
    **dict.fromkeys(("batch_norm_stats", "_fused_rms_norm"), 4),
    # gradients of scale and shift 5 with the normalized input, that of the input 8
    **dict.fromkeys(("native_batch_norm_backward", "cudnn_batch_norm_backward"), 13),
    **dict.fromkeys(("miopen_batch_norm_backward", "batch_norm_backward"), 13),
    **dict.fromkeys(("native_layer_norm_backward", "native_group_norm_backward"), 13),
    **dict.fromkeys(("batch_norm_backward_reduce", "batch_norm_backward_elemt"), 6),
    "_fused_rms_norm_backward": 9,
    **dict.fromkeys(("_weight_norm_interface", "_weight_norm_interface_backward"), 4),
}


def _per(kind: str, each: int, size: Callable[[Call], int]) -> Formula:
    return lambda call: Counted(kind, each * size(call))


def _data(call: Call) -> int:
    return _largest(call.inputs)


def _made(call: Call) -> int:
    return sum(tensor.numel() for tensor in call.results[:1])


def _largest(tensors: tuple[torch.Tensor, ...]) -> int:
    return max((tensor.numel() for tensor in tensors), default=0)


def batch_norm(call: Call) -> Counted:
    """Training computes the statistics; evaluation only uses them."""
    training = call.get("training", call.get("train", True))
    return Counted("normalization", (8 if training else 4) * _data(call))


def pooling(call: Call) -> Counted:
    """Each output looks at its whole window; its gradient goes to all of it, or to the largest only."""
    backward = call.name.endswith("_backward")
    positions = call["grad_output"].numel() if backward else call.out.numel()
    window = [int(size) for size in call.get("kernel_size", ())]
    dimensions = {"1d": 1, "2d": 2, "3d": 3}.get(call.name.removesuffix("_with_indices_backward")[-2:], 2)
    area = math.prod(window) ** (dimensions if len(window) == 1 else 1)
    return Counted("pooling", positions * (1 if backward and "max" in call.name else area))


def embedding_bag(call: Call) -> Counted:
    """Rows looked up and added."""
    return Counted("embedding", call["indices"].numel() * call["weight"].shape[-1])


def fused_optimizer(call: Call) -> Counted:
    """All parameters in one call."""
    each = FUSED_OPTIMIZERS[call.name.removeprefix("aten.")]
    elements = sum(tensor.numel() for tensor in call["self"])
    return Counted("optimizer", each * elements, {"tensors": len(call["self"])})


def foreach(call: Call, name: str) -> Counted:
    """The same elementwise operator on a list of tensors; in an optimizer's step it is the optimizer."""
    # the first argument is the list, whatever its name; the later ones are as long
    first = next(value for value in call.arguments.values() if isinstance(value, (list, tuple)))
    elements = sum(tensor.numel() for tensor in first)
    plain = name.removeprefix("_foreach_")
    if name in REDUCTIONS:
        kind, each = "reduction", REDUCTIONS[name]
    elif name in COPIES:
        kind, each = "copy", 0
    else:
        kind, each = "elementwise", ELEMENTWISE.get(plain, 1)
    return Counted(
        "optimizer" if call.phase == "optimizer" else kind, each * elements, {"tensors": len(first)}
    )


def fourier(call: Call) -> Counted:
    """5 N log2 N, the customary count of a complex transform (https://www.fftw.org/speed/method.html)."""
    size = max(_data(call), _made(call))
    lengths = [call["self"].shape[dim] for dim in call["dim"]]
    half = 1 if call.name.endswith("c2c") else 2
    return Counted("other", int(5 * size * math.log2(max(math.prod(lengths), 2))) // half, guessed=True)


def _light(names: dict[str, int], kind: str, size: Callable[[Call], int]) -> dict[str, Formula]:
    return {f"aten.{name}": _per(kind, each, size) for name, each in names.items()}


FORMULAS: dict[str, Formula] = {
    **_light(NORMALIZATIONS, "normalization", _data),
    **dict.fromkeys(
        (f"aten.{name}" for name in ("native_batch_norm", "_native_batch_norm_legit", "cudnn_batch_norm")),
        batch_norm,
    ),
    **_light(SOFTMAXES, "softmax", _data),
    **dict.fromkeys(
        (f"aten.nll_loss{dim}_{way}" for dim in ("", "2d") for way in ("forward", "backward")),
        lambda call: Counted("softmax", 2 * call["target"].numel()),
    ),
    "aten._ctc_loss": lambda call: Counted("softmax", 6 * _data(call), guessed=True),
    "aten._ctc_loss_backward": lambda call: Counted("softmax", 6 * _data(call), guessed=True),
    **{
        f"aten.{name}{dim}d{way}": pooling
        for name in ("max_pool", "avg_pool")
        for dim in (1, 2, 3)
        for way in ("", "_backward", "_with_indices", "_with_indices_backward")
    },
    **{
        f"aten.{prefix}adaptive_{name}_pool{dim}d{way}": _per("pooling", 1, _data if not way else _made)
        for prefix in ("", "_")
        for name in ("avg", "max")
        for dim in (1, 2, 3)
        for way in ("", "_backward")
    },
    **dict.fromkeys(("aten.mkldnn_max_pool2d", "aten.mkldnn_max_pool3d"), pooling),
    "aten.embedding": _per("embedding", 0, _made),
    **dict.fromkeys(
        ("aten.embedding_dense_backward", "aten.embedding_sparse_backward"),
        lambda call: Counted(
            "embedding", call["grad_output" if "grad_output" in call.arguments else "grad"].numel()
        ),
    ),
    **dict.fromkeys(("aten._embedding_bag", "aten._embedding_bag_forward_only"), embedding_bag),
    **dict.fromkeys(
        ("aten._embedding_bag_dense_backward", "aten._embedding_bag_backward"),
        lambda call: Counted("embedding", call["indices"].numel() * call["grad"].shape[-1]),
    ),
    **{f"aten.{name}": fused_optimizer for name in FUSED_OPTIMIZERS},
    **_light(REDUCTIONS, "reduction", _data),
    **{f"aten.{name}": _per("copy", 0, _made) for name in COPIES},
    **{f"aten.{name}": _per("copy", 1, _data) for name in ADDING_COPIES},
    **{f"aten.{name}": _per("sort", 0, _made) for name in SORTS},
    "aten.native_dropout": _per("random", 2, _made),
    "aten._fused_dropout": _per("random", 2, _made),
    **{f"aten._fft_{name}": fourier for name in ("r2c", "c2r", "c2c")},
    **_light(ELEMENTWISE, "elementwise", _made),
    "aten._foreach_norm": lambda call: foreach(call, "_foreach_norm"),
    "aten._local_scalar_dense": lambda _: Counted("copy", 0, {"waits": True}),
}


def by_tag(call: Call) -> Counted | None:
    """An operator without a formula of its own, by what PyTorch says of it; ``None``: nothing."""
    space, _, name = call.name.partition(".")
    if space in ("c10d", "_c10d_functional", "_c10d_functional_autograd", "symm_mem"):
        return Counted("communication", 0)
    if name.startswith("_foreach_"):
        return foreach(call, name)
    if name.endswith("_copy"):
        return Counted("copy", 0)
    tags = getattr(call.func, "tags", ())
    for tag, kind, size in _TAGS:
        if getattr(torch.Tag, tag, None) in tags:
            return Counted(kind, size(call))
    return None


#: PyTorch marks its operators; ``reduction`` is known to newer versions only.
_TAGS: tuple[tuple[str, str, Callable[[Call], int]], ...] = (
    ("pointwise", "elementwise", _made),
    ("nondeterministic_seeded", "random", _made),
    ("reduction", "reduction", _data),
)
