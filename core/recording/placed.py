"""The description of a run as the store keeps it."""

from __future__ import annotations

import os

from core.config import RunConfig
from core.corpora.loading import placed_name
from core.models.trained_heads import trained_folder
from core.models.word_vectors import GLOVE
from core.mrn.alignments.mapping import keep_mapping, read_mapping
from core.registry import ENCODERS, parse_alignment


def placed(config: RunConfig) -> RunConfig:
    """The same run as it is stored: folders, that of a finished run too, by their whole path, since a worker
    starts elsewhere, and a mapping by the copy that the laboratory keeps, since the file may change later.
    """
    changes = {"corpus": placed_name(config.corpus)}
    transformer = config.transformer or ""
    folder = os.path.expanduser(transformer)
    # Known names win, as when located. `isdir` raises nothing, whatever a name holds.
    if transformer not in ENCODERS and os.path.isdir(folder):
        field = "encoder" if config.context_encoder is None else "context_encoder"
        ending = getattr(config, field).removeprefix(transformer)
        changes[field] = os.path.realpath(folder) + ending
    if config.vectors is not None and os.path.exists(vectors := os.path.expanduser(config.vectors)):
        changes["vectors"] = config.vectors if config.vectors == GLOVE else os.path.realpath(vectors)
    if config.added_to is not None:
        changes["added_to"] = str(trained_folder(config.added_to).resolve())
    if config.alignment is not None and (file := parse_alignment(config.alignment)[1]):
        changes["alignment"] = f"mapping:{keep_mapping(read_mapping(file))}"
    if all(getattr(config, field) == value for field, value in changes.items()):
        return config  # thousands are queued at once, and each check of a description takes its time
    return config.with_(**changes)
