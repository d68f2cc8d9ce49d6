"""outpace: train, measure, speed up and predict deep-learning training scripts, unmodified.

In a training loop that no observer can see (plain JAX, NumPy), one line per step tells outpace about it::

    outpace.step(samples=len(batch), loss=loss)
    outpace.log(accuracy=accuracy)

Both do nothing when the script runs without outpace.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from outpace.verbs.compare import compare
    from outpace.verbs.devices import devices
    from outpace.verbs.measure import measure
    from outpace.verbs.predict import predict
    from outpace.verbs.speedup import speedup
    from outpace.verbs.trace import trace
    from outpace.verbs.trace_model import trace_model
    from outpace.verbs.train import train
    from outpace.verbs.watch import watch

__all__ = [
    "__version__",
    "compare",
    "devices",
    "log",
    "measure",
    "predict",
    "speedup",
    "step",
    "trace",
    "trace_model",
    "train",
    "watch",
]
__version__ = "0.1.0.dev0"


def step(*, samples: int | None = None, loss: Any = None) -> None:
    """One training step has ended. From the first call on, only these calls count as steps.

    Args:
        samples: how many samples the step consumed.
        loss: the loss of the step: a number, or a scalar array or tensor of any framework. It is not
            waited for; it is read when it is ready.
    """
    from outpace import watcher

    if watcher.current is not None:
        watcher.current.step(witness="script", samples=samples, loss=loss)
        watcher.current.leave_if_over()


def log(**metrics: Any) -> None:
    """Metrics of the training so far: ``outpace.log(test_accuracy=0.97)``.

    Values are numbers or scalar arrays; the record keeps every value with its step.
    """
    from outpace import watcher

    if watcher.current is not None:
        watcher.current.metrics(metrics)


def __getattr__(name: str) -> Any:
    """The verbs, imported when first used: ``import outpace`` in a training script costs nothing."""
    if name in __all__ and name not in ("__version__", "log", "step"):
        import importlib

        return getattr(importlib.import_module(f"outpace.verbs.{name}"), name)
    raise AttributeError(f"module 'outpace' has no attribute {name!r}")
