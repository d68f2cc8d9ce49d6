"""The same training by a plain loop, Lightning, Accelerate, Keras, by hand, and by outpace with its recipe.

One model (that of the built-in `cnn`), data, batch size, optimizer and number of epochs; each training in a
process of its own, in turns. A training times its own epochs; its rate is that of the median epoch after the
first, so that start-up and compilation stay out for all.

    python bench/peers.py [--rounds 5] [--epochs 8] [--with bf16,channels-last]
"""

from __future__ import annotations

import argparse
import importlib.metadata
import itertools
import json
import os
import platform
import statistics
import subprocess
import sys
import time
from collections.abc import Callable
from typing import Any

BATCH, RATE, MOMENTUM = 64, 0.01, 0.9
Epochs = list[float]
"""Seconds of each epoch."""


def tensors() -> Any:
    import torch

    from outpace import data
    from outpace.scripts.cnn import normalized

    train_images, train_labels, test_images, test_labels = map(torch.from_numpy, data.mnist("sample"))
    return normalized(train_images), train_labels, normalized(test_images), test_labels


def loader() -> Any:
    from torch.utils.data import DataLoader, TensorDataset

    images, labels, _, _ = tensors()
    return DataLoader(TensorDataset(images, labels), BATCH, shuffle=True)


def model_and_optimizer(**options: Any) -> tuple[Any, Any]:
    import torch

    from outpace.scripts.cnn import network

    torch.manual_seed(0)
    model = network()
    return model, torch.optim.SGD(model.parameters(), lr=RATE, momentum=MOMENTUM, **options)


def accuracy(model: Any) -> float:
    import torch

    _, _, images, labels = tensors()
    model.eval()
    with torch.no_grad():
        return float((model(images).argmax(1) == labels).float().mean())


def plain(epochs: int) -> tuple[Epochs, float]:
    from torch.nn import functional

    batches = loader()
    model, optimizer = model_and_optimizer()
    seconds = []
    for _ in range(epochs):
        began = time.perf_counter()
        for images, labels in batches:
            optimizer.zero_grad()
            functional.cross_entropy(model(images), labels).backward()
            optimizer.step()
        seconds.append(time.perf_counter() - began)
    return seconds, accuracy(model)


def by_hand(epochs: int) -> tuple[Epochs, float]:
    import torch
    from torch.nn import functional

    images, labels, _, _ = tensors()
    model, optimizer = model_and_optimizer(fused=True)
    model = model.to(memory_format=torch.channels_last)
    images = images.to(memory_format=torch.channels_last)
    seconds = []
    for _ in range(epochs):
        began = time.perf_counter()
        for rows in torch.randperm(len(images)).split(BATCH):
            optimizer.zero_grad()
            with torch.autocast("cpu", dtype=torch.bfloat16):
                loss = functional.cross_entropy(model(images[rows]), labels[rows])
            loss.backward()
            optimizer.step()
        seconds.append(time.perf_counter() - began)
    return seconds, accuracy(model)


def lightning(epochs: int, precision: str) -> tuple[Epochs, float]:
    import logging

    import lightning.pytorch as pl
    from torch.nn import functional

    logging.getLogger("lightning.pytorch").setLevel(logging.ERROR)
    stamps: list[float] = []

    class Module(pl.LightningModule):
        def __init__(self) -> None:
            super().__init__()
            self.model, self.own = model_and_optimizer()

        def training_step(self, batch: Any) -> Any:
            return functional.cross_entropy(self.model(batch[0]), batch[1])

        def configure_optimizers(self) -> Any:
            return self.own

        def on_train_epoch_start(self) -> None:
            stamps.append(time.perf_counter())

        def on_train_end(self) -> None:
            stamps.append(time.perf_counter())

    module = Module()
    trainer = pl.Trainer(
        max_epochs=epochs,
        precision=precision,  # type: ignore[arg-type]
        accelerator="cpu",
        logger=False,
        enable_checkpointing=False,
        enable_progress_bar=False,
        enable_model_summary=False,
    )
    trainer.fit(module, loader())
    return [end - start for start, end in itertools.pairwise(stamps)], accuracy(module.model)


def accelerate(epochs: int, precision: str) -> tuple[Epochs, float]:
    from accelerate import Accelerator  # type: ignore[import-untyped]
    from torch.nn import functional

    accelerator = Accelerator(mixed_precision=precision, cpu=True)
    model, optimizer, batches = accelerator.prepare(*model_and_optimizer(), loader())
    seconds = []
    for _ in range(epochs):
        began = time.perf_counter()
        for images, labels in batches:
            optimizer.zero_grad()
            with accelerator.autocast():
                loss = functional.cross_entropy(model(images), labels)
            accelerator.backward(loss)
            optimizer.step()
        seconds.append(time.perf_counter() - began)
    return seconds, accuracy(accelerator.unwrap_model(model))


def keras_fit(epochs: int) -> tuple[Epochs, float]:
    import keras
    from keras import layers

    images, labels, test_images, test_labels = (part.numpy() for part in tensors())
    images, test_images = images.transpose(0, 2, 3, 1), test_images.transpose(0, 2, 3, 1)
    model = keras.Sequential(
        [
            layers.Input((28, 28, 1)),
            layers.Conv2D(20, 5, activation="relu"),
            layers.MaxPool2D(),
            layers.Conv2D(50, 5, activation="relu"),
            layers.MaxPool2D(),
            layers.Flatten(),
            layers.Dense(500, activation="relu"),
            layers.Dense(10),
        ]
    )
    loss = keras.losses.SparseCategoricalCrossentropy(from_logits=True)
    model.compile(keras.optimizers.SGD(RATE, momentum=MOMENTUM), loss, metrics=["accuracy"])
    stamps = [time.perf_counter()]

    class Stamp(keras.callbacks.Callback):  # type: ignore[misc]
        def on_epoch_end(self, epoch: int, logs: Any = None) -> None:  # noqa: ARG002
            stamps.append(time.perf_counter())

    model.fit(images, labels, batch_size=BATCH, epochs=epochs, verbose=0, callbacks=[Stamp()])
    seconds = [end - start for start, end in itertools.pairwise(stamps)]
    return seconds, float(model.evaluate(test_images, test_labels, verbose=0)[1])


TRAININGS: dict[str, Callable[[int], tuple[Epochs, float]]] = {
    "plain loop": plain,
    "by hand: bf16, channels-last, fused, indexed": by_hand,
    "Lightning, 32": lambda epochs: lightning(epochs, "32-true"),
    "Lightning, bf16-mixed": lambda epochs: lightning(epochs, "bf16-mixed"),
    "Accelerate, no": lambda epochs: accelerate(epochs, "no"),
    "Accelerate, bf16": lambda epochs: accelerate(epochs, "bf16"),
    "Keras on TensorFlow": keras_fit,
    "Keras on JAX": keras_fit,
    "Keras on PyTorch": keras_fit,
}
BACKENDS = {"Keras on TensorFlow": "tensorflow", "Keras on JAX": "jax", "Keras on PyTorch": "torch"}
OURS = "outpace train --with"


def one(name: str, epochs: int) -> None:
    """Train, and print the result as the last line."""
    seconds, reached = TRAININGS[name](epochs)
    samples = len(tensors()[0])
    rate = samples / statistics.median(seconds[1:])
    print(json.dumps({"samples_per_second": rate, "accuracy": reached}), flush=True)


def in_a_process(name: str, epochs: int, speedups: str) -> dict[str, float]:
    env = os.environ | {"KERAS_BACKEND": BACKENDS.get(name, "torch"), "TF_CPP_MIN_LOG_LEVEL": "3"}
    start = [sys.executable]
    trained = name
    if name == OURS:
        start = [sys.executable, "-m", "outpace", "train", "--quiet", "--with", speedups]
        trained = "plain loop"
    command = [*start, __file__, "--one", trained, "--epochs", str(epochs)]
    done = subprocess.run(command, env=env, capture_output=True, text=True, check=False)
    if done.returncode:
        sys.exit(f"{name}: {done.stderr[-2000:]}")
    result: dict[str, float] = json.loads(done.stdout.strip().splitlines()[-1])
    return result


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--epochs", type=int, default=8)
    parser.add_argument("--with", dest="speedups", help="instead of a recipe that is searched for first")
    parser.add_argument("--one")
    args = parser.parse_args()
    if args.one:
        one(args.one, args.epochs)
        return
    from outpace import host

    names = ("torch", "lightning", "accelerate", "tensorflow-cpu", "keras", "jax")
    print(", ".join(f"{name} {importlib.metadata.version(name)}" for name in names))
    print(f"Python {platform.python_version()}, {host.cpu_name()}, {host.cores():g} cores")
    speedups = args.speedups or _searched()
    print(f"recipe: {speedups}\n{args.rounds} rounds of {args.epochs} epochs, batch {BATCH}\n")
    found: dict[str, list[dict[str, float]]] = {name: [] for name in [*TRAININGS, OURS]}
    for turn in range(args.rounds):
        for name in found if turn % 2 == 0 else reversed(found):
            found[name].append(in_a_process(name, args.epochs, speedups))
    print(f"{'':<46} samples/s   times plain (range)   accuracy")
    base = [one["samples_per_second"] for one in found["plain loop"]]
    for name, results in found.items():
        rates = [one["samples_per_second"] for one in results]
        ratios = sorted(rate / before for rate, before in zip(rates, base, strict=True))
        reached = statistics.fmean(one["accuracy"] for one in results)
        middle = statistics.median(ratios)
        spread = f"({ratios[0]:.2f} to {ratios[-1]:.2f})"
        print(f"{name:<46} {statistics.median(rates):>9,.0f}   {middle:>5.2f} {spread:<16} {reached:>8.4f}")


def _searched() -> str:
    import outpace

    recipe = outpace.speedup("cnn")
    return ",".join(recipe.speedups) or sys.exit("the search found nothing")


if __name__ == "__main__":
    main()
