"""Observers are attached when their framework is imported, once, and never at the cost of the training."""

from __future__ import annotations

import sys
import types
from typing import Any

import pytest

from outpace import attaching, observe
from outpace.errors import OutpaceError


class Notebook:
    """Of a watch what is needed here."""

    def __init__(self) -> None:
        self.notes: list[str] = []
        self.versions: dict[str, str] = {}

    def note(self, text: str) -> None:
        self.notes.append(text)


class Observer:
    def __init__(self, *imports: str, fails: Exception | None = None) -> None:
        self.IMPORTS = imports
        self.fails = fails
        self.attached: list[Any] = []

    def attach(self, watch: Any) -> None:
        self.attached.append(watch)
        if self.fails is not None:
            raise self.fails


@pytest.fixture
def library(monkeypatch: pytest.MonkeyPatch, tmp_path: Any) -> str:
    """The name of a module that can be imported, and has not been."""
    name = f"library_{abs(hash(str(tmp_path)))}"
    for one in (name, f"{name}_too"):
        (tmp_path / f"{one}.py").write_text("__version__ = '1.2'\n")
    monkeypatch.syspath_prepend(str(tmp_path))
    return name


def attach(monkeypatch: pytest.MonkeyPatch, observer: Observer) -> Any:
    watch: Any = Notebook()
    monkeypatch.setattr(observe, "all_observers", lambda: iter([("one", observer)]))
    attaching.attach_when_imported(watch)
    return watch


def test_at_the_first_of_several_imports(library: str, monkeypatch: pytest.MonkeyPatch) -> None:
    observer = Observer(library, f"{library}_too")
    watch = attach(monkeypatch, observer)
    assert observer.attached == []
    __import__(library)
    assert observer.attached == [watch]
    __import__(f"{library}_too")
    __import__(library)
    assert observer.attached == [watch]


def test_at_once_where_it_is_imported_already(library: str, monkeypatch: pytest.MonkeyPatch) -> None:
    __import__(library)
    observer = Observer(library)
    watch = attach(monkeypatch, observer)
    assert observer.attached == [watch]


def test_a_framework_that_we_do_not_know_does_not_cost_the_training(
    library: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    watch = attach(monkeypatch, Observer(library, fails=AttributeError("no such hook")))
    __import__(library)
    assert watch.notes == [
        f"{library} cannot be observed here (AttributeError: no such hook); the script runs on"
    ]


def test_a_device_that_is_not_here_is_said(library: str, monkeypatch: pytest.MonkeyPatch) -> None:
    attach(monkeypatch, Observer(library, fails=OutpaceError("torch sees no cuda device")))
    with pytest.raises(OutpaceError, match="sees no cuda device"):
        __import__(library)


def test_versions(monkeypatch: pytest.MonkeyPatch) -> None:
    watch: Any = Notebook()
    watch.versions = {"keras on jax": "3.12"}
    fake = types.ModuleType("timm")
    fake.__version__ = "1.0.9"  # type: ignore[attr-defined]
    monkeypatch.setitem(sys.modules, "timm", fake)
    odd = types.ModuleType("optax")
    odd.__version__ = (1, 2)  # type: ignore[attr-defined]
    monkeypatch.setitem(sys.modules, "optax", odd)
    monkeypatch.delitem(sys.modules, "flax", raising=False)
    found = attaching.versions(watch)
    assert found["python"] == ".".join(map(str, sys.version_info[:3]))
    assert (found["timm"], found["keras on jax"]) == ("1.0.9", "3.12")
    assert "optax" not in found
    assert "flax" not in found


def test_the_peak_of_the_process() -> None:
    found = attaching.process_peak()
    assert found is not None
    before, source = found
    assert source == "process"
    block = bytearray(64 * 2**20)
    block[:: 2**12] = b"x" * len(block[:: 2**12])
    after = attaching.process_peak()
    assert after is not None
    assert after[0] >= before > 2**22
    del block
    again = attaching.process_peak()
    assert again is not None
    assert again[0] >= after[0], "a peak does not fall"


def test_without_the_module_resource_the_peak_is_none(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "resource", None)
    assert attaching.process_peak() is None
