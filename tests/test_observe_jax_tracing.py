"""Functions of JAX under the proxy behave as without; the operators of the calls of a step are kept."""

from __future__ import annotations

import copy
import functools
import inspect
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from outpace import flops
from outpace.observe.jax import calls, tracing
from outpace.observe.jax.tracing import Tracer
from outpace.protocol import Traced
from outpace.records.trace import KINDS
from outpace.xla import calls as xla_calls

EXAMPLES = Path(__file__).parent / "examples"


@pytest.fixture
def tracer(monkeypatch: pytest.MonkeyPatch) -> Iterator[Tracer]:
    for name in calls.MAKERS:  # put back afterwards what the tracer replaces
        monkeypatch.setattr(jax, name, getattr(jax, name))
    tracer = Tracer()
    tracer.install()
    yield tracer
    calls.listener = None


def traced(tracer: Tracer) -> Traced:
    found = tracer.stop()
    assert found is not None
    return found


def products(found: Traced, phase: str | None = None) -> int:
    return sum(o.flops * o.count for o in found.operators if o.kind == "matmul" and phase in (None, o.phase))


def test_a_step_in_one_function(tracer: Tracer) -> None:
    ran = []

    @jax.jit
    def step(w: Any, x: Any) -> Any:
        ran.append(1)
        loss, slope = jax.value_and_grad(lambda w: jnp.mean((x @ w) ** 2))(w)
        return w - 0.1 * slope, loss

    w, x = jnp.ones((4, 2)), np.ones((8, 4), "float32")
    w, _ = step(w, x)
    tracer.start()
    w, _ = step(w, x)
    found = traced(tracer)
    assert ran == [1], "the script's Python ran again"
    assert found.notes == []
    assert (found.framework, found.device) == ("jax", "cpu")
    assert products(found) == 2 * flops.matmul(8, 2, 4)
    assert {operator.phase for operator in found.operators} == {"forward", "backward", "optimizer"}
    step(w, x)
    assert products(found) == 2 * flops.matmul(8, 2, 4)


def test_gradients_and_update_in_functions_of_their_own(tracer: Tracer) -> None:
    slopes = jax.jit(jax.grad(lambda w, x: ((x @ w) ** 2).mean()))
    update = jax.jit(lambda w, slope: w - 0.1 * slope, donate_argnums=0)
    w, x = jnp.ones((4, 2)), jnp.ones((8, 4))
    tracer.start()
    for _ in range(3):
        w = update(w, slopes(w, x))
    found = traced(tracer)
    assert products(found, "backward") == 3 * flops.matmul(8, 2, 4)
    (last,) = (operator for operator in found.operators if operator.phase == "optimizer")
    assert (last.kind, last.count) == ("optimizer", 3)


def test_a_gradient_that_is_not_compiled(tracer: Tracer) -> None:
    loss = jax.jit(lambda w, x: ((x @ w) ** 2).mean())
    tracer.start()
    jax.value_and_grad(loss)(jnp.ones((4, 2)), jnp.ones((8, 4)))
    assert products(traced(tracer)) == 2 * flops.matmul(8, 2, 4)


def test_a_function_over_a_batch(tracer: Tracer) -> None:
    tracer.start()
    jax.vmap(jax.jit(lambda x: x @ x))(jnp.ones((5, 3, 3)))
    assert products(traced(tracer)) == flops.matmul(3, 3, 3, batch=5)


def test_only_what_is_called_in_the_step(tracer: Tracer) -> None:
    square = jax.jit(lambda x: x @ x)
    square(jnp.ones((4, 4)))
    tracer.start()
    jax.jit(lambda x: square(square(x)))(jnp.ones((4, 4)))
    found = traced(tracer)
    assert products(found) == 2 * flops.matmul(4, 4, 4)
    assert "no gradient was computed" in found.notes[0]
    square(jnp.ones((4, 4)))
    tracer.start()
    (jnp.ones(3) * 2).block_until_ready()
    found = traced(tracer)
    assert found.operators == []
    assert found.notes == [tracing.NOTHING]


def test_static_arguments_and_donation(tracer: Tracer) -> None:
    @functools.partial(jax.jit, static_argnums=1, static_argnames="kind", donate_argnums=0)
    def power(x: Any, n: int, kind: str = "sin") -> Any:
        for _ in range(n):
            x = getattr(jnp, kind)(x @ x)
        return x

    x = jnp.ones((4, 4))
    tracer.start()
    power(x, 3, kind="cos")
    assert products(traced(tracer)) == 3 * flops.matmul(4, 4, 4)
    assert x.is_deleted()
    with pytest.raises(RuntimeError, match="deleted"):
        power(x, 3)


def test_methods_and_decorators(tracer: Tracer) -> None:
    class Model:
        @functools.partial(jax.jit, static_argnums=0)
        def __call__(self, x: Any) -> Any:
            return x @ x

        @staticmethod
        @jax.jit
        def plain(x: Any) -> Any:
            return x

    model = Model()
    tracer.start()
    model(jnp.ones((4, 4)))
    assert products(traced(tracer)) == flops.matmul(4, 4, 4)
    assert model.__call__.lower(model, jnp.ones((4, 4))).as_text()


@pytest.mark.skipif(jax.__version_info__ < (0, 8, 1), reason="newer")
def test_the_decorator_with_arguments(tracer: Tracer) -> None:
    @jax.jit(static_argnums=1)
    def scaled(x: Any, n: int) -> Any:
        return n * (x @ x)

    tracer.start()
    assert float(scaled(jnp.ones((2, 2)), 3)[0, 0]) == 6
    assert products(traced(tracer)) == flops.matmul(2, 2, 2)


@pytest.mark.usefixtures("tracer")
def test_the_proxy_is_what_it_stands_for() -> None:
    def double(x: Any) -> Any:
        "Twice."
        return 2 * x

    doubled: Any = jax.jit(double)
    named: Any = doubled
    assert isinstance(doubled, jax.stages.Wrapped)
    assert (named.__name__, named.__doc__) == ("double", "Twice.")
    assert list(inspect.signature(doubled).parameters) == ["x"]
    assert doubled.lower(1.0).compile()(1.0) == 2.0
    assert doubled.trace(1.0).jaxpr.jaxpr.eqns[0].primitive.name == "mul"
    assert jax.eval_shape(doubled, jnp.ones(3)).shape == (3,)
    assert copy.copy(doubled)(2) == copy.deepcopy(doubled)(2) == 4
    assert len({doubled: 1, jax.jit(doubled): 2}) == 2
    assert jax.grad(doubled)(1.0) == 2.0
    assert jax.lax.scan(lambda c, x: (doubled(c), x), 1.0, None, length=3)[0] == 8.0
    assert named._cache_size() >= 1
    assert jax.grad(fun=doubled)(1.0) == 2.0
    with pytest.raises(TypeError):
        jax.jit(3)  # type: ignore[call-overload]


@pytest.mark.usefixtures("tracer")
def test_what_is_compiled_once_stays_so() -> None:
    ran = []

    def function(x: Any) -> Any:
        ran.append(1)
        return x + 1

    for _ in range(3):
        jax.jit(function)(jnp.ones(3))
    assert ran == [1]


def test_errors_of_the_script_stay_its_own(tracer: Tracer) -> None:
    tracer.start()
    with pytest.raises(TypeError, match="dot_general"):
        jax.jit(lambda x, y: x @ y)(jnp.ones((2, 3)), jnp.ones((2, 3)))
    assert traced(tracer).notes == [tracing.NOTHING]


def test_errors_of_ours_become_notes(tracer: Tracer, monkeypatch: pytest.MonkeyPatch) -> None:
    def broken(*_args: Any) -> None:
        raise ValueError("strange\nindeed")

    monkeypatch.setattr(tracing, "walk", broken)
    tracer.start()

    def step(x: Any) -> Any:
        return 2 * x

    assert jax.jit(step)(1.0) == 2.0
    found = traced(tracer)
    assert found.operators == []
    assert found.notes == ["the operators of step are not known (ValueError: strange)"]


def test_steps_of_another_framework_are_not_ours() -> None:
    tracer = Tracer(lambda: False)
    tracer.start()
    assert tracer.stop() is None


def test_settings(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("NVIDIA_TF32_OVERRIDE", raising=False)
    assert xla_calls.settings()["matmul_fp32"] == "tf32"
    with jax.default_matmul_precision("highest"):
        assert xla_calls.settings() == {"matmul_fp32": "fp32", "convolution_fp32": "fp32"}
    monkeypatch.setenv("NVIDIA_TF32_OVERRIDE", "0")
    assert xla_calls.settings()["matmul_fp32"] == "fp32"


@pytest.mark.slow
@pytest.mark.parametrize("script", ["jax_loop.py", "jax_stateless.py"])
def test_examples_train_the_same_under_the_proxy(script: str) -> None:
    code = (
        "import runpy, sys; from outpace.observe.jax.tracing import Tracer\n"
        "tracer = Tracer(); tracer.install(); tracer.start()\n"
        "names = runpy.run_path(sys.argv[1]); found = tracer.stop()\n"
        "print('KINDS', *sorted({o.kind for o in found.operators}), *found.notes)"
    )
    run = functools.partial(subprocess.run, capture_output=True, text=True, check=True)
    import os

    env = os.environ | {"KERAS_BACKEND": "jax"}
    alone = run([sys.executable, str(EXAMPLES / script)], env=env).stdout
    ours = run([sys.executable, "-c", code, str(EXAMPLES / script)], env=env).stdout
    *told, kinds = ours.splitlines()
    assert told == alone.splitlines()
    assert kinds.split()[0] == "KINDS"
    assert {"matmul", "optimizer", "reduction"} <= set(kinds.split()) <= {"KINDS", *KINDS}
