"""Accelerator cards: a sourced table of datasheet facts, look-up by name, driver names, prices."""

from __future__ import annotations

from outpace.cards.drivers import Slice, match, parent_of_slice
from outpace.cards.lookup import find
from outpace.cards.table import load, select

__all__ = ["Slice", "find", "load", "match", "parent_of_slice", "select"]
