"""Corpora made from others, by a name with options: `[KIND:]BASE[?key=value&key=value]`.

A kind is a file here and a line in `registry.py`.
"""

from core.corpora.derived.kinds import Kind, Option, Options
from core.corpora.derived.names import KINDS, Recipe, is_derived, recipe

__all__ = ["KINDS", "Kind", "Option", "Options", "Recipe", "is_derived", "recipe"]
