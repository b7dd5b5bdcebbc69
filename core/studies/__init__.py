"""Studies: a sweep plus its analysis, that anyone can launch again. Needs no torch."""

from __future__ import annotations

from importlib import import_module

from core.errors import ConfigError
from core.studies.registry import STUDIES
from core.studies.study import Family, Paper, Setting, Study

__all__ = ["STUDIES", "Family", "Paper", "Setting", "Study", "load_study", "may_change_encoder"]


def may_change_encoder(name: str) -> bool:
    """Whether the registered study of that name can be run over another encoder."""
    return hasattr(import_module(f"core.studies.{name}"), "over")


def load_study(name: str, encoder: str | None = None, encoder_training: str = "full") -> Study:
    """The study of that name, over its own encoders or, where its module has `over`, over another.

    Raises ConfigError for one that is not registered, and where it cannot be run over another encoder.
    """
    if name not in STUDIES:
        raise ConfigError("study", f"There is no study '{name}'; there is {', '.join(STUDIES)}.")
    module = import_module(f"core.studies.{name}")
    if encoder is None and encoder_training == "full":
        study: Study = module.STUDY
    elif hasattr(module, "over"):
        study = module.over(encoder, encoder_training)
    else:
        raise ConfigError("encoder", f"The study '{name}' names its encoders itself; leave --encoder away.")
    return study
