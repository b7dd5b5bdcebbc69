"""The description of a run for the store, with absolute paths, and for training, with its base run found."""

from __future__ import annotations

import os
from collections.abc import Callable

from core.config import RunConfig
from core.corpora.loading import pinned_name
from core.errors import FIELD, ConfigError
from core.models.trained_heads import trained_folder
from core.models.word_vectors import GLOVE
from core.mrn.alignments.mapping import keep_mapping, read_mapping
from core.registry import ENCODERS, parse_alignment
from core.store import RunState, Store


def with_absolute_paths(config: RunConfig, pinned: Callable[[str], str] = pinned_name) -> RunConfig:
    """The same run with absolute paths, as it is stored, since a worker starts in another folder.

    A mapping becomes the copy that the laboratory keeps, since the file may change later. `pinned` may
    remember the names of corpora that it has resolved.
    """
    changes = {"corpus": pinned(config.corpus)}
    transformer = config.transformer or ""
    folder = os.path.expanduser(transformer)
    # Known names win, as when located. `isdir` raises nothing, whatever a name holds.
    if transformer not in ENCODERS and os.path.isdir(folder):
        field = "encoder" if config.context_encoder is None else "context_encoder"
        ending = getattr(config, field).removeprefix(transformer)
        changes[field] = os.path.realpath(folder) + ending
    if config.vectors is not None and os.path.exists(vectors := os.path.expanduser(config.vectors)):
        changes["vectors"] = config.vectors if config.vectors == GLOVE else os.path.realpath(vectors)
    if config.added_to is not None and config.added_to_configuration is None:
        changes["added_to"] = str(trained_folder(config.added_to).resolve())
    if config.alignment is not None and (file := parse_alignment(config.alignment)[1]):
        changes["alignment"] = f"mapping:{keep_mapping(read_mapping(file))}"
    if all(getattr(config, field) == value for field, value in changes.items()):
        return config  # thousands are queued at once, and each check of a description takes its time
    return config.with_(**changes)


def resolve_base_run(store: Store, config: RunConfig) -> RunConfig:
    """The same run with the folder of the finished run that its task is added to.

    Only a run that names this base by its configuration changes.

    Raises ConfigError where no run of that configuration and this seed has its weights here.
    """
    if (wanted := config.added_to_configuration) is None:
        return config
    for run in store.runs_of([wanted], [RunState.SUCCEEDED]):
        if run.config_problem is None and run.config.seed == config.seed and run.checkpoint is not None:
            return config.with_(added_to=run.checkpoint)
    raise ConfigError(
        "added_to",
        f"{FIELD}: no run of the configuration {wanted} with seed {config.seed} has finished here with its "
        "weights; train it first.",
    )
