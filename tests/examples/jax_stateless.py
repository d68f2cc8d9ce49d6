"""Keras on JAX in a compiled loop of one's own: no step can be seen."""

import jax
import keras
import numpy as np

x = np.random.default_rng(0).normal(size=(16, 3)).astype("float32")
model = keras.Sequential([keras.Input((3,)), keras.layers.Dense(1)])
optimizer = keras.optimizers.SGD(0.1)
optimizer.build(model.trainable_variables)


def loss_of(trained, fixed, rows):
    made, fixed = model.stateless_call(trained, fixed, rows, training=True)
    return (made**2).mean(), fixed


@jax.jit
def step(trained, fixed, state, rows):
    (loss, fixed), slope = jax.value_and_grad(loss_of, has_aux=True)(trained, fixed, rows)
    trained, state = optimizer.stateless_apply(state, slope, trained)
    return trained, fixed, state, loss


trained = [v.value for v in model.trainable_variables]
fixed = [v.value for v in model.non_trainable_variables]
state = [v.value for v in optimizer.variables]
for _ in range(3):
    trained, fixed, state, loss = step(trained, fixed, state, x)
