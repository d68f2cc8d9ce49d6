"""What went wrong and what to do about it: the only exceptions that reach a user."""

from __future__ import annotations


class OutpaceError(Exception):
    """Something that outpace could not do.

    The command line prints it as ``error: <what>`` and, where there is a way out, ``hint: <hint>``.

    Args:
        what: what happened, one sentence without a full stop.
        hint: what the reader can do about it.
    """

    exit_code = 1

    def __init__(self, what: str, hint: str | None = None) -> None:
        super().__init__(what)
        self.what = what
        self.hint = hint


class UsageError(OutpaceError):
    """The request itself is wrong: an unknown name, a malformed value."""

    exit_code = 2
