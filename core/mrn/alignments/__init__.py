"""Alignments: how the label sets of different tasks become one general label space.

`align` builds one as a run names it. Each alignment is a module of its name with a function `align`.
"""

from __future__ import annotations

from collections.abc import Sequence
from importlib import import_module

from core.mrn.alignments.base import Alignment, LabelCounts, names_in_common
from core.mrn.registry import parse_alignment

__all__ = ["Alignment", "LabelCounts", "align", "choose", "names_in_common"]


def align(text: str, counts: LabelCounts) -> Alignment:
    """The alignment that a run names so, over these tasks; `auto` chooses one and says why.

    Raises ConfigError for a name that is not in the registry, or a mapping's file that cannot be used.
    """
    name, file = parse_alignment(text)
    reason = "chosen in the run's description"
    if name == "auto":
        name, reason = choose(counts.names, counts.labels, bool(counts.shared.any()))
    build = import_module(f"core.mrn.alignments.{name}").align
    alignment: Alignment = build(counts, reason, file) if file else build(counts, reason)
    return alignment


def choose(names: Sequence[str], labels: Sequence[Sequence[str]], tasks_share_words: bool) -> tuple[str, str]:
    """The alignment that `auto` stands for, and the reason in words.

    `exact` where two tasks have a label name other than `O` in common, else `cooccurrence` where tasks are
    annotated on the same words, else `disjoint`.
    """
    for first in range(len(names)):
        for second in range(first + 1, len(names)):
            if common := names_in_common(labels[first], labels[second]):
                return "exact", f"{names[first]} and {names[second]} have {len(common)} label names in common"
    if tasks_share_words:
        return "cooccurrence", "the tasks share no label names but are annotated on the same words"
    return "disjoint", "the tasks share neither label names nor annotated words"
