"""Studies: a sweep plus its analysis, that anyone can launch again. Needs no torch."""

from __future__ import annotations

from importlib import import_module

from core.errors import ConfigError
from core.studies.registry import STUDIES
from core.studies.study import Family, Setting, Study

__all__ = ["STUDIES", "Family", "Setting", "Study", "load_study"]


def load_study(name: str) -> Study:
    """The study of that name. Raises ConfigError for one that is not registered."""
    if name not in STUDIES:
        raise ConfigError("study", f"There is no study '{name}'; there is {', '.join(STUDIES)}.")
    study: Study = import_module(f"core.studies.{name}").STUDY
    return study
