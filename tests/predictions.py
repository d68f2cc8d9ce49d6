"""A trace to predict from, made by hand, and strategies for others."""

from __future__ import annotations

from typing import Any

from hypothesis import strategies as st

from outpace.records import Host, Operator, StepMemory, Trace

HOST = Host(name="here", system="Linux", cpu="CPU", cores=2)


def matmul(m: int = 4096, n: int = 4096, k: int = 4096, **changes: Any) -> Operator:
    """A product of matrices in fp32."""
    fields: dict[str, Any] = {
        "kind": "matmul",
        "name": "aten.mm",
        "phase": "forward",
        "dtype": "fp32",
        "inputs": ((m, k), (k, n)),
        "outputs": ((m, n),),
        "flops": 2 * m * n * k,
        "bytes_read": 4 * (m * k + k * n),
        "bytes_written": 4 * m * n,
        "attributes": {"m": m, "n": n, "k": k, "batch": 1},
    }
    return Operator(**{**fields, **changes})


def convolution(batch: int = 32, channels: int = 64, groups: int = 1, **changes: Any) -> Operator:
    """A 3 x 3 convolution of 56 x 56 pixels in fp32."""
    size = 4 * batch * channels * 56 * 56
    fields: dict[str, Any] = {
        "kind": "convolution",
        "name": "aten.convolution",
        "phase": "forward",
        "dtype": "fp32",
        "inputs": ((batch, channels, 56, 56), (channels, channels // groups, 3, 3)),
        "outputs": ((batch, channels, 56, 56),),
        "flops": 2 * batch * 56 * 56 * channels * channels // groups * 9,
        "bytes_read": size,
        "bytes_written": size,
        "attributes": {"stride": (1, 1), "groups": groups, "layout": "contiguous", "tf32": True},
    }
    return Operator(**{**fields, **changes})


def recurrent(phase: str = "forward", **changes: Any) -> Operator:
    """An LSTM over 100 time steps."""
    each = 2 * 64 * 100 * 4 * 256 * (256 + 256)
    fields: dict[str, Any] = {
        "kind": "rnn",
        "name": "outpace.rnn",
        "phase": phase,
        "dtype": "fp32",
        "inputs": ((64, 100, 256),),
        "outputs": ((64, 100, 256),),
        "flops": each * (2 if phase == "backward" else 1),
        "bytes_read": 4 * 64 * 100 * 256,
        "bytes_written": 4 * 64 * 100 * 256,
        "attributes": {
            "cell": "lstm",
            "hidden": 256,
            "layers": 1,
            "length": 100,
            "batch": 64,
            "directions": 1,
        },
    }
    return Operator(**{**fields, **changes})


def light(kind: str = "elementwise", name: str = "aten.add", size: int = 2**24, **changes: Any) -> Operator:
    """An operator that mostly moves data."""
    fields: dict[str, Any] = {
        "kind": kind,
        "name": name,
        "phase": "forward",
        "dtype": "fp32",
        "inputs": ((1024, size // 1024),),
        "outputs": ((1024, size // 1024),),
        "flops": size,
        "bytes_read": 4 * size,
        "bytes_written": 4 * size,
    }
    return Operator(**{**fields, **changes})


def trace(*operators: Operator, **changes: Any) -> Trace:
    """A step of these operators, else of a small network."""
    chosen = operators or (
        matmul(),
        convolution(),
        light(),
        matmul(phase="backward", count=2),
        light(phase="backward", name="aten.threshold_backward"),
        light(phase="optimizer", name="aten.add", size=2**20, count=12),
    )
    fields: dict[str, Any] = {
        "outpace": "0",
        "target": "net",
        "script": "net.py",
        "args": [],
        "framework": "torch",
        "host": HOST,
        "device": "meta",
        "samples": 32,
        "operators": list(chosen),
        "memory": StepMemory(
            parameters_bytes=2**28,
            gradients_bytes=2**28,
            optimizer_state_bytes=2**29,
            activations_bytes=2**31,
        ),
    }
    return Trace(**{**fields, **changes})


operators = st.one_of(
    st.builds(matmul, *(st.integers(1, 8192) for _ in range(3)), count=st.integers(1, 20)),
    st.builds(
        convolution,
        st.integers(1, 64),
        st.sampled_from([32, 64, 128]),
        st.sampled_from([1, 2, 32]),
        count=st.integers(1, 20),
    ),
    st.builds(
        light,
        st.sampled_from(
            ["elementwise", "softmax", "normalization", "copy", "reduction", "other", "embedding"]
        ),
        size=st.integers(2**10, 2**26),
        phase=st.sampled_from(["forward", "backward", "optimizer"]),
        guessed=st.booleans(),
    ),
    st.builds(recurrent, st.sampled_from(["forward", "backward"])),
)
steps = st.lists(operators, min_size=1, max_size=12)
