"""Attaches the observers to the frameworks of this process, and tells what is known of the process."""

from __future__ import annotations

import functools
import sys
from collections.abc import Callable
from types import ModuleType

import wrapt

from outpace import observe
from outpace.errors import OutpaceError
from outpace.watcher import Watch

#: Libraries whose version belongs in the record, where the script imports them.
VERSIONED = (
    *("numpy", "torch", "torchvision", "tensorflow", "keras", "jax", "jaxlib", "flax", "optax"),
    *("lightning", "pytorch_lightning", "accelerate", "transformers", "timm"),
)


def attach_when_imported(observed: Watch) -> None:
    """Attach each observer when its framework is imported; at once where it is already."""
    for _, observer in observe.all_observers():
        attach = _once(functools.partial(_attach, observer, observed))
        for name in observer.IMPORTS:
            wrapt.register_post_import_hook(attach, name)


def _once(act: Callable[[], None]) -> Callable[[ModuleType], None]:
    """*act*, at the first of several imports."""
    once = functools.cache(act)
    return lambda _module: once()


def _attach(observer: observe.Observer, observed: Watch) -> None:
    try:
        observer.attach(observed)
    except OutpaceError:
        raise
    except Exception as error:  # a framework version that we do not know must not cost the user the training
        name = observer.IMPORTS[0]
        observed.note(f"{name} cannot be observed here ({type(error).__name__}: {error}); the script runs on")


def process_peak() -> tuple[int, str] | None:
    """The peak of this process' memory: (bytes, source)."""
    try:
        import resource
    except ImportError:
        return None
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    return (peak if sys.platform == "darwin" else peak * 1024), "process"


def versions(observed: Watch) -> dict[str, str]:
    """Python and every imported library that decides how fast a training is."""
    found = {"python": ".".join(map(str, sys.version_info[:3]))}
    for name in VERSIONED:
        version = getattr(sys.modules.get(name), "__version__", None)
        if isinstance(version, str):
            found[name] = str(version)
    return found | observed.versions
