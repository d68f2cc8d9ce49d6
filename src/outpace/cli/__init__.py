"""The command line: reads arguments, prints, sets exit codes. Nothing else does."""

from __future__ import annotations

import os
import sys

from outpace.cli import facts, predicting, speeding, training
from outpace.cli.app import app, complain
from outpace.errors import OutpaceError

__all__ = ["app", "complain", "facts", "main", "predicting", "speeding", "training"]


def main() -> None:
    """Run the command line; every error that is ours ends as ``error:`` and ``hint:`` with its exit code."""
    try:
        try:
            app()
        finally:
            sys.stdout.flush()
    except OutpaceError as error:
        complain(error.what, error.hint)
        sys.exit(error.exit_code)
    except OSError as error:  # our own output: a closed pipe, a full disk
        _give_up_standard_output()
        if not isinstance(error, BrokenPipeError):
            complain(f"could not write the output: {error.strerror or error}", None)
        sys.exit(1)
    except KeyboardInterrupt:
        sys.exit(130)


def _give_up_standard_output() -> None:
    """Keep Python from trying again, and complaining, at its exit."""
    os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
