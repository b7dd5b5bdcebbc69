"""Alignments: how the label sets of different tasks become one general label space.

`align` builds one as a run names it; `choose` says which one `auto` stands for.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from core.corpora.types import Overlap
from core.mrn.alignments.base import Alignment, LabelCounts, names_in_common
from core.mrn.alignments.mapping import align_mapping
from core.mrn.alignments.rules import align_cooccurrence, align_disjoint, align_exact
from core.registry import parse_alignment

__all__ = ["Alignment", "LabelCounts", "align", "alignment_facts", "choose", "names_in_common"]

_RULES = {"exact": align_exact, "disjoint": align_disjoint, "cooccurrence": align_cooccurrence}

_NAMES_AGREE = 0.5
"""Two tasks that share this much of their labelled words by name are related by name."""
_ACCIDENT = 0.01
"""A smaller fraction of words in common, by name or by annotation, counts as none."""


def align(text: str, counts: LabelCounts, overlaps: Sequence[Overlap] = ()) -> Alignment:
    """The alignment of that name over these tasks; `auto` chooses one by the overlaps of the tasks.

    Raises ConfigError for a name that is not in the registry, or a mapping's file that cannot be used.
    """
    name, file = parse_alignment(text)
    reason = "chosen in the run's description"
    if name == "auto":
        name, reason = choose(overlaps)
    if file:
        return align_mapping(counts, reason, file)
    return _RULES[name](counts, reason)


def alignment_facts(alignment: Alignment, counts: LabelCounts) -> dict[str, Any]:
    """The fields of RunFacts on an alignment of these labels."""
    comparable = alignment.keeps_rows(counts) and counts.shared.any()
    gold = np.round(counts.indicator_correlation(), 4) if comparable else np.zeros((0, 0))
    alone = np.round(alignment.correlation, 4)
    if not np.triu(alone, 1).any():  # labels with rows of their own alone
        alone = np.zeros((0, 0))
    return {
        "alignment": alignment.name,
        "alignment_reason": alignment.reason,
        "label_names": alignment.label_names,
        "label_owners": alignment.label_owners,
        "meet": tuple(map(tuple, alignment.shares_rows.tolist())),
        "impossible": alignment.impossible,
        "cooccurrence": tuple(map(tuple, gold.tolist())),
        "aligned": tuple(map(tuple, alone.tolist())),
    }


def choose(overlaps: Sequence[Overlap]) -> tuple[str, str]:
    """The alignment that `auto` chooses, and its evidence in words.

    `exact` where tasks have label names in common, on at least half of the labelled words wherever the tasks
    are annotated on the same words; else `cooccurrence` where tasks are annotated on the same words; else
    `disjoint`.
    """
    together = [pair for pair in overlaps if pair.words >= _ACCIDENT]
    named = any(pair.names >= _ACCIDENT for pair in overlaps)
    if named and all(pair.names >= min(pair.words, _NAMES_AGREE) for pair in together):
        return "exact", _evidence(overlaps)
    return "cooccurrence" if together else "disjoint", _evidence(overlaps)


def _evidence(overlaps: Sequence[Overlap]) -> str:
    return f"auto chose it for the whole corpus, where {in_common(overlaps)}"


def in_common(overlaps: Sequence[Overlap]) -> str:
    """What tasks have in common: `pos and ner share all of their words and none of their label names`."""
    words, names = [pair.words for pair in overlaps], [pair.names for pair in overlaps]
    pairs = " and ".join(overlaps[0].tasks) if len(overlaps) == 1 else f"the {len(overlaps)} pairs of tasks"
    return f"{pairs} share {_range(words)} of their words and {_range(names)} of their label names"


def _range(shares: Sequence[float]) -> str:
    least, most = _percent(min(shares)), _percent(max(shares))
    whole = {"100%": "all", "0%": "none"}
    return whole.get(least, least) if least == most else f"{least} to {most}"


def _percent(share: float) -> str:
    if 0 < share < 0.001:
        return "under 0.1%"
    return f"{share:.1%}".replace(".0%", "%")
