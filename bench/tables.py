"""The public tables as rows to fit and to judge: a configuration, a card, seconds."""

from __future__ import annotations

import csv
import functools
import gzip
import re
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple

import msgspec

from bench.traces import MEASURED, Wanted
from outpace.cards import load
from outpace.records import Card, Operator

if sys.version_info >= (3, 11):
    import tomllib
else:
    import tomli as tomllib


class Row(NamedTuple):
    """One measured training step."""

    source: str
    """Name of the set, and the harness within it."""
    model: str
    family: str
    card: Card
    precision: str
    wanted: Wanted
    seconds: float
    stack: str
    system: str = ""
    """Host and run, where one machine gave several rows."""
    forward_seconds: float | None = None


@functools.cache
def splits() -> dict[str, Any]:
    """What is left out of which fit."""
    found: dict[str, Any] = tomllib.loads((Path(__file__).parent / "splits.toml").read_text())
    return found


@functools.cache
def _table(name: str) -> list[dict[str, str]]:
    path = MEASURED / name
    content = path.read_bytes()
    text = (gzip.decompress(content) if path.suffix == ".gz" else content).decode()
    return list(csv.DictReader(text.splitlines()))


#: Cards as the tables call them.
NAMES = {
    "AMD Instinct MI210": "mi210",
    "MI210-64GB": "mi210",
    "NVIDIA A100-PCIE-40GB": "a100-pcie-40gb",
    "NVIDIA A100 80GB PCIe": "a100-pcie-80gb",
    "Tesla P100-PCIE-16GB": "p100-pcie-16gb",
    "Tesla P4": "p4",
    "Tesla T4": "t4",
    "Tesla V100-PCIE-32GB": "v100-pcie-32gb",
    "V100-PCIE-32GB": "v100-pcie-32gb",
    "A100-PCIE-40GB": "a100-pcie-40gb",
    "A100-PCIE-80GB": "a100-pcie-80gb",
    "A100-SXM4-40GB": "a100-sxm-40gb",
    "A100-SXM4-80GB": "a100-sxm-80gb",
    "A40-48GB": "a40",
    "GTX 1080 Ti 11GB": "gtx-1080-ti",
    "Quadro RTX 6000 24GB": "quadro-rtx-6000",
    "Quadro RTX 8000 48GB": "quadro-rtx-8000",
    "RTX 2080 Ti 11GB": "rtx-2080-ti",
    "RTX 3070 8GB": "rtx-3070",
    "RTX 3080 10GB": "rtx-3080-10gb",
    "RTX 3090 24GB": "rtx-3090",
    "RTX A4000 16GB": "rtx-a4000",
    "RTX A4500 20GB": "rtx-a4500",
    "RTX A5000 24GB": "rtx-a5000",
    "RTX A5500 24GB": "rtx-a5500",
    "V100-SXM2-16GB": "v100-sxm2-16gb",
    "V100-SXM2-32GB": "v100-sxm2-32gb",
    "V100-SXM3-32GB": "v100-sxm3-32gb",
    "TITAN X Maxwell 12GB": "gtx-titan-x",
    "M40-24GB (memory not stated)": "m40-24gb",
    "TITAN X Pascal 12GB": "titan-x-pascal",
    "P100 (form factor not stated)": "p100-pcie-16gb",
    "V100-SXM2 (DGX-1, memory not stated)": "v100-sxm2-16gb",
    "Radeon Vega Frontier Edition 16GB": "mi25",
    "P100-PCIE (250 W max)": "p100-pcie-16gb",
    "V100-PCIE (250 W max)": "v100-pcie-32gb",
}

#: Laptop cards, which the table of cards does not have: NVIDIA's specification pages of the GeForce RTX
#: laptop GPUs; the power is the middle of the range that makers may choose from.
_LAPTOPS = {
    "RTX 2070 Max-Q 8GB": ("turing", 2019, 12, 36, 2304, 1.185, 384, 85),
    "RTX 2080 Max-Q 8GB": ("turing", 2019, 12, 46, 2944, 1.095, 384, 85),
    "RTX 2080 Super Max-Q 8GB": ("turing", 2020, 12, 48, 3072, 1.155, 352, 85),
    "RTX 3080 Laptop 16GB": ("ampere", 2021, 8, 48, 6144, 1.375, 448, 100),
}


@functools.cache
def card(name: str) -> Card | None:
    """The card that a table means; ``None``: it is not in ours."""
    if name in NAMES:
        return load()[NAMES[name]]
    if name not in _LAPTOPS:
        return None
    architecture, year, process, units, lanes, clock, bandwidth, watts = _LAPTOPS[name]
    single = 2 * lanes * clock * 1e9
    # GeForce tensor cores at half rate with fp32 sums: 4 times the fp32 rate (Turing), 2 times (Ampere)
    matrix = {"fp16": single * (4 if architecture == "turing" else 2)}
    if architecture == "ampere":
        matrix |= {"tf32": single, "bf16": matrix["fp16"]}
    return Card(
        name=name,
        title=name,
        vendor="nvidia",
        architecture=str(architecture),
        year=int(year),
        process_nm=float(process),
        units=int(units),
        vector_cores=int(lanes),
        clock_boost_hertz=clock * 1e9,
        memory_bytes=(16 if "16GB" in name else 8) * 2**30,
        memory_bandwidth_bytes_per_second=bandwidth * 1e9,
        l2_bytes=4 * 2**20,
        matrix_flops_per_second=matrix,
        vector_flops_per_second={"fp32": single, "fp16": 2 * single if architecture == "turing" else single},
        board_power_watts=float(watts),
    )


def transformer_steps() -> list[Row]:
    """fp32 transformers, forward only or forward and backward."""
    found = []
    for row in _table("transformer_steps_fp32.csv"):
        where = card(row["device"])
        assert where is not None
        train = row["mode"] == "train"
        wanted = Wanted(f"hf:{row['model']}", int(row["batch"]), int(row["seqlen"]), "fp32", None, train)
        family = row["model"].partition("_")[0]
        forward = float(row["measured_fw_ms"]) / 1e3 if row["measured_fw_ms"] else None
        found.append(
            Row(
                "transformer_steps",
                row["model"],
                family,
                where,
                "fp32",
                wanted,
                float(row["measured_ms"]) / 1e3,
                "pytorch 2",
                row["device"],
                forward,
            )
        )
    return found


def training(source: str) -> Iterator[dict[str, str]]:
    """Rows of one card with a known batch, of one source."""
    for row in _table("training.csv.gz"):
        if row["source"].startswith(source) and row["n_cards"] == "1" and row["batch_per_card"]:
            yield row


def harness() -> list[Row]:
    """ResNet-50 and BERT of one harness over many cards."""
    asked = splits()["harness"]
    found = []
    for row in training(asked["source"]):
        where = card(row["card"])
        if (
            where is None
            or row["model"] not in asked["models"]
            or row["precision"] not in asked["precisions"]
        ):
            continue
        batch = round(float(row["batch_per_card"]))
        if row["model"].startswith("resnet"):
            wanted = Wanted("resnet:50", batch, 224, row["precision"], "momentum")
        else:
            size = "large" if "large" in row["model"] else "base"
            # NVIDIA's run_squad.py: a fused Adam with mixed precision, else one kernel after the other
            adam = "fused-adamw" if row["precision"] == "fp16-amp" else "adamw"
            wanted = Wanted(f"squad:{size}", batch, 384, row["precision"], adam)
        version = re.search(r"PyTorch (\d+\.\d+)", row["framework"])
        assert version is not None
        found.append(
            Row(
                "harness",
                row["model"],
                row["model"].partition("-")[0],
                where,
                row["precision"],
                wanted,
                batch / float(row["throughput"]),
                f"pytorch {version[1]}",
                row["source"].split("/")[-3],
            )
        )
    return found


def launch_bound() -> list[Row]:
    """Torchvision at batch 12: no optimizer step; half means half weights."""
    asked = splits()["launch_bound"]
    found = []
    for row in training(asked["source"]):
        where = card(row["card"])
        if where is None or row["precision"] not in asked["precisions"]:
            continue
        wanted = Wanted(f"torchvision:{row['model']}", 12, 224, row["precision"], None)
        found.append(
            Row(
                "launch_bound",
                row["model"],
                family_of(row["model"]),
                where,
                row["precision"],
                wanted,
                12 / float(row["throughput"]),
                "pytorch 1.7" if "1.7" in row["framework"] else "pytorch 1.1",
                row["source"].rpartition("/")[2].split("_")[0] + row["framework"],
            )
        )
    return found


def family_of(model: str) -> str:
    """The name up to the first digit or underscore, without the prefixes of the splits."""
    for prefix in splits()["image_models"]["prefixes"]:
        model = model.removeprefix(prefix)
    return re.split(r"[_0-9]", model)[0]


#: Of one family so many are enough; the table has hundreds of copies of the same network with other weights.
MOST_OF_A_FAMILY = 6


def image_models() -> list[Row]:
    """timm on one RTX 3090, both layouts, without copies of the same network."""
    asked = splits()["image_models"]
    found: list[Row] = []
    taken: dict[str, set[str]] = {}
    for row in training(asked["source"]):
        name = row["model"]
        if name.startswith(tuple(asked["prefixes"])) or name.endswith(
            ("_in21k", "_in21ft1k", "_in22k", "_in22ft1k")
        ):
            continue
        family = family_of(name)
        members = taken.setdefault(family, set())
        if name not in members and len(members) >= MOST_OF_A_FAMILY:
            continue
        members.add(name)
        where = card(row["card"])
        assert where is not None
        size = int(row["input"].partition("x")[0])
        wanted = Wanted(f"timm:{name}", round(float(row["batch_per_card"])), size, "fp16-amp", "momentum")
        found.append(
            Row(
                f"image_models {row['layout']}",
                name,
                family,
                where,
                row["precision"],
                wanted,
                wanted.batch / float(row["throughput"]),
                "pytorch 1.12",
                "timm",
            )
        )
    return found


def others() -> list[Row]:
    """NVIDIA's ResNet-type tables, and the sets that stay untouched until the end."""
    found = []
    names = {
        "resnet50-v1.5": "resnet:50",
        "resnext101-32x4d": "timm:resnext101_32x4d",
        "se-resnext101-32x4d": "timm:legacy_seresnext101_32x4d",
        "resnet50": "resnet:50",
        "resnet152": "resnet:152",
        "densenet161": "torchvision:densenet161",
        "vgg16": "torchvision:vgg16",
        "resnet-50": "resnet:50",
        "resnet-101": "resnet:101",
        "resnet-152": "resnet:152",
        "resnet-18": "torchvision:resnet18",
        "resnet-34": "torchvision:resnet34",
        "vgg19": "torchvision:vgg19",
        "mobilenet_v2": "torchvision:mobilenet_v2",
    }
    sources = ["NVIDIA/DeepLearningExamples", *splits()["untouched"]["sources"]]
    for source in sources:
        for row in training(source):
            where = card(row["card"])
            if (
                where is None
                or row["model"] not in names
                or row["precision"] not in ("fp32", "tf32", "fp16-amp", "fp16")
            ):
                continue
            batch = round(float(row["batch_per_card"]))
            precision = "fp16-amp" if row["precision"] == "fp16" else row["precision"]
            wanted = Wanted(names[row["model"]], batch, 224, precision, "momentum")
            found.append(
                Row(
                    source,
                    row["model"],
                    family_of(row["model"]),
                    where,
                    precision,
                    wanted,
                    batch / float(row["throughput"]),
                    row["framework"],
                    row["source"],
                )
            )
    return found


def trace_for(row: Row) -> Any:
    """The trace of a row in its layout, or ``None`` if it has not been made."""
    from bench.traces import cached

    found = cached(row.wanted)
    if found is not None and row.source.endswith("nhwc"):
        return in_channels_last(found)
    return found


def in_channels_last(trace: Any) -> Any:
    """The same step with images stored channels last: the same bytes, other kernels."""
    changed = [
        msgspec.structs.replace(operator, attributes={**operator.attributes, "layout": "channels_last"})
        if operator.kind == "convolution"
        else operator
        for operator in trace.operators
    ]
    return msgspec.structs.replace(trace, operators=changed)


def single_operators(most: int = 120) -> list[tuple[str, Operator, Card, float]]:
    """(device, operator, card, seconds) of the microbenchmarks, evenly picked: at most so many per device
    and kind."""
    kept: dict[tuple[str, str], list[dict[str, str]]] = {}
    path = MEASURED / "ops_fp32.csv.gz"
    with gzip.open(path, "rt") as file:
        for row in csv.DictReader(file):
            if row["source"] == "microbench" and row["fw_ms"]:
                kept.setdefault((row["device"], row["op"]), []).append(row)
    found = []
    for (device, _), rows in kept.items():
        where = card(device)
        assert where is not None
        every = max(len(rows) // most, 1)
        for row in rows[::every]:
            operator = _operator(row)
            if operator is not None:
                found.append((device, operator, where, float(row["fw_ms"]) / 1e3))
    return found


def _operator(row: dict[str, str]) -> Operator | None:
    """A line of the microbenchmarks as the operator that a trace would have."""
    op = row["op"]
    numbers = {
        key: int(float(row[key])) for key in ("B", "M", "N", "K", "H", "Cin", "Cout", "size") if row[key]
    }
    if op in ("linear", "bmm"):
        batch = numbers.get("B", 1) if op == "bmm" else 1
        # bmm is (B, M, N) by (B, N, K); linear has M rows, N in, K out: N is contracted in both
        m, k, n = numbers["M"], numbers["N"], numbers["K"]
        m *= numbers.get("B", 1) if op == "linear" else 1
        return Operator(
            kind="matmul",
            name=op,
            phase="forward",
            dtype="fp32",
            flops=2 * batch * m * n * k,
            bytes_read=4 * batch * (m * k + n * k),
            bytes_written=4 * batch * m * n,
            attributes={"m": m, "n": n, "k": k, "batch": batch},
        )
    if op == "conv":
        batch, inside, outside, size = (numbers[key] for key in ("B", "Cin", "Cout", "size"))
        return Operator(
            kind="convolution",
            name=op,
            phase="forward",
            dtype="fp32",
            inputs=((batch, inside, size, size), (outside, inside, 3, 3)),
            outputs=((batch, outside, size, size),),
            flops=2 * 9 * batch * size * size * inside * outside,
            bytes_read=4 * (batch * inside * size * size + 9 * inside * outside),
            bytes_written=4 * batch * outside * size * size,
            attributes={"stride": (1, 1), "groups": 1, "layout": "contiguous"},
        )
    kinds = {"ln": "normalization", "softmax": "softmax"}
    if op in ("add", "div", "mul", "pow", "addu", "divu", "mulu", "gelu", "relu", "tanh", *kinds):
        elements = numbers["B"] * numbers["H"]
        read = 2 if op in ("add", "div", "mul", "pow") else 1
        return Operator(
            kind=kinds.get(op, "elementwise"),
            name="aten.native_layer_norm" if op == "ln" else op,
            phase="forward",
            dtype="fp32",
            flops=elements,
            bytes_read=4 * elements * read,
            bytes_written=4 * elements,
        )
    return None


def recurrent() -> list[tuple[Operator, Card, float, str]]:
    """(operator, card, seconds, kind of cell) of DeepBench's RNNs in fp32."""
    found = []
    for row in _table("deepbench_ops.csv.gz"):
        if (
            row["op"] not in splits()["recurrent"]["operators"]
            or row["precision"] != "fp32"
            or not row["time_ms"]
        ):
            continue
        where = card(row["card"])
        if where is None:
            continue
        hidden, batch, steps = (int(float(row[key])) for key in ("hidden", "batch", "timesteps"))
        gates = {"lstm": 4, "gru": 3, "rnn": 1}[row["op"]]
        backward = row["phase"].startswith("bwd")
        found.append(
            (
                Operator(
                    kind="rnn",
                    name=row["op"],
                    phase="backward" if backward else "forward",
                    dtype="fp32",
                    flops=2
                    * batch
                    * steps
                    * gates
                    * hidden
                    * hidden,  # as DeepBench counts: the recurrent product
                    bytes_read=4 * (batch * steps * hidden + gates * hidden * hidden),
                    bytes_written=4 * batch * steps * hidden,
                    attributes={
                        "cell": row["op"],
                        "hidden": hidden,
                        "layers": 1,
                        "length": steps,
                        "batch": batch,
                        "gradients": "weight" if row["phase"] == "bwd_weights" else "data",
                    },
                ),
                where,
                float(row["time_ms"]) / 1e3,
                f"{row['op']} {row['phase']}",
            )
        )
    return found


class Powered(NamedTuple):
    """A training whose mean power and time were measured."""

    model: str
    card: Card
    wanted: Wanted
    limit_watts: float
    watts: float
    seconds: float
    """Of the epoch; only ratios of it are used."""


def energy() -> list[Powered]:
    """ResNet-50 and BERT-base on P100 and V100 at several batches and power limits.

    Its ShuffleNet is another network than the published one (it takes several times as long), NCF leaves the
    cards idle, DeepSpeech 2 waits for data.
    """
    found = []
    for row in _table("energy.csv.gz"):
        where = card(row["card"])
        if "summary_power" not in row["source"] or where is None or not row["batch_per_card"]:
            continue
        if row["dataset"] not in ("imagenet", "squad"):  # the lengths of others are not told
            continue
        batch = round(float(row["batch_per_card"]))
        wanted = {
            "resnet50": Wanted("resnet:50", batch, 224, "fp32", "adamw"),
            "bert_base_uncased": Wanted("squad:base", batch, 384, "fp32", "adamw"),
        }.get(row["model"])
        if wanted is not None:
            numbers = (float(row[name]) for name in ("power_limit_W", "avg_power_W", "time_s"))
            found.append(Powered(row["model"], where, wanted, *numbers))
    return found
