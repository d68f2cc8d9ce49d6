"""Small CNN on MNIST (Keras 3 on TensorFlow, JAX or PyTorch)."""

import argparse
import importlib.util
import os
import sys

import outpace
from outpace import data

BACKENDS = ("tensorflow", "jax", "torch")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument(
        "--backend", choices=BACKENDS, help="default: $KERAS_BACKEND, or the first one installed"
    )
    parser.add_argument(
        "--data", default="sample", help="sample, full, or a folder with MNIST (default: sample)"
    )
    parser.add_argument("--epochs", type=int, help="default: 5; on the sample 10")
    parser.add_argument("--batch-size", type=int, default=32)
    parser.add_argument("--lr", type=float, default=0.001)
    args = parser.parse_args()
    installed = [name for name in BACKENDS if importlib.util.find_spec(name)]
    if not installed or not importlib.util.find_spec("keras"):
        sys.exit('Keras needs a back-end: pip install "outpace[tensorflow]" (or jax, or torch and keras)')
    backend = args.backend or os.environ.get("KERAS_BACKEND") or installed[0]
    if backend not in installed:
        sys.exit(f'{backend} is not installed: pip install "outpace[{backend}]"')
    os.environ["KERAS_BACKEND"] = backend  # read once, at the first import of keras
    os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "3")
    import keras
    from keras import layers

    digits = data.mnist(args.data)
    train_images = digits.train_images[..., None].astype("float32") / 255
    test_images = digits.test_images[..., None].astype("float32") / 255
    model = keras.Sequential(
        [
            keras.Input((28, 28, 1)),
            layers.Conv2D(32, 3, activation="relu"),
            layers.MaxPooling2D(2),
            layers.Flatten(),
            layers.Dense(128, activation="relu"),
            layers.Dense(10, activation="softmax"),
        ]
    )
    optimizer = keras.optimizers.Adam(args.lr)
    model.compile(optimizer=optimizer, loss="sparse_categorical_crossentropy", metrics=["accuracy"])
    model.fit(
        train_images,
        digits.train_labels,
        batch_size=args.batch_size,
        epochs=args.epochs or (10 if args.data == "sample" else 5),
        verbose=1 if sys.stdout.isatty() else 2,
    )
    _, accuracy = model.evaluate(test_images, digits.test_labels, verbose=0)
    print(f"Test accuracy: {accuracy:.4f}")
    outpace.log(test_accuracy=accuracy)


if __name__ == "__main__":
    main()
