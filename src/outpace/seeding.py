"""Seeds Python, NumPy and the frameworks; other seeds than the script's own, where spread is to be seen."""

from __future__ import annotations

import random
from collections.abc import Callable
from types import ModuleType
from typing import Any

import wrapt

from outpace.patch import around


def when_imported(seed: int | None, *, shift: bool = False) -> None:
    """Seed each library when it is imported.

    Args:
        seed: ``None``: nothing is seeded.
        shift: add *seed* to the seeds that the script sets itself, too; otherwise those win.
    """
    if seed is None:
        return
    random.seed(seed)

    def numpy(module: ModuleType) -> None:
        module.random.seed(seed % 2**32)
        shifted(module.random, "seed", "default_rng")

    def torch(module: ModuleType) -> None:
        module.manual_seed(seed)
        shifted(module, "manual_seed")

    def tensorflow(module: ModuleType) -> None:
        module.random.set_seed(seed)
        shifted(module.random, "set_seed")

    def jax(module: ModuleType) -> None:
        shifted(module.random, "key", "PRNGKey")

    def keras(_module: ModuleType) -> None:
        random.seed(seed)  # what Keras draws its seeds from; importing it may have used some up

    def shifted(owner: Any, *names: str) -> None:
        if shift and seed:
            for name in names:
                around(owner, name, _adding(seed))

    shifted(random, "seed")
    for hook in (numpy, torch, tensorflow, jax, keras):
        wrapt.register_post_import_hook(hook, hook.__name__)


def _adding(shift: int) -> Callable[..., Any]:
    def call(original: Callable[..., Any], *args: Any, **kwargs: Any) -> Any:
        if args and type(args[0]) is int:
            args = ((args[0] + shift) % 2**32, *args[1:])
        if type(kwargs.get("seed")) is int:
            kwargs["seed"] = (kwargs["seed"] + shift) % 2**32
        return original(*args, **kwargs)

    return call
