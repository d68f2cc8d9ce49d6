"""Models with a train step of their own, several inputs, two optimizers."""
# ruff: noqa: ARG001, ARG002, B905, RUF012

import keras
import numpy as np
from keras import layers, ops

backend = keras.backend.backend()
keras.utils.set_random_seed(1)
x = np.random.default_rng(0).normal(size=(70, 4)).astype("float32")
y = x.sum(1, keepdims=True)


# two inputs by name
left, right = keras.Input((4,), name="left"), keras.Input((4,), name="right")
model = keras.Model({"left": left, "right": right}, layers.Dense(1)(layers.concatenate([left, right])))
model.compile("adam", "mse")
model.fit({"left": x, "right": x}, y, batch_size=32, epochs=2, verbose=0)
print("LOSSES inputs", *["nan"] * 6)


class Own(keras.Model):
    """Reports the mean of a metric of its own, as guides show it."""

    def __init__(self):
        super().__init__()
        self.dense = layers.Dense(1)
        self.tracker = keras.metrics.Mean(name="my_loss")

    @property
    def metrics(self):
        return [self.tracker]

    def call(self, rows, training=None):
        return self.dense(rows)


if backend == "tensorflow":
    import tensorflow as tf

    class Own(Own):
        def train_step(self, data):
            rows, wanted = data
            with tf.GradientTape() as tape:
                loss = ops.mean(ops.square(self(rows, training=True) - wanted))
            gradients = tape.gradient(loss, self.trainable_variables)
            self.optimizer.apply_gradients(zip(gradients, self.trainable_variables))
            self.tracker.update_state(loss)
            return {"loss": self.tracker.result()}

elif backend == "torch":

    class Own(Own):
        def train_step(self, data):
            rows, wanted = data
            self.zero_grad()
            loss = ops.mean(ops.square(self(rows, training=True) - wanted))
            loss.backward()
            variables = self.trainable_weights
            self.optimizer.apply([v.value.grad for v in variables], variables)
            self.tracker.update_state(loss)
            return {"loss": self.tracker.result()}

else:
    import jax

    class Own(Own):
        def loss_of(self, trained, fixed, rows, wanted):
            made, fixed = self.stateless_call(trained, fixed, rows, training=True)
            return ops.mean(ops.square(made - wanted)), fixed

        def train_step(self, state, data):
            trained, fixed, optimizer, metrics = state
            rows, wanted = data
            (loss, fixed), slope = jax.value_and_grad(self.loss_of, has_aux=True)(
                trained, fixed, rows, wanted
            )
            trained, optimizer = self.optimizer.stateless_apply(optimizer, slope, trained)
            metrics = self.tracker.stateless_update_state(metrics, loss)
            return {"loss": self.tracker.stateless_result(metrics)}, (trained, fixed, optimizer, metrics)


keras.utils.set_random_seed(2)
model = Own()
model(x[:1])
weights, bias = (np.array(w, "float64") for w in model.get_weights())
model.compile(optimizer=keras.optimizers.SGD(0.1))
model.fit(x, y, batch_size=32, epochs=2, verbose=0, shuffle=False)
losses = []
for _ in range(2):
    for start in range(0, 70, 32):
        rows, wanted = x[start : start + 32], y[start : start + 32]
        off = rows @ weights + bias - wanted
        losses.append(float((off**2).mean()))
        weights, bias = weights - 0.2 * rows.T @ off / len(rows), bias - 0.2 * off.mean(0)
print("LOSSES own", *losses)

if backend == "tensorflow":

    class Gan(keras.Model):
        """Two optimizers, two losses, raw values in the logs; random numbers within the graph."""

        def __init__(self):
            super().__init__()
            self.generator = keras.Sequential([keras.Input((2,)), layers.Dense(4)])
            self.critic = keras.Sequential([keras.Input((4,)), layers.Dense(1)])

        def compile(self):
            super().compile()
            self.one, self.two = keras.optimizers.Adam(), keras.optimizers.Adam()

        def train_step(self, real):
            noise = tf.random.normal([tf.shape(real)[0], 2])
            with tf.GradientTape(persistent=True) as tape:
                made = self.critic(self.generator(noise))
                critic_loss = tf.reduce_mean(made) - tf.reduce_mean(self.critic(real))
                generator_loss = -tf.reduce_mean(made)
            for part, loss, optimizer in (
                (self.critic, critic_loss, self.two),
                (self.generator, generator_loss, self.one),
            ):
                slope = tape.gradient(loss, part.trainable_variables)
                optimizer.apply_gradients(zip(slope, part.trainable_variables))
            return {"d_loss": critic_loss, "g_loss": generator_loss}

    gan = Gan()
    gan.compile()

    class Log(keras.callbacks.Callback):
        seen = []

        def on_train_batch_end(self, batch, logs=None):
            self.seen.append(logs["d_loss"] + logs["g_loss"])

    gan.fit(tf.data.Dataset.from_tensor_slices(x).batch(32), epochs=2, verbose=0, callbacks=[Log()])
    print("LOSSES gan", *Log.seen)
    model = gan

if backend == "torch":
    import torch

    model = keras.Sequential([keras.Input((4,)), layers.Dense(1)])
    optimizer, losses = keras.optimizers.SGD(0.1), []
    for rows, wanted in torch.utils.data.DataLoader(
        torch.utils.data.TensorDataset(torch.from_numpy(x), torch.from_numpy(y)), 32
    ):
        loss = ((model(rows, training=True) - wanted) ** 2).mean()
        model.zero_grad()
        loss.backward()
        with torch.no_grad():
            optimizer.apply([v.value.grad for v in model.trainable_weights], model.trainable_weights)
        losses.append(loss.item())
    for start in (0, 25):
        loss = ((model(x[start : start + 25]) - torch.from_numpy(y[start : start + 25])) ** 2).mean()
        model.zero_grad()
        loss.backward()
        with torch.no_grad():
            optimizer.apply([v.value.grad for v in model.trainable_weights], model.trainable_weights)
        losses.append(loss.item())
    print("LOSSES loop", *losses)

print("WEIGHTS", [float(np.abs(w).astype("float64").sum()) for w in model.get_weights()])
