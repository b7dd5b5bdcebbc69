"""Remarks on a run that is legal but may surprise: shown before launch and kept with the run."""

from __future__ import annotations

from core.config.kind import trains_heads_alone
from core.config.run_config import RunConfig

__all__ = ["remarks"]


def remarks(config: RunConfig) -> tuple[str, ...]:
    """Sentences for the researcher about what this description implies."""
    sentences = []
    nothing_shared = trains_heads_alone(config)
    if config.paradigm == "mtl" and nothing_shared:
        sentences.append(
            "Over a frozen encoder without a BiLSTM, MTL shares no trained weights. Its heads still differ "
            "from STL's: batches and steps are those of all tasks together, the loss is the mean over tasks."
        )
    if config.paradigm == "mrn" and nothing_shared:
        sentences.append(
            "Over a frozen encoder without a BiLSTM, tasks share only the MRN prior: a difference from MTL "
            "comes from the prior."
        )
    return tuple(sentences)
