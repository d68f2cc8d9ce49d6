"""Puts the operators of a graph together as a compiler does, and adds equal ones up.

XLA computes neighbouring elementwise operators in one kernel: only what comes from outside of it is read and
only what is used outside of it is written. The rule here is simple on purpose:

- Elementwise operators of one phase that feed each other are one kernel, if no other operator lies on any way
  between them: all of them have the same number of other operators (matrix products, convolutions,
  reductions, loops …) above them on the longest way from the inputs. One whose result is only used further
  down is computed there.
- A reduction joins the kernel of the elementwise operators that feed it, and what reads its result is behind.
- Products, convolutions, gathers, sorts, loops are kernels of their own: their inputs are in memory before,
  their results after. Biases and activations behind them are elementwise kernels, which a library may save.
- Views (reshape, broadcast, transpose, slice) are no kernel: reading one reads the array behind it, once.
- What nobody reads is not computed, and scalars made of scalars are computed where they are used.

See https://openxla.org/xla/hlo_to_thunks and the fusion passes of XLA for what really happens.
"""

from __future__ import annotations

import msgspec

from outpace.records import Operator
from outpace.xla.nodes import Attributes, Node, Value, reads

#: Names in a kernel's name.
NAMED = 4


def operators(nodes: list[Node], results: list[Value], *, fuse: bool = True) -> list[Operator]:
    """What runs when *nodes*, in their order, compute *results*; equal calls added up.

    Args:
        fuse: put elementwise operators together; without, each is a kernel.
    """
    nodes = _alive(nodes, results)
    groups = _groups(nodes) if fuse else [[node] for node in nodes]
    used: dict[Value, set[int]] = {result.root: {-1} for result in results}
    for index, group in enumerate(groups):
        for node in group:
            for value in node.inputs:
                used.setdefault(value.root, set()).add(index)
    found: list[Operator] = []
    for index, group in enumerate(groups):
        if all(node.fusible and _scalar(node) for node in group):
            continue
        if group[0].children is not None:
            found += group[0].children
        elif len(group) == 1 and (not group[0].fusible or group[0].bytes_read is not None):
            found.append(_alone(group[0]))
        else:
            outputs = [output for node in group for output in node.outputs]
            found.append(_kernel(group, [output for output in outputs if used.get(output, set()) - {index}]))
    return merged(found)


def merged(found: list[Operator]) -> list[Operator]:
    """Equal calls as one operator with a count, in the order of their first."""
    counts: dict[bytes, int] = {}
    first: dict[bytes, Operator] = {}
    for operator in found:
        key = msgspec.json.encode(msgspec.structs.replace(operator, count=1))
        counts[key] = counts.get(key, 0) + operator.count
        first.setdefault(key, operator)
    return [msgspec.structs.replace(operator, count=counts[key]) for key, operator in first.items()]


def times(found: list[Operator], count: int, *, guessed: bool = False) -> list[Operator]:
    """The operators of a loop's body, run *count* times."""
    return [
        msgspec.structs.replace(operator, count=operator.count * count, guessed=operator.guessed or guessed)
        for operator in found
    ]


def _alive(nodes: list[Node], results: list[Value]) -> list[Node]:
    """Without those whose results nobody reads."""
    wanted = {result.root for result in results}
    alive = []
    for node in reversed(nodes):
        if node.effect or any(output in wanted for output in node.outputs):
            wanted |= {value.root for value in node.inputs}
            alive.append(node)
    return alive[::-1]


def _scalar(node: Node) -> bool:
    return all(value.size <= 1 for value in node.inputs + node.outputs)


def _groups(nodes: list[Node]) -> list[list[Node]]:
    """The nodes of each kernel."""
    feeds = _feeds(nodes)
    behind = _depths(nodes, feeds)
    leader: dict[Node, Node] = {node: node for node in nodes}

    def lead(node: Node) -> Node:
        while leader[node] is not node:
            leader[node] = leader[leader[node]]
            node = leader[node]
        return node

    for node in nodes:
        if node.fusible or node.absorbs:
            for feed in feeds[node]:
                if feed.fusible and behind[feed] == behind[node] and feed.phase == node.phase:
                    leader[lead(feed)] = lead(node)
    groups: dict[Node, list[Node]] = {}
    for node in nodes:
        groups.setdefault(lead(node), []).append(node)
    return list(groups.values())


def _feeds(nodes: list[Node]) -> dict[Node, list[Node]]:
    """The nodes that make the inputs of each."""
    maker = {output: node for node in nodes for output in node.outputs}
    return {node: [maker[root] for value in node.inputs if (root := value.root) in maker] for node in nodes}


def _depths(nodes: list[Node], feeds: dict[Node, list[Node]]) -> dict[Node, int]:
    """How many other operators lie above each one; what is only used further down counts as being there."""
    behind: dict[Node, int] = {}
    users: dict[Node, list[Node]] = {node: [] for node in nodes}
    for node in nodes:
        behind[node] = max((behind[feed] + (not feed.fusible) for feed in feeds[node]), default=0)
        for feed in feeds[node]:
            users[feed].append(node)
    for node in reversed(nodes):
        fuse = [user for user in users[node] if (user.fusible or user.absorbs) and user.phase == node.phase]
        depths = {behind[user] for user in fuse}
        if node.fusible and len(fuse) == len(users[node]) and len(depths) == 1:
            behind[node] = depths.pop()
    return behind


def _alone(node: Node) -> Operator:
    return Operator(
        kind=node.kind,
        name=node.name,
        phase=node.phase,
        dtype=node.dtype,
        inputs=tuple(value.shape for value in node.inputs if value.shape),
        outputs=tuple(value.shape for value in node.outputs if value.shape),
        flops=node.flops,
        bytes_read=sum(reads(node.inputs).values()) if node.bytes_read is None else node.bytes_read,
        bytes_written=sum(value.bytes for value in node.outputs)
        if node.bytes_written is None
        else node.bytes_written,
        attributes=node.attributes,
        guessed=node.guessed,
    )


def _kernel(group: list[Node], written: list[Value]) -> Operator:
    """Elementwise operators, and reductions fed by them, in one kernel."""
    made = {output for node in group for output in node.outputs}
    read = reads([value for node in group for value in node.inputs if value.root not in made])
    names = list(dict.fromkeys(node.name for node in group))
    largest = max(
        group, key=lambda node: max((value.bytes for value in node.inputs + node.outputs), default=0)
    )
    return Operator(
        kind=_kind(group),
        name="+".join(names[:NAMED]) + ("+…" if len(names) > NAMED else ""),
        phase=group[0].phase,
        dtype=largest.dtype,
        inputs=tuple(value.shape for value in read if value.shape),
        outputs=tuple(value.shape for value in written if value.shape),
        flops=sum(node.flops for node in group),
        bytes_read=sum(read.values()),
        bytes_written=sum(value.bytes for value in written),
        attributes=_attributes(group),
        guessed=any(node.guessed for node in group),
    )


def _attributes(group: list[Node]) -> Attributes:
    return {"fused": len(group)} if len(group) > 1 else group[0].attributes


def _kind(group: list[Node]) -> str:
    """What a kernel of several operators is called: after the dearest thing in it."""
    kinds = {node.kind for node in group}
    for kind in ("random", "softmax", "normalization", "reduction"):
        if kind in kinds:
            return kind
    if group[0].phase == "optimizer":
        return "optimizer"
    return next((kind for kind in ("elementwise", "copy") if kind in kinds), "other")
