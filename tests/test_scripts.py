"""The built-in scripts, run with plain Python: what they say, what they learn, what they need."""

from __future__ import annotations

import ast
import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

from outpace import scripts

#: Runs the script of the second argument, seeded by the first. Keras draws its seeds from `random`; its own
#: ``set_random_seed`` would import TensorFlow, with all that it prints, for every back-end.
SEEDED = (
    "import random, runpy, sys, numpy, torch; seed = int(sys.argv[1]);"
    "random.seed(seed); numpy.random.seed(seed); torch.manual_seed(seed);"
    "sys.argv = sys.argv[2:]; runpy.run_path(sys.argv[0], run_name='__main__')"
)
#: Runs the script of the second argument as if the libraries of the first were not installed.
WITHOUT = (
    "import runpy, sys; sys.modules |= dict.fromkeys(sys.argv[1].split(','));"
    "sys.argv = sys.argv[2:]; runpy.run_path(sys.argv[0], run_name='__main__')"
)
LINE = re.compile(r"Train Epoch: (\d+) \[(\d+)/(\d+) \((\d+)%\)\]  Loss: (\d+\.\d{6})")


def python(*arguments: str | Path, **env: str) -> subprocess.CompletedProcess[str]:
    """One thread each: nets of this size gain little from two, and lose tenfold where cores are shared."""
    plain = {k: v for k, v in os.environ.items() if k not in ("KERAS_BACKEND", "TF_CPP_MIN_LOG_LEVEL")}
    environment = plain | {"OMP_NUM_THREADS": "1"} | env
    return subprocess.run(
        [sys.executable, *map(str, arguments)],
        capture_output=True,
        text=True,
        env=environment,
        timeout=280,
        check=False,
    )


def run(name: str, *arguments: str, seed: int = 0, **env: str) -> str:
    """What the script prints; it must succeed and write nothing to standard error."""
    done = python("-c", SEEDED, str(seed), scripts.find(name), *arguments, **env)
    assert done.returncode == 0, done.stderr
    assert done.stderr == ""
    return done.stdout


def losses(output: str) -> list[float]:
    return [float(line[5]) for line in LINE.finditer(output)]


def accuracy(output: str) -> float:
    found = re.search(r"^Test accuracy: (0\.\d{4}|1\.0000)", output, re.MULTILINE)
    assert found, output
    return float(found[1])


def test_names() -> None:
    assert scripts.names() == ["bert-base", "cnn", "gpt2-small", "mnist-keras", "resnet50", "rnn"]


@pytest.mark.parametrize("name", scripts.names())
def test_a_name_is_a_file_with_a_description(name: str) -> None:
    assert scripts.find(name).is_file()
    assert scripts.find(name).stem.replace("_", "-") == name
    assert 10 < len(scripts.description(name)) < 100
    assert not scripts.description(name).endswith(".")


def test_descriptions_import_nothing() -> None:
    code = (
        "import sys; from outpace import scripts; [scripts.description(name) for name in scripts.names()];"
        "assert not {'torch', 'keras', 'numpy'} & set(sys.modules)"
    )
    assert python("-c", code).returncode == 0


@pytest.mark.parametrize("name", scripts.names())
def test_scripts_are_short_and_plain(name: str) -> None:
    text = scripts.find(name).read_text()
    assert len(text.splitlines()) <= 80
    ours = {
        f"{node.module}.{alias.name}" if isinstance(node, ast.ImportFrom) else alias.name
        for node in ast.walk(ast.parse(text))
        if isinstance(node, (ast.Import, ast.ImportFrom))
        for alias in node.names
    }
    assert {module for module in ours if module.startswith("outpace")} <= {"outpace", "outpace.data"}


@pytest.mark.parametrize("name", scripts.names())
def test_help(name: str) -> None:
    done = python(scripts.find(name), "--help")
    assert done.returncode == 0, done.stderr
    for option in ("--epochs", "--batch-size", "--lr", "--data"):
        assert option in done.stdout


@pytest.mark.parametrize("name", ["cnn", "rnn", "mnist-keras"])
def test_help_tells_both_defaults(name: str) -> None:
    text = " ".join(python(scripts.find(name), "--help").stdout.split())
    assert re.search(r"default: [\d.]+; on the sample", text)


def test_cnn_learns_within_an_epoch() -> None:
    output = run("cnn", "--epochs", "1", "--batch-size", "10", "--lr", "0.005")
    seen = losses(output)
    assert len(seen) == 4
    assert seen[0] > 2
    assert sum(seen[2:]) / 2 < 1
    assert accuracy(output) > 0.85
    first, second = LINE.findall(output)[:2]
    assert first[:4] == ("1", "0", "4000", "0")
    assert second[:4] == ("1", "1000", "4000", "25")


@pytest.mark.parametrize("name", ["cnn", "rnn"])
def test_same_seed_same_result(name: str) -> None:
    first, second, other = (run(name, "--epochs", "1", seed=seed) for seed in (1, 1, 2))
    assert losses(first) == losses(second) != losses(other)


@pytest.mark.parametrize("name", ["cnn", "rnn", "mnist-keras"])
def test_unknown_data_end_in_our_error(name: str) -> None:
    done = python(scripts.find(name), "--data", "nowhere")
    assert done.returncode == 1
    assert "UsageError: no data at 'nowhere'" in done.stderr.splitlines()[-1]


def test_keras_prints_the_same_lines_as_the_others() -> None:
    output = run("mnist-keras", "--backend", "torch", "--epochs", "1")
    assert [line[:4] for line in LINE.findall(output)] == [
        ("1", "0", "4000", "0"),
        ("1", "3200", "4000", "80"),
    ]
    assert losses(output)[1] < losses(output)[0]


@pytest.mark.parametrize(("asked", "used"), [("jax", "jax"), ("", "tensorflow")])
def test_keras_backend_of_the_environment_or_the_first_installed(asked: str, used: str) -> None:
    env = {"KERAS_BACKEND": asked} if asked else {}
    code = SEEDED + "; import keras; print('used', keras.backend.backend())"
    arguments = ("-c", code, "0", scripts.find("mnist-keras"), "--epochs", "1", "--batch-size", "500")
    done = python(*arguments, **env)
    assert f"used {used}" in done.stdout, done.stderr
    assert done.stderr == ""


def test_keras_backend_as_asked_wins() -> None:
    arguments = (scripts.find("mnist-keras"), "--backend", "jax", "--data", "nowhere")
    done = python("-X", "importtime", *arguments, KERAS_BACKEND="torch")
    imported = {line.rpartition("|")[2].strip() for line in done.stderr.splitlines()}
    assert "jax" in imported
    assert "torch" not in imported


@pytest.mark.parametrize(
    ("name", "missing", "advice"),
    [
        ("bert-base", "transformers", "pip install transformers"),
        ("gpt2-small", "transformers", "pip install transformers"),
        ("resnet50", "torchvision,timm,transformers", "pip install torchvision"),
        ("mnist-keras", "keras", 'pip install "outpace[tensorflow]"'),
        ("mnist-keras", "tensorflow,jax,torch", 'pip install "outpace[tensorflow]"'),
    ],
)
def test_missing_library(name: str, missing: str, advice: str) -> None:
    done = python("-c", WITHOUT, missing, scripts.find(name))
    assert done.returncode == 1
    assert len(done.stderr.splitlines()) == 1
    assert name in done.stderr
    assert advice in done.stderr


def test_missing_backend() -> None:
    done = python("-c", WITHOUT, "jax", scripts.find("mnist-keras"), "--backend", "jax")
    assert done.returncode == 1
    assert done.stderr == 'jax is not installed: pip install keras "outpace[jax]"\n'


@pytest.mark.slow
def test_cnn_reaches_its_accuracy() -> None:
    assert accuracy(run("cnn")) >= 0.96


@pytest.mark.slow
def test_rnn_beats_chance_and_any_model_without_the_order_of_the_rows() -> None:
    output = run("rnn")
    assert accuracy(output) >= 0.78
    assert "(always the more frequent answer: 0.5000)" in output


@pytest.mark.slow
@pytest.mark.parametrize("backend", ["tensorflow", "jax", "torch"])
def test_keras_reaches_its_accuracy(backend: str) -> None:
    assert accuracy(run("mnist-keras", "--backend", backend)) >= 0.95


@pytest.mark.slow
@pytest.mark.parametrize(
    ("name", "small", "parameters"),
    [
        ("resnet50", ("--image-size", "64"), 25_557_032),  # torchvision's documentation
        ("bert-base", ("--sequence-length", "32"), 109_514_298),  # "110M" in the paper; without the pooler
        ("gpt2-small", ("--sequence-length", "32"), 124_439_808),  # with the output tied to the embedding
    ],
)
def test_published_architectures_take_a_step(name: str, small: tuple[str, ...], parameters: int) -> None:
    output = run(name, "--steps", "1", "--batch-size", "1", *small, HF_HUB_OFFLINE="1")
    assert f"{parameters:,} parameters" in output
    assert len(losses(output)) == 1
