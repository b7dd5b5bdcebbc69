"""Alignments: how the label sets of different tasks become one general label space.

`align` builds one by name. Each alignment is a module of that name with a function `align`.
"""

from __future__ import annotations

from collections.abc import Sequence
from importlib import import_module

from core.mrn.alignments.base import Alignment, LabelCounts
from core.mrn.registry import ALIGNMENTS

__all__ = ["Alignment", "LabelCounts", "align", "choose"]


def align(name: str, counts: LabelCounts) -> Alignment:
    """The alignment of that name over these tasks; `auto` chooses one and says why.

    Raises ValueError for a name that is not in the registry.
    """
    if name not in ALIGNMENTS:
        raise ValueError(f"alignment must be one of {', '.join(ALIGNMENTS)}, not {name!r}")
    reason = "chosen in the run's description"
    if name == "auto":
        name, reason = choose(counts.names, counts.labels, bool(counts.shared.any()))
    alignment: Alignment = import_module(f"core.mrn.alignments.{name}").align(counts, reason)
    return alignment


def choose(names: Sequence[str], labels: Sequence[Sequence[str]], tasks_share_words: bool) -> tuple[str, str]:
    """The alignment that `auto` stands for, and the reason in words.

    `exact` where two tasks have a label name other than `O` in common, else `cooccurrence` where tasks are
    annotated on the same words, else `disjoint`.
    """
    for first in range(len(names)):
        for second in range(first + 1, len(names)):
            common = (set(labels[first]) & set(labels[second])) - {"O"}
            if common:
                return "exact", f"{names[first]} and {names[second]} have {len(common)} label names in common"
    if tasks_share_words:
        return "cooccurrence", "the tasks share no label names but are annotated on the same words"
    return "disjoint", "the tasks share neither label names nor annotated words"
