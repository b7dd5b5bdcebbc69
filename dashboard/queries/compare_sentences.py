"""From stored predictions to a test over sentences."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Sequence
from dataclasses import dataclass

from core.evaluation import randomisation_test
from core.evaluation.sentence_counts import Counts, sentence_counts
from dashboard.queries.compare_differences import Tested

__all__ = ["Counted", "counted", "tested"]

Labels = Sequence[Sequence[str]]


@dataclass(frozen=True)
class Counted:
    """A run's counts by sentence on one task, and the mark of the sentences they were counted on."""

    counts: Counts
    sentences: str


def counted(score_name: str, gold: Labels, predicted: Labels) -> Counted:
    """The counts of `sentence_counts`. Sentences are told apart by their annotations."""
    mark = hashlib.blake2b(json.dumps(gold).encode(), digest_size=16).hexdigest()
    return Counted(sentence_counts(score_name, gold, predicted), mark)


def tested(pairs: Sequence[tuple[Counted | None, Counted | None]]) -> Tested:
    """The test over the seeds (pairs) of which both predictions are known; else why there is none."""
    if not pairs:
        return "no common seed"
    known = [(a, b) for a, b in pairs if a is not None and b is not None]
    if not known:
        return "no predictions stored"
    if len({one.sentences for pair in known for one in pair}) > 1:
        return "different sentences"
    return randomisation_test([a.counts for a, _ in known], [b.counts for _, b in known])
