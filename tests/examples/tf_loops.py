"""Custom loops on TensorFlow, eager and in graphs; prints the losses that the script itself sees."""
# ruff: noqa: ARG001, ARG002, B905, RUF012

import keras
import numpy as np
import tensorflow as tf

keras.utils.set_random_seed(1)
x = np.random.default_rng(0).normal(size=(70, 4)).astype("float32")
y = x.sum(1, keepdims=True)
data = tf.data.Dataset.from_tensor_slices((x, y)).batch(32)
error = keras.losses.MeanSquaredError()


def fresh(out=1):
    return keras.Sequential(
        [keras.Input((4,)), keras.layers.Dense(8, activation="tanh"), keras.layers.Dense(out)]
    )


def tell(name, losses=()):
    print("LOSSES", name, *(float(loss) for loss in losses))


# eager, batches of a dataset, an evaluation after each epoch
model, optimizer, losses = fresh(), keras.optimizers.SGD(0.05), []
for _ in range(2):
    for rows, wanted in data:
        with tf.GradientTape() as tape:
            loss = error(wanted, model(rows, training=True))
        optimizer.apply_gradients(
            zip(tape.gradient(loss, model.trainable_variables), model.trainable_variables)
        )
        losses.append(loss)
    model(x, training=False)
tell("eager", losses)

# in a graph, the last batch smaller
model, optimizer, losses = fresh(), keras.optimizers.Adam(0.01), []


@tf.function
def train_step(rows, wanted):
    with tf.GradientTape() as tape:
        loss = error(wanted, model(rows, training=True))
    optimizer.apply_gradients(zip(tape.gradient(loss, model.trainable_variables), model.trainable_variables))
    return loss


@tf.function
def test_step(rows):
    return model(rows, training=False)


for _ in range(3):
    for rows, wanted in data:
        losses.append(train_step(rows, wanted))
    test_step(x)
tell("graph", losses)

# several steps in one call: a loop of the graph
model, optimizer = fresh(), keras.optimizers.SGD(0.01)
batches = iter(tf.data.Dataset.from_tensor_slices((x, y)).batch(32, drop_remainder=True).repeat())


@tf.function
def four_steps(iterator):
    for _ in tf.range(4):
        rows, wanted = next(iterator)
        with tf.GradientTape() as tape:
            loss = error(wanted, model(rows, training=True))
        gradients = tape.gradient(loss, model.trainable_variables)
        optimizer.apply_gradients(zip(gradients, model.trainable_variables))


for _ in range(3):
    four_steps(batches)
tell("range", ["nan"] * 12)

# a GAN: two optimizers in one graph, nothing returned
generator, critic = fresh(4), fresh(1)
first, second = keras.optimizers.Adam(0.001), keras.optimizers.Adam(0.001)


class Gan:
    @tf.function
    def step(self, real):
        noise = tf.random.normal([tf.shape(real)[0], 4])
        with tf.GradientTape() as tape, tf.GradientTape() as other:
            made = generator(noise, training=True)
            good, bad = critic(real, training=True), critic(made, training=True)
            critic_loss = tf.reduce_mean(bad) - tf.reduce_mean(good)
            loss = -tf.reduce_mean(bad)
        first.apply_gradients(
            zip(tape.gradient(loss, generator.trainable_variables), generator.trainable_variables)
        )
        second.apply_gradients(
            zip(other.gradient(critic_loss, critic.trainable_variables), critic.trainable_variables)
        )


gan = Gan()
for _ in range(2):
    for rows, _ in data:
        gan.step(rows)
tell("gan", ["nan"] * 6)

# mixed precision: the loss is scaled, arrays of NumPy are cut by hand
model = fresh()
optimizer, losses = keras.optimizers.LossScaleOptimizer(keras.optimizers.SGD(0.01), initial_scale=8.0), []
for start in range(0, 60, 20):
    with tf.GradientTape() as tape:
        loss = error(y[start : start + 20], model(x[start : start + 20], training=True))
        scaled = optimizer.scale_loss(loss)
    optimizer.apply(tape.gradient(scaled, model.trainable_variables), model.trainable_variables)
    losses.append(loss)
tell("scaled", losses)

everything = [*model.get_weights(), *generator.get_weights(), *critic.get_weights()]
print("WEIGHTS", [float(np.abs(w).astype("float64").sum()) for w in everything])
