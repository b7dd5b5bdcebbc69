"""Corpora made from others, by a name with options: `[KIND:]BASE[?key=value&key=value]`.

A kind is a file here and a line in `registry.py`.
"""

from core.corpora.derived.kind import Kind, Option, Options
from core.corpora.derived.name import Recipe, is_derived, recipe
from core.corpora.derived.registry import KINDS

__all__ = ["KINDS", "Kind", "Option", "Options", "Recipe", "is_derived", "recipe"]
