"""Whether a run can train on its tasks: known from its description and their kinds, before it is queued."""

from __future__ import annotations

from collections.abc import Sequence
from importlib.util import find_spec

from core.config import OTHER, RunConfig
from core.corpora.types import Task
from core.errors import FIELD, ConfigError, NothingToLearn
from core.registry import FROZEN, GRADIENT_BALANCING, has_bilstm, reads_words
from core.tasks import KINDS
from core.wording import all_of


def check_trainable(config: RunConfig, tasks: Sequence[Task]) -> None:
    """Raises ConfigError where the run's model cannot be made for all the tasks of the run.

    Raises NothingToLearn where it would have no weight to train.
    """
    if config.paradigm == OTHER:
        problem = f"the predictions of {config.system} were imported, so there is no training to repeat."
        raise ConfigError("paradigm", f"{FIELD}: {problem} Choose stl, mtl or mrn.")
    packages = GRADIENT_BALANCING.get(config.balancing or "", ())
    if missing := [package for package in packages if find_spec(package) is None]:
        raise ConfigError(
            "balancing",
            f"{FIELD}: {config.balancing} needs {all_of(missing)} of the extra balancing; install it with "
            "pip install 'mrnlab[balancing]'.",
        )
    whole = [task.name for task in tasks if KINDS[task.scheme].reads != "words"]
    pairs = [task for task in tasks if KINDS[task.scheme].reads == "pair"]
    if config.added_to is not None and whole:
        raise ConfigError("tasks", f"{FIELD}: {whole[0]} labels whole texts; trained heads label words.")
    if config.heads == "shared" and whole:
        raise ConfigError(
            "heads", f"{FIELD} must be own here: rows are shared among tasks that label words, not texts."
        )
    if config.context_encoder is not None and whole:
        raise ConfigError(
            "context_encoder", f"{FIELD} must be left unset here: it reads words, not whole texts."
        )
    if config.pair_encoding == "together":
        if reads_words(config.encoder) and pairs:
            problem = (
                f"{FIELD} must be apart here: word vectors have nothing to tell two texts from each other."
            )
            raise ConfigError("pair_encoding", problem)
        return
    if config.paradigm == "mrn" and config.added_to is None and len(tasks) - len(pairs) < 2:
        apart = ", ".join(task.name for task in pairs)
        raise ConfigError(
            "paradigm",
            f"{FIELD}: MRN relates heads over the same features, and pairs that are read apart "
            f"({apart}) have others. Set pair_encoding to together, or train with mtl.",
        )
    if config.pair_heads == "shared":
        for task in pairs:
            if not KINDS[task.scheme].is_number and len(task.labels) != 2:
                raise ConfigError(
                    "pair_heads",
                    f"{FIELD}: a shared head has one output, enough for two labels; {task.name} has "
                    f"{len(task.labels)}. Give each task a head of its own.",
                )
        return
    encoder_trains = config.encoder_training != FROZEN or has_bilstm(config.encoder)
    has_only_cosines = len(pairs) == len(tasks) and all(KINDS[task.scheme].is_number for task in pairs)
    if not encoder_trains and has_only_cosines:
        raise NothingToLearn([task.name for task in tasks])
