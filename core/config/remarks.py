"""What is true of a run before it starts, legal but surprising: said before launch and kept with the run."""

from __future__ import annotations

from core.config.kind import trains_heads_alone
from core.config.run_config import RunConfig

__all__ = ["remarks"]


def remarks(config: RunConfig) -> tuple[str, ...]:
    """Sentences for the researcher about what this description implies."""
    said = []
    nothing_shared = trains_heads_alone(config)
    if config.paradigm == "mtl" and nothing_shared:
        said.append(
            "Over a frozen encoder without a BiLSTM, MTL shares nothing that is trained: each head learns "
            "exactly what it would learn in STL. Only the choice of the best epoch can differ."
        )
    if config.paradigm == "mrn" and nothing_shared:
        said.append(
            "Over a frozen encoder without a BiLSTM, tasks share nothing but the MRN prior: what differs "
            "from MTL is the prior's doing."
        )
    return tuple(said)
