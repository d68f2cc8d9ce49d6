"""The operators of jaxprs, against counts made by hand."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp
import pytest
from jax import lax

from outpace import flops
from outpace.records import Operator
from outpace.xla.jaxprs import operators_of

#: Batch, features in and out.
B, IN, OUT = 6, 5, 7


def operators(function: Callable[..., Any], *args: Any) -> list[Operator]:
    return operators_of(jax.make_jaxpr(function)(*args))


def total(found: list[Operator], *kinds: str, phase: str | None = None) -> int:
    return sum(
        operator.flops * operator.count
        for operator in found
        if operator.kind in (kinds or ("matmul", "convolution")) and phase in (None, operator.phase)
    )


def training(forward: Callable[..., Any], *which: int) -> Callable[..., Any]:
    """The loss and the gradients by the arguments *which*."""
    return jax.value_and_grad(lambda *args: forward(*args).astype("float32").sum(), which or 0)


def spatial(*sizes: int) -> Any:
    return jnp.ones(sizes)


def test_a_dense_layer_is_three_products() -> None:
    found = operators(training(lambda w, x: jnp.tanh(x @ w), 0, 1), jnp.ones((IN, OUT)), jnp.ones((B, IN)))
    once = flops.matmul(B, OUT, IN)
    assert total(found, phase="forward") == once
    assert total(found, phase="backward") == 2 * once
    product = next(operator for operator in found if operator.kind == "matmul")
    assert (product.bytes_read, product.bytes_written) == (4 * (B * IN + IN * OUT), 4 * B * OUT)
    assert {name: product.attributes[name] for name in "mnk"} == {"m": B, "n": OUT, "k": IN}


CONVOLUTIONS: dict[str, dict[str, Any]] = {
    "same": {},
    "valid": {"padding": "VALID"},
    "strided": {"window_strides": (2, 2)},
    "strided valid": {"window_strides": (2, 2), "padding": "VALID"},
    "dilated": {"rhs_dilation": (2, 2)},
    "grouped": {"feature_group_count": 2},
    "depthwise": {"feature_group_count": 4},
}


@pytest.mark.parametrize("name", CONVOLUTIONS)
def test_a_convolution_and_its_gradients_are_equally_much(name: str) -> None:
    options: dict[str, Any] = {"window_strides": (1, 1), "padding": "SAME", **CONVOLUTIONS[name]}
    groups = options.get("feature_group_count", 1)

    def forward(w: Any, x: Any) -> Any:
        return lax.conv_general_dilated(x, w, dimension_numbers=("NHWC", "HWIO", "NHWC"), **options)

    w, x = spatial(3, 3, 4 // groups, 8), spatial(B, 16, 16, 4)
    found = operators(training(forward, 0, 1), w, x)
    out = jax.eval_shape(forward, w, x).shape
    once = flops.convolution(B, 4, 8, (3, 3), out[1] * out[2], groups)
    assert total(found, phase="forward") == once
    each = [operator for operator in found if operator.phase == "backward" and operator.kind == "convolution"]
    assert [operator.flops for operator in each] == [once, once]
    assert {operator.attributes["gradient"] for operator in each} == {"weight", "input"}
    for operator in each:
        assert operator.attributes["kernel"] == (3, 3)
        assert operator.attributes["stride"] == options["window_strides"]
        assert operator.attributes["dilation"] == options.get("rhs_dilation", (1, 1))
        assert operator.attributes["groups"] == groups


def test_a_transposed_convolution_counts_at_its_input() -> None:
    def forward(w: Any, x: Any) -> Any:
        return lax.conv_transpose(x, w, (2, 2), "SAME")

    found = operators(training(forward, 0, 1), spatial(3, 3, 4, 8), spatial(B, 8, 8, 4))
    once = flops.convolution(B, 4, 8, (3, 3), 8 * 8)
    assert total(found, phase="forward") == once
    assert total(found, phase="backward") == 2 * once
    first = next(operator for operator in found if operator.kind == "convolution")
    assert first.attributes["stride"] == (2, 2)
    assert first.attributes["transposed"]


def test_attention() -> None:
    batch, length, heads, size = 2, 10, 3, 8
    rows = [spatial(batch, length, heads, size)] * 3
    found = operators(training(jax.nn.dot_product_attention, 0, 1, 2), *rows)
    once = flops.attention(batch, heads, length, length, size)
    assert total(found, phase="forward") == once
    assert total(found, phase="backward") == 2 * once
    assert any(operator.kind == "softmax" for operator in found)


def test_a_scan_counts_each_round_and_its_gradient_too() -> None:
    length, hidden = 9, 6

    def forward(w: Any, rows: Any) -> Any:
        def cell(state: Any, row: Any) -> Any:
            state = jnp.tanh(row + state @ w)
            return state, state

        return lax.scan(cell, jnp.zeros((B, hidden)), rows)[1]

    found = operators(training(forward, 0, 1), spatial(hidden, hidden), spatial(length, B, hidden))
    assert total(found, phase="forward") == length * flops.matmul(B, hidden, hidden)
    assert total(found, phase="backward") == 2 * length * flops.matmul(B, hidden, hidden)


def test_scans_within_scans_multiply() -> None:
    def outer(x: Any, _: Any) -> Any:
        return lax.scan(lambda y, _: (y @ y, None), x, None, length=3)[0], None

    found = operators(lambda x: lax.scan(outer, x, None, length=5)[0], spatial(4, 4))
    assert [(operator.kind, operator.count) for operator in found] == [("matmul", 15)]


def test_recomputed_layers_count_again_in_the_backward_pass() -> None:
    layer = jax.checkpoint(lambda w, x: jnp.sin(x @ w) @ w)
    found = operators(training(layer, 0, 1), spatial(4, 4), spatial(B, 4))
    once = flops.matmul(B, 4, 4)
    assert total(found, phase="forward") == 2 * once
    assert total(found, phase="backward") == (1 + 4) * once


def test_calls_within_calls() -> None:
    inner = jax.jit(lambda x: jax.nn.relu(x @ x))
    found = operators(jax.jit(lambda x: jax.jit(inner)(inner(x))), spatial(4, 4))
    assert total(found) == 2 * flops.matmul(4, 4, 4)


def test_loops_of_unknown_length_and_branches_are_guessed() -> None:
    found = operators(lambda x: lax.while_loop(lambda y: y.sum() < 9, lambda y: y @ y, x), spatial(4, 4))
    assert all(operator.guessed and operator.count == 1 for operator in found)
    assert total(found) == flops.matmul(4, 4, 4)

    def branches(x: Any) -> Any:
        return lax.cond(x.sum() > 0, lambda y: y, lambda y: y @ y @ y, x)

    found = operators(branches, spatial(4, 4))
    assert total(found) == 2 * flops.matmul(4, 4, 4)
    assert all(operator.guessed for operator in found if operator.kind == "matmul")


def test_an_embedding_reads_its_rows_and_adds_to_them() -> None:
    table, ids = spatial(100, 8), jnp.zeros((3, 5), int)
    found = operators(training(lambda w, ids: w.at[ids].get(mode="fill")), table, ids)
    rows = 3 * 5 * 8 * 4
    gather, scatter = (operator for operator in found if operator.kind == "embedding")
    assert gather.bytes_read == rows + 3 * 5 * 4
    assert gather.bytes_written == rows
    assert scatter.phase == "backward"
    assert scatter.bytes_written == rows + 100 * 8 * 4
    assert scatter.flops == 3 * 5 * 8


def test_pooling_and_its_gradient() -> None:
    def forward(x: Any) -> Any:
        return lax.reduce_window(x, -jnp.inf, lax.max, (1, 2, 2, 1), (1, 2, 2, 1), "VALID")

    forth, back = (o for o in operators(training(forward), spatial(B, 8, 8, 3)) if o.kind == "pooling")
    assert forth.flops == back.flops == B * 4 * 4 * 3 * 4
    assert (forth.phase, back.phase) == ("forward", "backward")
    assert forth.attributes["kernel"] == (1, 2, 2, 1)


def test_neighbours_are_one_kernel_and_read_nothing_twice() -> None:
    def chain(x: Any, y: Any) -> Any:
        z = x * y + jnp.float32(1)
        return jnp.tanh(z) * z - y

    (kernel,) = operators(chain, spatial(100), spatial(100))
    assert kernel.kind == "elementwise"
    assert kernel.flops == 5 * 100
    assert kernel.bytes_read <= 2 * 400 + 16
    assert kernel.bytes_written == 400


def test_nothing_is_fused_across_a_product() -> None:
    def block(x: Any, w: Any) -> Any:
        y = jnp.sin(x)
        return y + jnp.cos(y @ w)

    found = operators(block, spatial(4, 4), spatial(4, 4))
    assert [operator.name for operator in found] == ["sin", "dot_general", "cos+add"]
    assert found[2].bytes_read == 2 * 64


def test_a_reduction_computes_what_it_sums() -> None:
    (kernel,) = operators(lambda x, y: (x * y).sum(), spatial(1000), spatial(1000))
    assert kernel.kind == "reduction"
    assert (kernel.bytes_read, kernel.bytes_written) == (8000, 4)


def test_scalars_are_computed_where_they_are_used() -> None:
    def scaled(x: Any, n: Any) -> Any:
        return x * jnp.sqrt(1 - 0.9**n) / jnp.sqrt((x**2).sum())

    found = operators(scaled, spatial(100), jnp.float32(3))
    assert sorted(operator.kind for operator in found) == ["elementwise", "reduction"]
    assert sum(operator.bytes_written for operator in found) == 4 + 400


def test_views_and_what_nobody_reads_cost_nothing() -> None:
    def views(x: Any) -> Any:
        _ = jnp.exp(x) @ x
        return x.T.reshape(2, 8)[:1]

    assert operators(views, spatial(4, 4)) == []


def test_phases_of_a_step() -> None:
    def step(w: Any, m: Any, x: Any) -> Any:
        loss, slope = jax.value_and_grad(lambda w: jnp.mean((x * 2 @ w) ** 2))(w)
        slope = slope / jnp.maximum(jnp.sqrt((slope**2).sum()), 1)
        m = 0.9 * m + slope
        return w - 0.1 * m, m, loss

    found = operators(step, spatial(4, 2), spatial(4, 2), spatial(B, 4))
    assert [operator.phase for operator in found if operator.kind == "matmul"] == ["forward", "backward"]
    late = [operator for operator in found if operator.phase == "optimizer"]
    assert {operator.kind for operator in late} == {"reduction", "optimizer"}
    update = max(late, key=lambda operator: operator.flops)
    assert update.outputs == ((4, 2), (4, 2))


def test_types() -> None:
    found = operators(
        training(lambda w, x: x @ w, 0), jnp.ones((IN, OUT), "bfloat16"), jnp.ones((B, IN), "bfloat16")
    )
    assert {operator.dtype for operator in found if operator.kind == "matmul"} == {"bf16"}
    (product,) = operators(
        lambda x: jnp.dot(x, x, preferred_element_type="float32"), jnp.ones((4, 4), "float16")
    )
    assert product.dtype == "fp16"
    assert (product.bytes_read, product.bytes_written) == (32, 64)


def test_dropout_is_random() -> None:
    def drop(x: Any) -> Any:
        return jnp.where(jax.random.bernoulli(jax.random.key(0), 0.5, x.shape), x, 0)

    assert "random" in {operator.kind for operator in operators(drop, spatial(64, 64))}


def test_softmax_is_seen_by_what_it_is() -> None:
    found = operators(lambda x: jnp.exp(x - x.max(1, keepdims=True)).sum(1), spatial(4, 9))
    assert [operator.kind for operator in found] == ["reduction", "softmax"]
    found = operators(training(lambda x: -jax.nn.log_softmax(x)[:, 0]), spatial(4, 9))
    assert {operator.phase for operator in found if operator.kind == "softmax"} == {"forward", "backward"}


def test_shards_count_as_one_device_computes_them() -> None:
    from jax.sharding import Mesh, PartitionSpec

    mesh = Mesh(jax.devices()[:1], ("d",))
    shard_map = getattr(jax, "shard_map", None)
    if shard_map is None:
        pytest.skip("jax.shard_map is newer")
    spec = PartitionSpec("d")
    block = shard_map(lambda x: lax.psum(x @ x.T, "d"), mesh=mesh, in_specs=spec, out_specs=PartitionSpec())
    found = operators(block, spatial(4, 3))
    assert total(found) == flops.matmul(4, 4, 3)
    assert "communication" in {operator.kind for operator in found}


def test_other_products() -> None:
    found = operators(lambda x: jnp.einsum("bij,bkj->bik", x, x), spatial(2, 3, 4))
    assert total(found) == flops.matmul(3, 3, 4, batch=2)
    (sort,) = (o for o in operators(jnp.sort, spatial(64)) if o.kind == "sort")
    assert sort.bytes_read == sort.bytes_written == 256
    (fourier,) = (o for o in operators(jnp.fft.fft, jnp.ones((3, 8), "complex64")) if o.kind == "other")
    assert fourier.flops == round(5 * 3 * 8 * math.log2(8))
    solved = operators(jnp.linalg.cholesky, spatial(8, 8))
    assert any(operator.name == "cholesky" and operator.guessed for operator in solved)
