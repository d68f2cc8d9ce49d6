"""Where the fit of the coefficients starts, and how far it may leave without data: (mean, standard
deviation).

Logarithms. Means are what vendors' tuning guides and the first studies of the field say; the standard
deviations are wide where nothing is said. The fit adds the public measurements to these.
"""

from __future__ import annotations

import math
from typing import Any

#: Share of the sustained peak that each kind of kernel reaches, by unit.
ARITHMETIC: dict[str, dict[str, tuple[float, float]]] = {
    "vector": {
        "matmul": (0.0, 0.05),
        "matmul batched": (-0.1, 0.15),
        "convolution 1x1 forward": (-0.1, 0.15),
        "convolution 1x1 data": (-0.15, 0.15),
        "convolution 1x1 weight": (-0.2, 0.15),
        "convolution 3x3 forward": (0.2, 0.2),  # Winograd: up to 2.25 times fewer multiplications
        "convolution 3x3 data": (0.2, 0.2),
        "convolution 3x3 weight": (0.0, 0.2),
        "convolution forward": (-0.1, 0.2),
        "convolution data": (-0.3, 0.2),
        "convolution weight": (-0.2, 0.2),
        "attention": (-0.4, 0.3),
        "rnn forward": (-1.0, 0.5),
        "rnn backward": (-1.0, 0.5),
    },
    "matrix": {
        "matmul": (0.0, 0.05),
        "matmul batched": (-0.3, 0.25),
        "convolution 1x1 forward": (-0.2, 0.2),
        "convolution 1x1 data": (-0.2, 0.2),
        "convolution 1x1 weight": (-0.4, 0.25),
        "convolution 3x3 forward": (-0.2, 0.2),
        "convolution 3x3 data": (-0.3, 0.2),
        "convolution 3x3 weight": (-0.5, 0.25),
        "convolution forward": (-0.5, 0.3),
        "convolution data": (-0.6, 0.3),
        "convolution weight": (-0.8, 0.3),
        "attention": (-0.6, 0.3),
        "rnn forward": (-1.5, 0.5),
        "rnn backward": (-1.5, 0.5),
    },
}
for _unit, _less in (("vector", 0.0), ("matrix", -0.3)):
    ARITHMETIC[_unit]["attention causal"] = (ARITHMETIC[_unit]["attention"][0] + 0.4, 0.3)
    for _kind, _layout, _mean in (
        ("grouped", "", -0.3),
        ("depthwise", "", -1.5),
        ("grouped", " channels-last", -0.6),
        ("grouped", " channels-last untuned", -2.5),
        ("depthwise", " channels-last", -1.5),
    ):
        for _which in ("forward", "data", "weight"):
            ARITHMETIC[_unit][f"convolution {_kind}{_layout} {_which}"] = (_mean + _less, 0.7)

#: Bytes that a kernel moves over those of its tensors.
TRAFFIC: dict[str, tuple[float, float]] = {
    "elementwise": (0.0, 0.05),
    "copy": (0.1, 0.15),
    "transposition": (0.4, 0.3),
    "reduction": (0.1, 0.15),
    "batch norm": (0.45, 0.2),  # two passes over the data
    "layer norm": (0.25, 0.2),
    "softmax": (0.25, 0.2),
    "pooling": (0.2, 0.3),
    "embedding": (0.3, 0.4),
    "random": (0.1, 0.2),
    "optimizer": (0.05, 0.15),
    "sort": (2.0, 1.0),
    "other": (0.5, 0.7),
    "matmul": (0.0, 0.2),
    "matmul batched": (0.0, 0.2),
    "attention": (0.0, 0.3),
    "attention causal": (0.0, 0.3),
    "rnn forward": (0.0, 0.5),
    "rnn backward": (0.0, 0.5),
}
LAYOUT_TRAFFIC = (-0.3, 0.5)

#: Share of the datasheet that cards sustain.
PEAKS: dict[str, tuple[float, float]] = {
    "vector fp32": (math.log(0.88), 0.1),
    "matrix fp16": (math.log(0.9), 0.15),
    "matrix tf32": (math.log(0.9), 0.15),
    "matrix fp32": (math.log(0.8), 0.15),
}
BANDWIDTH = (math.log(0.87), 0.05)
#: How far an architecture differs from the mean, and a card from its architecture.
ARCHITECTURE_SD, CARD_SD = 0.12, 0.08
BANDWIDTH_ARCHITECTURE_SD, BANDWIDTH_CARD_SD = 0.06, 0.04
#: Log FLOPs per clock at which shared memory feeds half of the matrix units: 128 bytes per clock, tiles of
#: 64 x 64.
FEED = (math.log(3000.0), 0.5)
#: Exponent, log watts per 1000 lanes and GHz at 12 nm, exponent of the process.
POWER = {"exponent": (0.6, 0.15), "log watts": (math.log(40.0), 0.3), "process": (1.0, 0.2)}

#: Log seconds of one time step of a recurrent layer besides its arithmetic.
RECURRENT_STEP = (math.log(12e-6), 0.7)

SMOOTHNESS = 3.0
CACHE_BOOST = 1.0
STACK_SD = 0.15

HOST_CLASS_SD = 0.4
#: Log of the time of calls with machines and frameworks of 2018 to 2021 over those of today: an assumption.
OLDER_HOST = 0.7
HOST = {
    "forward_heavy": 25e-6,
    "forward_light": 8e-6,
    "backward_heavy": 25e-6,
    "backward_light": 7e-6,
    "optimizer": 25e-6,
    "compiled": 0.4,
    "graphs": 0.05,
    "smallest_call": 6e-6,  # PyTorch adding to one element: 4 to 9 microseconds by processor
    "kernel_seconds": 2.5e-6,
    "sd": 0.45,
}
ENERGY = {
    "idle": 0.145,  # of P100 and V100 where NCF leaves them idle
    "busy": 0.15,
    "matrix": 0.8,
    "vector": 0.8,
    "memory": 0.4,
    "voltage_floor": 0.8,
    "regulated": 0.97,
    "sd": 0.12,
}
MEMORY: dict[str, Any] = {
    # bytes: contexts as nvidia-smi shows them for a process that has made a tensor
    "context": {"nvidia": 450 * 2**20, "amd": 600 * 2**20, "intel": 400 * 2**20, "apple": 200 * 2**20},
    "workspace": 64 * 2**20,
    "rounding": 0.05,  # blocks of a caching allocator that do not fit together
    "sd": 0.08,
}
LINKS = {"efficiency": 0.75, "latency_seconds": 5e-6, "overlap": 0.85, "sd": 0.35}
