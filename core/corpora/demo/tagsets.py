"""A second POS tag set for demo-pos-b, as one treebank's differs from another's.

Most tags are the same. Some are merged (VBP into VB, NNPS into NNP, quotation marks into one), IN is split
(SUB for those that open a clause), and forms of 'be' have tags of their own.
"""

from __future__ import annotations

from collections.abc import Sequence

__all__ = ["other_tags"]

_OTHER = {
    "VBP": "VB",
    "NNPS": "NNP",
    "``": "QUOTE",
    "''": "QUOTE",
    "WDT": "WH",
    "WP": "WH",
    "WRB": "WH",
    "PRP$": "POSS",
    "WP$": "POSS",
    "TO": "PART",
}
_BE = {"is": "BEZ", "are": "BE", "was": "BED", "were": "BED", "be": "BE", "been": "BEN"}


def other_tags(tokens: Sequence[str], tags: Sequence[str], chunks: Sequence[str]) -> tuple[str, ...]:
    """The tags of demo-pos-b for a sentence with the demo's tags and chunks."""
    result = []
    for token, tag, chunk in zip(tokens, tags, chunks, strict=True):
        if tag.startswith("VB") and token.lower() in _BE:
            result.append(_BE[token.lower()])
        elif tag == "IN" and chunk == "B-SBAR":
            result.append("SUB")
        else:
            result.append(_OTHER.get(tag, tag))
    return tuple(result)
