"""Studies: a sweep plus its analysis, that anyone can launch again. Needs no torch."""

from __future__ import annotations

from core.errors import ConfigError
from core.registry import FULL
from core.studies import (
    balancing,
    dissertation,
    new_task,
    priors,
    rare_labels,
    regimes,
    sc_lstm,
    simulator,
    task_embeddings,
    tea,
    transfer,
)
from core.studies.study import Method, Paper, Setting, Study

__all__ = ["STUDIES", "Method", "Paper", "Setting", "Study", "load_study"]

STUDIES: dict[str, Study] = {
    "priors": priors.STUDY,
    "regimes": regimes.STUDY,
    "rare-labels": rare_labels.STUDY,
    "new-task": new_task.STUDY,
    "dissertation": dissertation.STUDY,
    "sc-lstm": sc_lstm.STUDY,
    "transfer": transfer.STUDY,
    "simulator": simulator.STUDY,
    "tea": tea.STUDY,
    "task-embeddings": task_embeddings.STUDY,
    "balancing": balancing.STUDY,
}
"""The studies by name. A new one is a file and a line here."""


def load_study(name: str, encoder: str | None = None, encoder_training: str = FULL) -> Study:
    """The study of that name, over its own encoders or, where it has `for_encoder`, over another.

    Raises ConfigError for one that is not registered, and where it cannot be run over another encoder.
    """
    if name not in STUDIES:
        raise ConfigError("study", f"There is no study '{name}'; there is {', '.join(STUDIES)}.")
    if encoder is None and encoder_training == FULL:
        return STUDIES[name]
    if (for_encoder := STUDIES[name].for_encoder) is None:
        raise ConfigError("encoder", f"The study '{name}' names its encoders itself; leave out --encoder.")
    return for_encoder(encoder, encoder_training)
