"""The exceptions that reach a user."""

from __future__ import annotations

from outpace.errors import OutpaceError, UsageError


def test_what_happened_and_what_to_do() -> None:
    error = OutpaceError("the disk is full", "free some space")
    assert str(error) == error.what == "the disk is full"
    assert error.hint == "free some space"
    assert OutpaceError("no way out").hint is None


def test_exit_codes() -> None:
    assert OutpaceError("could not").exit_code == 1
    assert UsageError("wrong usage").exit_code == 2
