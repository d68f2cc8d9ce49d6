"""Every kind of data that ``fit`` takes; prints each step's loss as computed by hand, and the weights."""
# ruff: noqa: ARG001, ARG002, B905, RUF012

import os

import keras
import numpy as np

backend = keras.backend.backend()
keras.utils.set_random_seed(1)
numbers = np.random.default_rng(0)
x = numbers.normal(size=(130, 6)).astype("float32")
y = numbers.integers(0, 3, 130)
cross_entropy = keras.losses.SparseCategoricalCrossentropy(from_logits=True)


def fresh(**compiled):
    keras.utils.set_random_seed(2)
    model = keras.Sequential(
        [keras.Input((6,)), keras.layers.Dense(8, activation="relu"), keras.layers.Dense(3)]
    )
    model.compile(keras.optimizers.SGD(0.1), cross_entropy, metrics=["accuracy"], **compiled)
    return model


def by_hand(batches):
    """Train by NumPy alone; returns the losses."""
    w1, b1, w2, b2 = [np.array(w, "float64") for w in fresh().get_weights()]
    losses = []
    for rows, labels, scale in batches:
        hidden = np.maximum(rows @ w1 + b1, 0)
        logits = hidden @ w2 + b2
        shares = np.exp(logits - logits.max(1, keepdims=True))
        shares /= shares.sum(1, keepdims=True)
        count = len(rows)
        losses.append(float((-np.log(shares[np.arange(count), labels]) * scale).sum() / count))
        slope = shares.copy()
        slope[np.arange(count), labels] -= 1
        slope *= scale[:, None] / count
        back = (slope @ w2.T) * (hidden > 0)
        w2, b2 = w2 - 0.1 * hidden.T @ slope, b2 - 0.1 * slope.sum(0)
        w1, b1 = w1 - 0.1 * rows.T @ back, b1 - 0.1 * back.sum(0)
    return losses


def batches(size, epochs=1, rows=130, scale=None):
    scale = np.ones(130) if scale is None else scale
    for _ in range(epochs):
        for start in range(0, rows, size):
            end = min(start + size, rows)
            yield x[start:end], y[start:end], scale[start:end]


def tell(name, losses):
    print("LOSSES", name, *losses)


class Sequence(keras.utils.PyDataset):
    def __len__(self):
        return 3

    def __getitem__(self, index):
        return x[index * 50 : (index + 1) * 50], y[index * 50 : (index + 1) * 50]


def forever(size):
    while True:
        for rows, labels, _ in batches(size):
            yield rows, labels


quiet = {"verbose": 0, "shuffle": False}

fresh().fit(x, y, batch_size=50, epochs=2, validation_split=0.2, **quiet)
tell("arrays", by_hand(batches(50, 2, 104)))

weights = np.linspace(0, 2, 130)
fresh().fit(x, y, batch_size=64, sample_weight=weights, verbose=2, shuffle=False)
tell("weights", by_hand(batches(64, scale=weights)))

by_class = {0: 1.0, 1: 0.5, 2: 3.0}
fresh().fit(x, y, batch_size=64, class_weight=by_class, **quiet)
tell("classes", by_hand(batches(64, scale=np.array([by_class[label] for label in y]))))

fresh().fit(Sequence(), epochs=2, **quiet)
tell("sequence", by_hand(batches(50, 2)))

fresh().fit(forever(40), steps_per_epoch=3, epochs=2, **quiet)
tell("generator", by_hand([*batches(40), *batches(40)][:6]))

if backend != "torch":
    import tensorflow as tf

    tf_data = tf.data.Dataset.from_tensor_slices((x, y))
    fresh().fit(tf_data.batch(50), **quiet)
    tell("dataset", by_hand(batches(50)))
    fresh().fit(tf_data.batch(50, drop_remainder=True), **quiet)
    tell("dropped", by_hand(batches(50, rows=100)))
    fresh(steps_per_execution=2).fit(x, y, batch_size=50, epochs=2, **quiet)
    tell("several", by_hand(batches(50, 2)))

if backend == "torch" or os.environ.get("WITH_LOADER"):
    import torch

    data = torch.utils.data.TensorDataset(torch.from_numpy(x), torch.from_numpy(y))
    fresh().fit(torch.utils.data.DataLoader(data, 50), epochs=2, **quiet)
    tell("loader", by_hand(batches(50, 2)))


class Log(keras.callbacks.Callback):
    def on_train_batch_end(self, batch, logs=None):
        assert isinstance(logs["loss"], float)
        assert not any("outpace" in name for name in logs)


fresh(run_eagerly=True).fit(x, y, batch_size=65, callbacks=[Log()], **quiet)
tell("eager", by_hand(batches(65)))

model = fresh()
for rows, labels, _ in batches(50):
    model.train_on_batch(rows, labels)
model.evaluate(x, y, verbose=0)
model.train_on_batch(x[:7], y[:7])
tell("train_on_batch", by_hand([*batches(50), (x[:7], y[:7], np.ones(7))]))
print("WEIGHTS", [float(np.abs(w).astype("float64").sum()) for w in model.get_weights()])
