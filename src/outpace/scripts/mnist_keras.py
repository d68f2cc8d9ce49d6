"""Small CNN on MNIST (Keras 3 on TensorFlow, JAX or PyTorch)."""

import argparse
import importlib.util
import os
import sys
from typing import Any

import outpace
from outpace import data

BACKENDS = ("tensorflow", "jax", "torch")


def import_keras(backend: str | None) -> Any:
    installed = [name for name in BACKENDS if importlib.util.find_spec(name)]
    if not installed or not importlib.util.find_spec("keras"):
        sys.exit('mnist-keras needs Keras and a back-end: pip install "outpace[tensorflow]" (or jax)')
    backend = backend or os.environ.get("KERAS_BACKEND") or installed[0]
    if backend in BACKENDS and backend not in installed:
        sys.exit(f'{backend} is not installed: pip install keras "outpace[{backend}]"')
    os.environ["KERAS_BACKEND"] = backend  # read once, while Keras is imported
    os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "3")
    if backend != "tensorflow":
        return importlib.import_module("keras")
    # While it is loaded, TensorFlow writes to file descriptor 2 whatever the log level says.
    stderr, nowhere = os.dup(2), os.open(os.devnull, os.O_WRONLY)
    os.dup2(nowhere, 2)
    try:
        return importlib.import_module("keras")
    finally:
        os.dup2(stderr, 2)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--backend", choices=BACKENDS, help="default: $KERAS_BACKEND, or the first installed")
    parser.add_argument("--data", default="sample", help="sample (default), full, or a folder with MNIST")
    parser.add_argument("--epochs", type=int, help="default: 5; on the sample, which is small, 10")
    parser.add_argument("--batch-size", type=int, default=32, help="default: 32")
    parser.add_argument("--lr", type=float, help="default: 0.001; on the sample 0.002")
    args = parser.parse_args()
    if args.epochs is None:
        args.epochs = 10 if args.data == "sample" else 5
    if args.lr is None:
        args.lr = 0.002 if args.data == "sample" else 0.001
    keras = import_keras(args.backend)
    layers = keras.layers
    train_images, train_labels, test_images, test_labels = data.mnist(args.data)
    total = len(train_images)

    class Lines(keras.callbacks.Callback):
        async_safe = True  # printing must not make Keras wait for the loss of every batch

        def on_epoch_begin(self, epoch: int, logs: Any = None) -> None:  # noqa: ARG002
            self.epoch = epoch + 1

        def on_train_batch_end(self, batch: int, logs: Any = None) -> None:
            if batch % 100 == 0 and not sys.stdout.isatty():
                share = f"{batch * args.batch_size}/{total} ({100 * batch * args.batch_size / total:.0f}%)"
                print(f"Train Epoch: {self.epoch} [{share}]  Loss: {float(logs['loss']):.6f}", flush=True)

    model = keras.Sequential([
        keras.Input((28, 28, 1)), layers.Conv2D(32, 3, activation="relu"), layers.MaxPooling2D(2),
        layers.Flatten(), layers.Dense(128, activation="relu"), layers.Dense(10, activation="softmax"),
    ])  # fmt: skip
    optimizer = keras.optimizers.Adam(args.lr)
    model.compile(optimizer, loss="sparse_categorical_crossentropy", metrics=["accuracy"])
    model.fit(
        train_images[..., None].astype("float32") / 255, train_labels, batch_size=args.batch_size,
        epochs=args.epochs, verbose=1 if sys.stdout.isatty() else 2, callbacks=[Lines()],
    )  # fmt: skip
    _, accuracy = model.evaluate(test_images[..., None].astype("float32") / 255, test_labels, verbose=0)
    print(f"Test accuracy: {accuracy:.4f}")
    outpace.log(test_accuracy=accuracy)


if __name__ == "__main__":
    main()
