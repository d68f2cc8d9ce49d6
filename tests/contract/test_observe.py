"""Every observer keeps the contract of the folder."""

from __future__ import annotations

import importlib.util

import pytest

from outpace import observe
from outpace.records import Device


@pytest.mark.parametrize("name", observe.names())
def test_observer(name: str) -> None:
    observer = observe.load(name)
    assert observer.IMPORTS
    assert all(isinstance(module, str) for module in observer.IMPORTS)
    missing = observer.why_not()
    assert missing is None or "pip install" in missing
    assert callable(observer.attach)
    assert callable(observer.devices)
    assert observer.__doc__


@pytest.mark.parametrize("name", observe.names())
def test_why_not_without_the_framework(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(importlib.util, "find_spec", lambda _name, _package=None: None)
    reason = observe.load(name).why_not()
    assert reason is not None
    assert 'pip install "outpace[' in reason


@pytest.mark.parametrize("name", observe.names())
def test_devices_are_named_in_a_process_of_their_own(name: str) -> None:
    from outpace.verbs.devices import _ask

    answer = _ask(name)
    assert answer.framework == name
    if answer.why_not is None:
        assert all(isinstance(device, Device) for device in answer.devices)
        assert answer.devices, "at least the CPU"
        assert len({device.id for device in answer.devices}) == len(answer.devices)
        assert all(device.framework and device.name for device in answer.devices)
