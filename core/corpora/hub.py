"""Corpora of the Hugging Face Hub, in the shape of the shared tasks: words and a ClassLabel column per task.

The bare names are script repositories, which `datasets` refuses since version 4; the parquet revision holds
the same data without code.
"""

from __future__ import annotations

import socket
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any
from urllib.parse import urlsplit
from urllib.request import getproxies

from core.corpora.assembly import assemble
from core.corpora.types import Corpus, Sentence, Split
from core.errors import CorpusError

if TYPE_CHECKING:
    from datasets import DatasetDict

__all__ = ["from_dataset", "read_hub"]

_REVISION = "refs/convert/parquet"
_SPLITS: dict[str, Split] = {"train": "train", "validation": "dev", "test": "test"}
_TASK_SUFFIX = "_tags"


def read_hub(name: str, repository: str) -> Corpus:
    """The corpus from the Hub, or from the copy that an earlier load left on this machine.

    Raises CorpusError where there is neither network nor copy.
    """
    from datasets import load_dataset

    try:
        if not _in_cache(repository):
            _look_up_hub()
        data = load_dataset(repository, revision=_REVISION)
    except RuntimeError as error:
        # A folder of the repository's name, in the current one, that is a script.
        raise CorpusError(
            f"{name} was found as a script ({repository}), and scripts are never run; start from another "
            "folder."
        ) from error
    except (OSError, ValueError) as error:
        # OSError covers every failure of the network; ValueError a cache without this revision.
        raise CorpusError(
            f"{name} is not on this machine and the Hugging Face Hub cannot be reached; set MRNLAB_DATA to "
            f"a folder that holds a folder '{name}' with its files, or give such a folder as the corpus."
        ) from error
    return from_dataset(name, data)


def _in_cache(repository: str) -> bool:
    from datasets import config

    return (Path(config.HF_DATASETS_CACHE) / repository.replace("/", "___")).is_dir()


def _look_up_hub() -> None:
    """Raises OSError at once where the Hub's name is not found; `datasets` would try for half a minute."""
    from huggingface_hub import constants

    # A proxy looks names up itself; and offline mode is told by `datasets`, without delay.
    if not constants.HF_HUB_OFFLINE and not getproxies():
        socket.getaddrinfo(urlsplit(constants.ENDPOINT).hostname, None)


def from_dataset(name: str, data: DatasetDict | Mapping[str, Any]) -> Corpus:
    """The corpus of a dataset with `tokens` and one column of ClassLabels, named `TASK_tags`, per task."""
    splits: dict[Split, list[Sentence]] = {}
    tag_lists: dict[str, Sequence[str]] = {}
    for hub_split, split in _SPLITS.items():
        if hub_split not in data:
            continue
        table = data[hub_split]
        columns = {
            column.removesuffix(_TASK_SUFFIX): (table.features[column].feature.names, table[column])
            for column in table.column_names
            if column.endswith(_TASK_SUFFIX)
        }
        tag_lists |= {task: names for task, (names, _) in columns.items()}
        splits[split] = [
            Sentence(
                tuple(tokens),
                {
                    task: tuple(names[label] for label in column[place])
                    for task, (names, column) in columns.items()
                },
            )
            for place, tokens in enumerate(table["tokens"])
            if tokens
        ]
    return assemble(name, splits, tag_lists=tag_lists)
