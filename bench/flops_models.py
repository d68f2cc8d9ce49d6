"""Built-in models traced on shapes alone, and what has been published of their FLOPs."""

from __future__ import annotations

import dataclasses
import os
import subprocess
import sys

from outpace import protocol

HARNESS = """
import sys, runpy, torch
from torch.optim.optimizer import register_optimizer_step_post_hook, register_optimizer_step_pre_hook
from outpace import protocol
from outpace.observe.torch.tracing import Tracer

class Done(BaseException):
    pass

script, fakes = sys.argv[1], sys.argv[2] == "fake"
if fakes:
    from outpace.observe.torch import fake
    fake.install()
phase, steps, original = "forward", 0, torch.autograd.backward
tracer = Tracer(lambda: phase)

def backward(*args, **kwargs):
    global phase
    phase = "backward"
    result = original(*args, **kwargs)
    phase = "forward"
    return result

def enters(*_):
    global phase
    phase = "optimizer"

def leaves(*_):
    global phase, steps
    phase, steps = "forward", steps + 1
    if steps == 1:
        tracer.start()
    elif steps == 2:
        sys.stderr.write("TRACE " + protocol.encode(tracer.stop()).decode() + chr(10))
        raise Done

torch.autograd.backward = backward
register_optimizer_step_pre_hook(enters)
register_optimizer_step_post_hook(leaves)
sys.argv = [script, *sys.argv[3:]]
try:
    runpy.run_path(script, run_name="__main__")
except Done:
    pass
"""


def traced(script: str, *args: str, fakes: bool = True) -> protocol.Traced:
    """The second step of a training script, in a process of its own.

    Args:
        fakes: run it on shapes alone.
    """
    how = "fake" if fakes else "real"
    done = subprocess.run(
        [sys.executable, "-c", HARNESS, script, how, *args],
        capture_output=True,
        text=True,
        check=False,
        env=os.environ | {"PYTHONPATH": os.pathsep.join(sys.path)},
    )
    for line in done.stderr.splitlines():
        if line.startswith("TRACE "):
            event = protocol.decode(line.removeprefix("TRACE "))
            assert isinstance(event, protocol.Traced)
            return event
    raise RuntimeError(done.stderr)


def built_in(name: str, *args: str, fakes: bool = True) -> protocol.Traced:
    """The second step of a built-in script."""
    import outpace.scripts

    return traced(f"{outpace.scripts.__path__[0]}/{name}.py", *args, fakes=fakes)


@dataclasses.dataclass(frozen=True)
class Published:
    """A model whose FLOPs have been published.

    Args:
        flops: of the products and convolutions of one step.
        passes: of which parts of the step.
    """

    name: str
    script: str
    args: tuple[str, ...]
    flops: float
    passes: tuple[str, ...]
    source: str


def bert_forward(
    batch: int, length: int, layers: int = 12, hidden: int = 768, vocabulary: int = 30522
) -> int:
    """Narayanan et al. 2021, appendix: 24 B s l h^2 (1 + s / 6 h); the head 2 B s h V and its h by h."""
    body = 24 * batch * length * layers * hidden**2 + 4 * batch * length**2 * layers * hidden
    return body + 2 * batch * length * hidden * vocabulary + 2 * batch * length * hidden**2


def gpt_step(batch: int, length: int, layers: int = 12, hidden: int = 768) -> int:
    """Chowdhery et al. 2022, appendix B: per token 6 N + 12 L H Q T.

    N of GPT-2 small is 124,439,808 parameters, of which the 1024 x 768 of the positions are only looked up.
    """
    parameters = 124_439_808 - 1024 * 768
    return batch * length * (6 * parameters + 12 * layers * hidden * length)


PUBLISHED = [
    Published(
        "ResNet-50, 224 x 224, forward", "resnet50", ("--batch-size", "8"), 8 * 2 * 4.09e9, ("forward",),
        "torchvision model card: 4.09 GFLOPS, meaning multiply-adds",
    ),
    Published(
        "BERT-base, 128 tokens, forward", "bert_base", ("--batch-size", "2"), bert_forward(2, 128),
        ("forward",), "Narayanan et al. 2021 (arXiv 2104.04473)",
    ),
    Published(
        "BERT-base, 128 tokens, step", "bert_base", ("--batch-size", "2"), 3 * bert_forward(2, 128),
        ("forward", "backward"), "the same, backward twice forward",
    ),
    Published(
        "GPT-2 small, 1024 tokens, step", "gpt2_small", ("--batch-size", "1"), gpt_step(1, 1024),
        ("forward", "backward"), "Chowdhery et al. 2022 (arXiv 2204.02311)",
    ),
]  # fmt: skip


def counted(published: Published) -> int:
    """What outpace counts of the same."""
    kinds = ("matmul", "convolution", "attention", "rnn")
    trace = built_in(published.script, *published.args)
    return sum(
        operator.flops * operator.count
        for operator in trace.operators
        if operator.kind in kinds and operator.phase in published.passes
    )
