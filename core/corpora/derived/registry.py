"""The kinds of derived corpora. A new one is a file beside this one and a line here."""

from __future__ import annotations

from core.corpora.derived.apart import APART
from core.corpora.derived.joined import JOINED
from core.corpora.derived.kind import Kind
from core.corpora.derived.sampled import SAMPLED
from core.corpora.derived.simulated import SIMULATED

__all__ = ["KINDS"]

KINDS: dict[str, Kind] = {kind.name: kind for kind in (SAMPLED, APART, SIMULATED, JOINED)}
"""By name; a name without a kind is a sample."""
