"""Recurrent networks where they are one operator: oneDNN, cuDNN, MIOpen, MPS.

Elsewhere they come apart into a product per layer and one per time step, which add up to the same. A fused
backward pass computes both gradients of every product, also those that nobody asked for (by the input of the
first layer, by the first hidden state).
"""

from __future__ import annotations

from typing import Any

from outpace import flops
from outpace.observe.torch.formulas import Attributes, Counted, Formula
from outpace.observe.torch.operators_call import Call, shape

#: PyTorch's numbers of the cells, as in cuDNN's ``cudnnRNNMode_t``.
MODES = ("rnn", "rnn", "lstm", "gru")


def _counted(
    *,
    cell: str,
    data: tuple[int, ...],
    batch_sizes: list[int],
    batch_first: bool,
    hidden: int,
    layers: int,
    directions: int,
    times: int,
    projection: int = 0,
) -> Counted:
    """*times*: 1 forward; backward 1 for the gradient by the data, 1 for that by the weights.

    Packed sequences come as (tokens, features) with the number of them that still run at each step.
    """
    if batch_sizes:
        tokens, batch, length = sum(batch_sizes), batch_sizes[0], len(batch_sizes)
    else:
        batch, length = (data[0], data[1]) if batch_first else (data[1], data[0])
        tokens = batch * length
    one = flops.recurrent(cell, 1, tokens, data[-1], hidden, layers, directions, projection)
    attributes: Attributes = {
        "cell": cell,
        "hidden": hidden,
        "layers": layers,
        "length": length,
        "batch": batch,
        "directions": directions,
    }
    if projection:
        attributes["projection"] = projection
    return Counted("rnn", one * times, attributes)


def fused(backward: bool) -> Formula:
    """cuDNN and MIOpen: the whole network in one call."""

    def count(call: Call) -> Counted:
        times = 1
        if backward:
            times += bool(call["output_mask"][3])
        return _counted(
            cell=MODES[call["mode"]],
            data=shape(call["input"]),
            batch_sizes=_numbers(call.get("batch_sizes")),
            batch_first=bool(call["batch_first"]),
            hidden=int(call["hidden_size"]),
            layers=int(call["num_layers"]),
            directions=1 + bool(call["bidirectional"]),
            projection=int(call.get("proj_size") or 0),
            times=times,
        )

    return count


def onednn(backward: bool) -> Formula:
    """oneDNN: a call per layer and direction, time before batch whatever ``batch_first`` says."""

    def count(call: Call) -> Counted:
        return _counted(
            cell=MODES[call["mode"]],
            data=shape(call["input"]),
            batch_sizes=_numbers(call.get("batch_sizes")),
            batch_first=False,
            hidden=int(call["hidden_size"]),
            layers=1,
            directions=1,
            times=1 + backward,
        )

    return count


def whole(cell: str, backward: bool = False) -> Formula:
    """``aten.lstm`` and its like, where a device takes them in one piece, and MPS's own."""
    times = 1 + backward

    def count(call: Call) -> Counted:
        packed = call.get("data") is not None
        data = call["data"] if packed else call["input"]
        recurrent_weight = shape(call["params"][1])  # (gates * hidden, hidden or its projection)
        hidden = recurrent_weight[0] // flops.GATES[cell]
        return _counted(
            cell=cell,
            data=shape(data),
            batch_sizes=_numbers(call["batch_sizes"]) if packed else [],
            batch_first=bool(call.get("batch_first", False)),
            hidden=hidden,
            layers=int(call["num_layers"]),
            directions=1 + bool(call["bidirectional"]),
            projection=recurrent_weight[1] if recurrent_weight[1] != hidden else 0,
            times=times,
        )

    return count


def shapes_only(backward: bool) -> Formula:
    """The whole network in one call over shapes; see `rnn_operator`."""

    def count(call: Call) -> Counted:
        cell, state = str(call["cell"]), shape(call["state"])
        hidden = shape(call["weights"][0])[0] // flops.GATES[cell]
        return _counted(
            cell=cell,
            data=shape(call["data"]) if len(shape(call["data"])) > 2 else (1, *shape(call["data"])),
            batch_sizes=[],
            batch_first=bool(call["batch_first"]),
            hidden=hidden,
            layers=int(call["layers"]),
            directions=1 + bool(call["bidirectional"]),
            projection=state[-1] if state[-1] != hidden else 0,
            times=1 + backward,
        )

    return count


def _numbers(sizes: Any) -> list[int]:
    if sizes is None:
        return []
    if hasattr(sizes, "tolist"):
        sizes = sizes.tolist()  # of packed sequences they always lie on the CPU
    return [int(size) for size in sizes]


FORMULAS: dict[str, Formula] = {
    **dict.fromkeys(("aten._cudnn_rnn", "aten.miopen_rnn"), fused(backward=False)),
    **dict.fromkeys(("aten._cudnn_rnn_backward", "aten.miopen_rnn_backward"), fused(backward=True)),
    "aten.mkldnn_rnn_layer": onednn(backward=False),
    "aten.mkldnn_rnn_layer_backward": onednn(backward=True),
    **dict.fromkeys(("aten.lstm", "aten._lstm_mps"), whole("lstm")),
    "aten.lstm_mps_backward": whole("lstm", backward=True),
    "aten.gru": whole("gru"),
    **dict.fromkeys(("aten.rnn_tanh", "aten.rnn_relu"), whole("rnn")),
    "outpace.rnn": shapes_only(backward=False),
    "outpace.rnn_backward": shapes_only(backward=True),
}
