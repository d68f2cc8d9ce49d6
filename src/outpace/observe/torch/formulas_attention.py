"""Attention where it is one operator, forward and backward, on every back-end.

Counted as published: the whole square of queries by keys, although kernels skip what a causal mask hides;
``causal`` is kept for whoever wants to take it off. The mathematical back-end has no formula: it comes apart
into products by itself.
"""

from __future__ import annotations

from outpace import flops
from outpace.observe.torch.formulas import Attributes, Counted, Formula
from outpace.observe.torch.operators_call import Call, shape


def _masked(call: Call) -> bool:
    return any(call.get(name) is not None for name in ("attn_mask", "attn_bias", "bias", "mask"))


def _sizes(call: Call, heads: int, queries: int, keys: int, head_dim: int, value_dim: int) -> Attributes:
    # _efficient_attention_forward tells by a number: 1 and 2 are causal, aligned to either corner
    causal = bool(call.get("is_causal") or call.get("custom_mask_type"))
    attributes: Attributes = {
        "causal": causal,
        "heads": heads,
        "q_len": queries,
        "kv_len": keys,
        "head_dim": head_dim,
    }
    if value_dim != head_dim:
        attributes["value_dim"] = value_dim
    if _masked(call):
        attributes["masked"] = True
    if call.get("dropout_p"):
        attributes["dropout"] = True
    return attributes


def attention(backward: bool) -> Formula:
    """Query (batch, heads, length, head_dim); keys and values may have fewer heads, each used by several."""
    amount = flops.attention_backward if backward else flops.attention

    def count(call: Call) -> Counted:
        query, value = shape(call["query"]), shape(call["value"])
        *batch, heads, queries, head_dim = query
        keys, value_dim = value[-2], value[-1]
        total = amount(_product(batch), heads, queries, keys, head_dim, value_dim)
        return Counted("attention", total, _sizes(call, heads, queries, keys, head_dim, value_dim))

    return count


def _product(sizes: list[int]) -> int:
    total = 1
    for size in sizes:
        total *= size
    return total


def attention_by_length(backward: bool) -> Formula:
    """The kernels themselves: query (batch, length, heads, head_dim), or (tokens, heads, head_dim) packed.

    Of packed sequences only the number is known here, not their lengths: equal ones are assumed.
    """
    amount = flops.attention_backward if backward else flops.attention

    def count(call: Call) -> Counted:
        query, value = shape(call["query"]), shape(call["value"])
        starts = call.get("cum_seq_q", call.get("cu_seqlens_q"))
        heads, head_dim, value_dim = query[-2], query[-1], value[-1]
        packed = starts is not None
        if starts is not None:
            sequences = max(shape(starts)[0] - 1, 1)
            queries, keys = _tokens(query) // sequences, _tokens(value) // sequences
        else:
            sequences, queries, keys = query[0], query[1], value[1]
        total = amount(sequences, heads, queries, keys, head_dim, value_dim)
        sizes = _sizes(call, heads, queries, keys, head_dim, value_dim)
        return Counted("attention", total, sizes, guessed=packed)

    return count


def _tokens(sizes: tuple[int, ...]) -> int:
    return _product(list(sizes[:-2]))


def _projected(call: Call, query: str, key: str, heads: str) -> tuple[int, Attributes]:
    """Attention with the products around it: three into heads, one out of them."""
    batch, queries, width = shape(call[query])
    keys = shape(call[key])[1]
    count = int(call[heads])
    total = flops.matmul(batch * queries, 2 * width, width) + flops.matmul(batch * keys, 2 * width, width)
    total += flops.attention(batch, count, queries, keys, width // count)
    return total, _sizes(call, count, queries, keys, width // count, width // count)


def multi_head(call: Call) -> Counted:
    """``nn.MultiheadAttention`` as one operator, which inference on some devices uses."""
    return Counted("attention", *_projected(call, "query", "key", "num_head"))


def encoder_layer(call: Call) -> Counted:
    """``nn.TransformerEncoderLayer`` as one operator: attention, then two products."""
    total, attributes = _projected(call, "src", "src", "num_heads")
    batch, length, width = shape(call["src"])
    hidden = shape(call["ffn_weight_1"])[0]
    return Counted("attention", total + 2 * flops.matmul(batch * length, hidden, width), attributes)


_BY_HEAD = (
    "flash_attention",
    "flash_attention_for_cpu",
    "efficient_attention",
    "cudnn_attention",
    "fused_attention_overrideable",
)

FORMULAS: dict[str, Formula] = {
    **{f"aten._scaled_dot_product_{name}": attention(backward=False) for name in _BY_HEAD},
    **{f"aten._scaled_dot_product_{name}_backward": attention(backward=True) for name in _BY_HEAD},
    "aten._scaled_dot_product_attention_math_for_mps": attention(backward=False),
    "aten._cudnn_attention_forward": attention(backward=False),
    "aten._cudnn_attention_backward": attention(backward=True),
    **{f"aten._{name}_attention_forward": attention_by_length(False) for name in ("flash", "efficient")},
    **{f"aten._{name}_attention_backward": attention_by_length(True) for name in ("flash", "efficient")},
    **dict.fromkeys(("aten._native_multi_head_attention", "aten._triton_multi_head_attention"), multi_head),
    "aten._transformer_encoder_layer_fwd": encoder_layer,
    # flex_attention: its mask is code; counted as if it hid nothing
    "flex_attention": attention(backward=False),
    "flex_attention_backward": attention(backward=True),
}
