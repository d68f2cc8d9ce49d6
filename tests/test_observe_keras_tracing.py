"""The operators of steps of Keras on TensorFlow and on JAX: the same counts, and those made by hand.

Each back-end trains in a process of its own, since Keras reads its back-end once.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tempfile
from pathlib import Path

import msgspec
import pytest

from outpace import flops
from outpace.protocol import Traced

BATCH, BACKENDS = 6, ("tensorflow", "jax")

#: The tracer in place of the one that a run has, around the train function; the last batch is smaller.
AROUND = """
import keras, numpy as np
from outpace import protocol
from outpace.observe.keras.tracing import Tracer
L, B = keras.layers, {batch}
keras.utils.set_random_seed(1)
tracer = Tracer(keras.backend.backend())
tracer.install()

def trace(model, x, y, jit="auto", **settings):
    model.compile(settings.pop("optimizer", "adam"), "mse", jit_compile=jit, **settings)
    model.fit(x, y, batch_size=B, verbose=0)
    inner = model.train_function
    def traced(*args):
        tracer.start()
        args = tracer.called(inner, args, keras.backend.backend(), model=model)
        result = inner(*args)
        tracer.saw_samples(B)
        print("TRACED", protocol.encode(tracer.stop()).decode())
        return result
    model.train_function = traced
    model.fit(x[:B], y[:B], batch_size=B, verbose=0)

def data(shape, out, whole=False):
    x = np.random.default_rng(0).normal(size=(B + 2, *shape)).astype("float32")
    return (np.abs(x * 9).astype("int32") if whole else x), np.zeros((B + 2, *out), "float32")
"""


def train(backend: str, code: str, **env: str) -> list[Traced]:
    with tempfile.TemporaryDirectory() as folder:
        script = Path(folder) / "script.py"  # TensorFlow reads the source of what it compiles
        script.write_text(AROUND.format(batch=BATCH) + code)
        done = subprocess.run(
            [sys.executable, "-W", "ignore", str(script)],
            capture_output=True,
            text=True,
            check=False,
            env=os.environ | {"KERAS_BACKEND": backend} | env,
        )
    assert done.returncode == 0, done.stderr
    lines = [line.partition(" ")[2] for line in done.stdout.splitlines() if line.startswith("TRACED")]
    return [msgspec.convert(json.loads(line) | {"event": "traced"}, Traced) for line in lines]


def total(traced: Traced, phase: str | None = None) -> int:
    return sum(
        one.flops * one.count
        for one in traced.operators
        if one.kind in ("matmul", "convolution") and phase in (None, one.phase)
    )


def dense(features: int, units: int, rows: int = BATCH) -> int:
    return flops.matmul(rows, units, features)


CONVOLUTIONS = """
model = keras.Sequential([keras.Input((8, 8, 3)),
    L.Conv2D(4, 3, padding="same"), L.BatchNormalization(), L.ReLU(), L.MaxPooling2D(),
    L.Conv2D(8, 3, strides=2, padding="same", groups=2),
    L.DepthwiseConv2D(2), L.Conv2DTranspose(2, 3, strides=2), L.Dropout(0.3), L.Flatten(), L.Dense(5)])
trace(model, *data((8, 8, 3), (5,)))
"""
#: In the order of the layers.
LAYERS = (
    flops.convolution(BATCH, 3, 4, (3, 3), 8 * 8),
    flops.convolution(BATCH, 4, 8, (3, 3), 2 * 2, groups=2),
    flops.convolution(BATCH, 8, 8, (2, 2), 1, groups=8),
    flops.convolution(BATCH, 8, 2, (3, 3), 1 * 1),
    dense(3 * 3 * 2, 5),
)


@pytest.mark.slow
@pytest.mark.parametrize("backend", BACKENDS)
def test_convolutions(backend: str) -> None:
    (traced,) = train(backend, CONVOLUTIONS)
    assert traced.notes == []
    assert (traced.framework, traced.device, traced.samples) == (f"keras on {backend}", "cpu", BATCH)
    assert total(traced, "forward") == sum(LAYERS)
    assert (
        total(traced, "backward") == 2 * sum(LAYERS) - LAYERS[0]
    )  # nobody asks for the gradient of the images
    kinds = {one.kind for one in traced.operators}
    assert {"convolution", "matmul", "pooling", "elementwise", "reduction", "optimizer", "random"} <= kinds
    forward = [one for one in traced.operators if one.kind == "convolution" and one.phase == "forward"]
    assert [one.attributes["groups"] for one in forward] == [1, 2, 8, 1]
    assert [one.attributes["stride"] for one in forward] == [(1, 1), (2, 2), (1, 1), (2, 2)]
    assert forward[-1].attributes["transposed"]


@pytest.mark.slow
@pytest.mark.parametrize("backend", BACKENDS)
def test_memory(backend: str) -> None:
    (traced,) = train(backend, CONVOLUTIONS)
    weights = 3 * 3 * 3 * 4 + 4 + 2 * 4 + 3 * 3 * 2 * 8 + 8 + 2 * 2 * 8 + 8 + 3 * 3 * 2 * 8 + 2 + 18 * 5 + 5
    assert traced.memory is not None
    assert traced.memory.gradients_bytes == 4 * weights
    fixed = traced.memory.parameters_bytes - 4 * weights if traced.memory.parameters_bytes else 0
    assert 4 * 2 * 4 <= fixed <= 4 * 2 * 4 + 16  # moving means, and the state of the dropout
    assert traced.memory.optimizer_state_bytes is not None
    assert 8 * weights < traced.memory.optimizer_state_bytes <= 8 * weights + 16


ATTENTION = """
row = keras.Input((7, 4))
made = L.MultiHeadAttention(2, 3)(row, row)
model = keras.Model(row, L.Dense(5)(L.LayerNormalization()(made)))
trace(model, *data((7, 4), (7, 5)))
"""


@pytest.mark.slow
@pytest.mark.parametrize("backend", BACKENDS)
def test_attention(backend: str) -> None:
    (traced,) = train(backend, ATTENTION)
    into = 3 * dense(4, 6, BATCH * 7)
    rest = flops.attention(BATCH, 2, 7, 7, 3) + dense(6, 4, BATCH * 7) + dense(4, 5, BATCH * 7)
    assert total(traced, "forward") == into + rest
    assert total(traced, "backward") == into + 2 * rest
    assert "softmax" in {one.kind for one in traced.operators}


RECURRENT = """
model = keras.Sequential([keras.Input((7,), dtype="int32"),
    L.Embedding(90, 4), L.LSTM(6, return_sequences=True), L.GRU(5), L.Dense(2)])
trace(model, *data((7,), (2,), whole=True))
"""


@pytest.mark.slow
@pytest.mark.parametrize("backend", BACKENDS)
def test_recurrent_layers_count_every_step(backend: str) -> None:
    (traced,) = train(backend, RECURRENT)
    once = flops.recurrent("lstm", BATCH, 7, 4, 6) + flops.recurrent("gru", BATCH, 7, 6, 5) + dense(5, 2)
    assert total(traced, "forward") == once
    assert total(traced, "backward") == 2 * once
    assert not any(one.guessed for one in traced.operators if one.kind == "matmul")
    rows = [one for one in traced.operators if one.kind == "embedding" and one.phase == "forward"]
    assert sum(one.bytes_written for one in rows) == BATCH * 7 * 4 * 4
    assert any(one.kind == "embedding" and one.phase != "forward" for one in traced.operators)


@pytest.mark.slow
def test_what_xla_compiles_is_fused() -> None:
    apart, together = train(
        "tensorflow",
        CONVOLUTIONS.replace("(5,))", "(5,)), jit=False") + CONVOLUTIONS.replace("(5,))", "(5,)), jit=True"),
    )
    assert total(apart) == total(together)
    moved = [sum((o.bytes_read + o.bytes_written) * o.count for o in t.operators) for t in (apart, together)]
    assert moved[1] < 0.7 * moved[0]
    assert any(one.attributes.get("fused") for one in together.operators)
    assert not any(one.attributes.get("fused") for one in apart.operators)


@pytest.mark.slow
@pytest.mark.parametrize("backend", BACKENDS)
def test_several_steps_in_one_call_are_traced_as_one(backend: str) -> None:
    code = (
        "model = keras.Sequential([keras.Input((4,)), L.Dense(3)])\n"
        "x, y = data((4,), (3,))\n"
        "x, y = np.repeat(x, 9, 0)[:B * 8], np.repeat(y, 9, 0)[:B * 8]\n"
        "trace(model, x, y, steps_per_execution=4)"
    )
    (traced,) = train(backend, code)
    assert total(traced) == 2 * dense(4, 3)


@pytest.mark.slow
@pytest.mark.parametrize("backend", BACKENDS)
def test_mixed_precision(backend: str) -> None:
    code = (
        "keras.mixed_precision.set_global_policy('mixed_bfloat16')\n"
        "model = keras.Sequential([keras.Input((4,)), L.Dense(3), L.Dense(2, dtype='float32')])\n"
        "trace(model, *data((4,), (2,)))"
    )
    (traced,) = train(backend, code)
    assert {one.dtype for one in traced.operators if one.kind == "matmul"} == {"bf16", "fp32"}


LOOP = """
import tensorflow as tf
model = keras.Sequential([keras.Input((4,)), L.Dense(3, activation="tanh"), L.Dense(2)])
optimizer = keras.optimizers.SGD(0.1)

@tf.function(reduce_retracing=True)
def forward(rows):
    return model(rows, training=True)

@tf.function(reduce_retracing=True)
def step(rows, wanted):
    with tf.GradientTape() as tape:
        loss = tf.reduce_mean((forward(rows) - wanted) ** 2)
    optimizer.apply_gradients(zip(tape.gradient(loss, model.trainable_variables), model.trainable_variables))
    return loss

x, y = data((4,), (2,))
for size in (8, 7, B):
    tracer.start()
    step(tf.constant(x[:size]), tf.constant(y[:size]))
    print("TRACED", protocol.encode(tracer.stop()).decode())
"""


@pytest.mark.slow
def test_a_loop_of_tensorflow() -> None:
    for traced, batch in zip(train("tensorflow", LOOP), (8, 7, BATCH), strict=True):
        assert traced.samples == batch
        assert total(traced, "forward") == dense(4, 3, batch) + dense(3, 2, batch)
        assert total(traced, "backward") == dense(4, 3, batch) + 2 * dense(3, 2, batch)
        assert {one.phase for one in traced.operators} == {"forward", "backward", "optimizer"}
        assert traced.notes == []


SEVERAL = """
batches = iter(tf.data.Dataset.from_tensor_slices(data((4,), (2,))).batch(4, drop_remainder=True).repeat())

@tf.function
def four_steps(iterator):
    for _ in tf.range(4):
        rows, wanted = next(iterator)
        with tf.GradientTape() as tape:
            loss = tf.reduce_mean((model(rows, training=True) - wanted) ** 2)
        variables = model.trainable_variables
        optimizer.apply_gradients(zip(tape.gradient(loss, variables), variables))

tracer.start()
four_steps(batches)
tracer.saw_samples(4, steps=4)
print("TRACED", protocol.encode(tracer.stop()).decode())
"""


@pytest.mark.slow
def test_a_graph_of_several_steps() -> None:
    traced = train("tensorflow", LOOP + SEVERAL)[-1]
    assert traced.samples == 4
    assert total(traced, "forward") == dense(4, 3, 4) + dense(3, 2, 4)
    assert total(traced, "backward") == dense(4, 3, 4) + 2 * dense(3, 2, 4)


@pytest.mark.slow
def test_nothing_compiled_is_said() -> None:
    code = 'tracer.start()\nprint("TRACED", protocol.encode(tracer.stop()).decode())'
    for backend in BACKENDS:
        (traced,) = train(backend, code)
        assert traced.operators == []
        assert "no compiled function" in traced.notes[0]


def test_pytorch_is_not_ours() -> None:
    from outpace.observe.keras.tracing import Tracer

    tracer = Tracer("torch")
    tracer.install()
    tracer.start()
    assert tracer.called(print, (1,), "torch") == (1,)
    assert tracer.stop() is None
