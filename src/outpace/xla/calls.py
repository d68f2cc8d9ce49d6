"""The jaxpr of a call that has been made, out of the shapes of its arguments."""

from __future__ import annotations

from typing import Any


def abstract(tree: Any) -> Any:
    """*tree* with shapes and types in place of arrays; holding them would hold their memory."""
    import jax

    return jax.tree_util.tree_map(_abstract, tree)


def _abstract(leaf: Any) -> Any:
    import jax

    if not hasattr(leaf, "shape") or not hasattr(leaf, "dtype"):
        return leaf
    kind: Any = jax.ShapeDtypeStruct
    try:
        return kind(leaf.shape, leaf.dtype, weak_type=bool(getattr(leaf, "weak_type", False)))
    except TypeError:  # a JAX whose shapes know nothing of weak types
        return kind(leaf.shape, leaf.dtype)


def jaxpr_of(function: Any, args: Any, kwargs: Any) -> Any:
    """The jaxpr of a call with shapes in place of arrays; all else is as constant as it was in that call.

    What ``jax.jit`` has compiled for these shapes is taken from its memory; other Python runs once more.
    """
    import jax

    leaves, tree = jax.tree_util.tree_flatten((args, kwargs))
    places = [index for index, leaf in enumerate(leaves) if isinstance(leaf, jax.ShapeDtypeStruct)]

    def call(*arrays: Any) -> Any:
        filled = list(leaves)
        for index, array in zip(places, arrays, strict=True):
            filled[index] = array
        positional, named = jax.tree_util.tree_unflatten(tree, filled)
        return function(*positional, **named)

    return jax.make_jaxpr(call)(*[leaves[index] for index in places])


def settings() -> dict[str, str]:
    """Which units compute products of fp32 on cards that have TF32: by default those.

    See https://docs.jax.dev/en/latest/_autosummary/jax.default_matmul_precision.html
    """
    import os

    import jax

    asked = str(getattr(jax.config, "jax_default_matmul_precision", None) or "").lower()
    exact = asked in ("highest", "float32", "f32_f32_f32") or os.environ.get("NVIDIA_TF32_OVERRIDE") == "0"
    precision = "fp32" if exact else "tf32"
    return {"matmul_fp32": precision, "convolution_fp32": precision}
