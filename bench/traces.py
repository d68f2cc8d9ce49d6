"""Traces of the models in the public tables, kept in ``bench/.cache`` since they take minutes to make.

    python -m bench.traces SET          # transformer_steps, harness, launch_bound, image_models, others

Needs PyTorch and transformers; ``launch_bound`` also torchvision, ``image_models`` also timm
(``pip install torchvision timm`` in an environment of its own; only their model definitions are used).
"""

from __future__ import annotations

import functools
import hashlib
import sys
import time
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import msgspec

from outpace.records import Trace

CACHE = Path(__file__).parent / ".cache"
MEASURED = Path(__file__).parent.parent.parent / "shared" / "measured"


class Wanted(NamedTuple):
    """One configuration; equal ones are traced once."""

    model: str
    batch: int
    size: int
    """Pixels of a side, or tokens of a sequence."""
    precision: str
    optimizer: str | None = None
    train: bool = True
    layout: str = "channels-first"

    @property
    def path(self) -> Path:
        """Where its trace is kept."""
        digest = hashlib.sha256(repr(tuple(self)).encode()).hexdigest()[:20]
        return CACHE / f"{self.model.replace('/', '_')}-{digest}.msgpack"


def cached(wanted: Wanted) -> Trace | None:
    """The trace, if it has been made."""
    try:
        return msgspec.msgpack.decode(wanted.path.read_bytes(), type=Trace)
    except (OSError, msgspec.MsgspecError):
        return None


def make(wanted: Wanted) -> Trace:
    """The trace, made now and kept."""
    import torch

    from outpace.verbs.trace_model import trace_model

    with torch.device("meta"):
        model, inputs, loss = _model(wanted)
    found = trace_model(
        model,
        inputs,
        loss=loss if wanted.train else None,
        optimizer=_optimizer(wanted.optimizer),
        precision=wanted.precision,
        layout=wanted.layout,
        train=wanted.train,
    )
    CACHE.mkdir(exist_ok=True)
    wanted.path.write_bytes(msgspec.msgpack.encode(found))
    return found


def _optimizer(name: str | None) -> Any:
    import torch

    if name == "fused-adamw":
        return lambda parameters: torch.optim.AdamW(parameters, fused=True)
    return name


def _model(wanted: Wanted) -> tuple[Any, Any, Callable[[Any], Any]]:
    import torch
    from torch.nn.functional import cross_entropy

    source, _, name = wanted.model.partition(":")
    batch, size = wanted.batch, wanted.size
    if source in ("hf", "squad"):
        return _transformer(source, name, batch, size)
    images = torch.empty(batch, 3, size, size)

    def loss(output: Any) -> Any:
        first = getattr(output, "logits", output)
        first = first[0] if isinstance(first, (list, tuple)) else first
        return cross_entropy(first, torch.zeros(batch, dtype=torch.long))

    if source == "resnet":
        return _resnet(name), [images], loss
    if source == "torchvision":
        return _torchvision(name), [images], loss
    import timm

    timm.layers.set_fused_attn(enable=False)  # the table is of 2022: attention by products
    return timm.create_model(name, pretrained=False), [images], loss


def _transformer(source: str, name: str, batch: int, size: int) -> tuple[Any, Any, Callable[[Any], Any]]:
    import csv

    import torch
    import transformers as hugging_face

    transformers: Any = hugging_face  # its configurations take more than their types say
    tokens = torch.zeros(batch, size, dtype=torch.long)
    if source == "squad":
        large = {
            "hidden_size": 1024,
            "num_hidden_layers": 24,
            "num_attention_heads": 16,
            "intermediate_size": 4096,
        }
        config = transformers.BertConfig(attn_implementation="eager", **(large if "large" in name else {}))
        labels = torch.zeros(batch, dtype=torch.long)
        inputs = {"input_ids": tokens, "start_positions": labels, "end_positions": labels}
        return transformers.BertForQuestionAnswering(config), inputs, lambda output: output.loss
    with (MEASURED / "transformer_models.csv").open() as file:
        row = next(one for one in csv.DictReader(file) if one["model"] == name)
    layers, hidden, heads, ffn, vocab = (
        int(row[key]) for key in ("layers", "hidden", "heads", "ffn", "vocab")
    )
    longest = int(float(row["max_pos"] or 512))
    common: dict[str, Any] = {"vocab_size": vocab, "attn_implementation": "eager", "use_cache": False}
    if row["arch"] == "GPT2LMHeadModel":
        config = transformers.GPT2Config(
            n_layer=layers, n_embd=hidden, n_head=heads, n_inner=ffn, n_positions=longest, **common
        )
    elif row["arch"] == "OPTForCausalLM":
        config = transformers.OPTConfig(
            num_hidden_layers=layers,
            hidden_size=hidden,
            num_attention_heads=heads,
            ffn_dim=ffn,
            max_position_embeddings=longest,
            word_embed_proj_dim=hidden,
            **common,
        )
    else:
        config = transformers.BertConfig(
            num_hidden_layers=layers,
            hidden_size=hidden,
            num_attention_heads=heads,
            intermediate_size=ffn,
            max_position_embeddings=longest,
            is_decoder=True,
            **common,
        )
    model = getattr(transformers, row["arch"])(config)
    return model, {"input_ids": tokens}, lambda output: output.logits.mean()


def _resnet(name: str) -> Any:
    import transformers as hugging_face

    transformers: Any = hugging_face
    depths = {"50": [3, 4, 6, 3], "101": [3, 4, 23, 3], "152": [3, 8, 36, 3]}[name]
    return transformers.ResNetForImageClassification(
        transformers.ResNetConfig(num_labels=1000, depths=depths)
    )


@functools.cache
def _torchvision_module() -> Any:
    import torch

    # a torchvision built for another PyTorch has no compiled operators; model definitions need none
    library = torch.library.Library("torchvision", "DEF")
    for name in ("nms", "qnms"):
        library.define(f"{name}(Tensor dets, Tensor scores, float iou_threshold) -> Tensor")
    import torchvision

    return library, torchvision


def _torchvision(name: str) -> Any:
    import torch

    _, torchvision = _torchvision_module()
    more = {"init_weights": False} if name.startswith(("googlenet", "inception")) else {}
    model = getattr(torchvision.models, name)(weights=None, **more)
    assert isinstance(model, torch.nn.Module)
    return model


def sets(name: str) -> Iterator[Wanted]:
    """The configurations of one set of the tables."""
    from bench import tables

    makers: dict[str, Callable[[], Sequence[tables.Row | tables.Powered]]] = {
        "transformer_steps": tables.transformer_steps,
        "harness": tables.harness,
        "launch_bound": tables.launch_bound,
        "image_models": tables.image_models,
        "others": tables.others,
        "energy": tables.energy,
    }
    rows = makers[name]()
    yield from dict.fromkeys(row.wanted for row in rows)


def main() -> None:
    """Make what is missing of one set, for at most so many seconds."""
    name, seconds = sys.argv[1], float(sys.argv[2]) if len(sys.argv) > 2 else 240.0
    if name in ("image_models", "launch_bound", "others", "energy"):
        _torchvision_module()
    began, made, left = time.monotonic(), 0, 0
    for wanted in sets(name):
        if wanted.path.exists():
            continue
        if time.monotonic() - began > seconds:
            left += 1
            continue
        try:
            make(wanted)
            made += 1
        except Exception as error:
            print(f"{wanted}: {type(error).__name__}: {str(error)[:200]}")
            wanted.path.parent.mkdir(exist_ok=True)
            wanted.path.write_bytes(b"")  # not tried again
    print(f"{name}: {made} made, {left} left, {time.monotonic() - began:.0f} s")


if __name__ == "__main__":
    main()
