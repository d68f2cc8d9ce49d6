"""Training loops as source text, to be bent by tests."""

LOOP = """
import torch, sys
from torch import nn
torch.manual_seed(0)
model = nn.Sequential(nn.Linear(256, 256), nn.ReLU(), nn.Linear(256, 10))
optimizer = torch.optim.Adam(model.parameters())
rows, labels = torch.randn(64, 256), torch.randint(0, 10, (64,))
try:
    for step in range({steps}):
        optimizer.zero_grad()
        loss = nn.functional.cross_entropy(model(rows), labels)
        loss.backward()
        optimizer.step()
        {body}
finally:
    print("CLEANED UP", flush=True)
print("THE END")
"""


def loop(steps: int = 100_000, body: str = "pass") -> str:
    return LOOP.format(steps=steps, body=body)


KERAS_LOOP = """
import keras, numpy
keras.utils.set_random_seed(0)
numbers = numpy.random.default_rng(0)
rows, labels = numbers.normal(size=(640, 256)).astype("float32"), numbers.integers(0, 10, 640)
layers = [keras.layers.Dense(256, activation="relu"), keras.layers.Dense(10)]
model = keras.Sequential([keras.Input((256,)), *layers])
cross_entropy = keras.losses.SparseCategoricalCrossentropy(from_logits=True)
model.compile(keras.optimizers.Adam(), cross_entropy)
model.fit(rows, labels, batch_size=64, epochs=10_000, verbose=0)
print("THE END")
"""
