"""The corpora known by name: how each is read, where its files are, and several joined as one.

A new corpus is a function that reads it and an entry of CATALOGUE.
"""

from __future__ import annotations

import os
import socket
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any
from urllib.parse import urlsplit
from urllib.request import getproxies

from core.corpora.assembly import assemble, describe
from core.corpora.demo import DEMO_COLUMNS, DEMO_POS_COLUMNS, demo, demo_pos_a, demo_pos_b
from core.corpora.folder import find_splits, read_folder
from core.corpora.types import Corpus, Sentence, Split
from core.errors import CorpusError
from core.paths import data_dir, may_read

if TYPE_CHECKING:
    from datasets import DatasetDict


# The bare names on the Hub are script repositories, which `datasets` refuses since version 4; the parquet
# revision holds the same data without code.
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


CONLL2003_COLUMNS = ("tokens", "pos", "chunk", "ner")
CONLL2000_COLUMNS = ("tokens", "pos", "chunk")

# The tag lists that the corpora declare on the Hub. Some of their tags occur in no sentence; a head of the
# published program has a row for each all the same.
_POS_2000 = (
    *("''", "#", "$", "(", ")", ",", ".", ":", "``", "CC", "CD", "DT", "EX", "FW", "IN", "JJ", "JJR", "JJS"),
    *("MD", "NN", "NNP", "NNPS", "NNS", "PDT", "POS", "PRP", "PRP$", "RB", "RBR", "RBS", "RP", "SYM", "TO"),
    *("UH", "VB", "VBD", "VBG", "VBN", "VBP", "VBZ", "WDT", "WP", "WP$", "WRB"),
)
_POS_2003 = (*_POS_2000, '"', "LS", "NN|SYM")


def _spans(types: str) -> tuple[str, ...]:
    return ("O", *(f"{prefix}-{kind}" for kind in types.split() for prefix in "BI"))


_CHUNKS = _spans("ADJP ADVP CONJP INTJ LST NP PP PRT SBAR UCP VP")
_TAG_LISTS: Mapping[str, Mapping[str, tuple[str, ...]]] = {
    "conll2003": {"pos": _POS_2003, "chunk": _CHUNKS, "ner": _spans("LOC MISC ORG PER")},
    "conll2000": {"pos": _POS_2000, "chunk": _CHUNKS},
}


def conll2003() -> Corpus:
    """CoNLL-2003 English: 14,041 / 3,250 / 3,453 sentences with POS, chunks and entities."""
    return _read("conll2003", CONLL2003_COLUMNS)


def conll2000() -> Corpus:
    """CoNLL-2000: 8,936 / - / 2,012 sentences with POS and chunks."""
    return _read("conll2000", CONLL2000_COLUMNS)


def _read(name: str, columns: tuple[str, ...]) -> Corpus:
    data = data_dir()
    if data is not None and (data / name).is_dir():
        return read_folder(data / name, columns, name, _TAG_LISTS[name])
    return read_hub(name, f"eriktks/{name}")


def _both_pos() -> Corpus:
    return join("both-pos", {"pos-2003": (conll2003(), "pos"), "pos-2000": (conll2000(), "pos")})


def _demo_both_pos() -> Corpus:
    return join("demo-both-pos", {"pos-a": (demo_pos_a(), "pos"), "pos-b": (demo_pos_b(), "pos")})


def join_all(corpora: Sequence[Corpus]) -> Corpus:
    """One corpus of all tasks of all these. A task that several of them have is named `task@corpus`.

    Raises CorpusError where two corpora have one name.
    """
    for name, number in Counter(corpus.name for corpus in corpora).items():
        if number > 1:
            raise CorpusError(f"Two of the corpora to join are called {name}; name one, or rename a folder.")
    owners = Counter(task.name for corpus in corpora for task in corpus.tasks)
    return join(
        "+".join(corpus.name for corpus in corpora),
        {
            f"{task.name}@{corpus.name}" if owners[task.name] > 1 else task.name: (corpus, task.name)
            for corpus in corpora
            for task in corpus.tasks
        },
    )


def join(name: str, parts: Mapping[str, tuple[Corpus, str]]) -> Corpus:
    """One corpus of the sentences of all parts.

    `parts` maps a new task's name to a corpus and the task there. Each sentence keeps those of its corpus's
    tasks, and remembers the corpus as its `part`.
    """
    corpora = {corpus.name: corpus for corpus, _ in parts.values()}

    def sentences(split: Split) -> tuple[Sentence, ...]:
        kept = []
        for part, corpus in corpora.items():
            new_names = {new: old for new, (owner, old) in parts.items() if owner.name == part}
            for one in corpus.split(split):
                labels = {new: one.labels[old] for new, old in new_names.items() if old in one.labels}
                if labels:
                    kept.append(Sentence(one.tokens, labels, part))
        return tuple(kept)

    return describe(
        Corpus(
            name=name,
            tasks=tuple(replace(corpus.task(old), name=new) for new, (corpus, old) in parts.items()),
            train=sentences("train"),
            dev=sentences("dev"),
            test=sentences("test"),
            notes=tuple(f"{part}: {note}" for part, corpus in corpora.items() for note in corpus.notes),
        )
    )


@dataclass(frozen=True)
class CorpusSpec:
    """A corpus with a name of its own.

    `columns` are those of its files (None where it is joined from others), `tasks` what it annotates.
    `hub_folders` are the folders under MRNLAB_DATA that it is read from; those missing come from the Hub.
    """

    name: str
    description: str
    columns: tuple[str, ...] | None
    tasks: tuple[str, ...]
    read: Callable[[], Corpus] = field(repr=False, compare=False)
    hub_folders: tuple[str, ...] = ()

    @property
    def needs_hub(self) -> bool:
        """Whether it comes over the network unless folders under MRNLAB_DATA hold it."""
        return bool(self.hub_folders)


CATALOGUE: dict[str, CorpusSpec] = {
    spec.name: spec
    for spec in (
        CorpusSpec(
            "demo",
            "1,800 newswire-like sentences made by MRN Lab's own grammar: POS, chunks and entities.",
            DEMO_COLUMNS,
            tasks=("pos", "chunk", "ner"),
            read=demo,
        ),
        CorpusSpec(
            "demo-pos-a",
            "Sentences of the demo grammar with its own POS tags.",
            DEMO_POS_COLUMNS,
            tasks=("pos",),
            read=demo_pos_a,
        ),
        CorpusSpec(
            "demo-pos-b",
            "Other sentences of the demo grammar, with a POS tag set that differs in a few labels.",
            DEMO_POS_COLUMNS,
            tasks=("pos",),
            read=demo_pos_b,
        ),
        CorpusSpec(
            "demo-both-pos",
            "demo-pos-a and demo-pos-b together: two tasks, each on sentences of its own.",
            None,
            tasks=("pos-a", "pos-b"),
            read=_demo_both_pos,
        ),
        CorpusSpec(
            "conll2003",
            "English newswire of the CoNLL-2003 shared task: POS, chunks and entities.",
            CONLL2003_COLUMNS,
            hub_folders=("conll2003",),
            tasks=("pos", "chunk", "ner"),
            read=conll2003,
        ),
        CorpusSpec(
            "conll2000",
            "English newswire of the CoNLL-2000 shared task: POS and chunks.",
            CONLL2000_COLUMNS,
            hub_folders=("conll2000",),
            tasks=("pos", "chunk"),
            read=conll2000,
        ),
        CorpusSpec(
            "both-pos",
            "The POS tags of conll2003 and conll2000: two tasks, each on sentences of its own.",
            None,
            hub_folders=("conll2003", "conll2000"),
            tasks=("pos-2003", "pos-2000"),
            read=_both_pos,
        ),
    )
}


def locate(name: str) -> Path:
    """The folder of that name: as it stands, else under MRNLAB_DATA.

    Raises CorpusError where there is none.
    """
    if (folder := find_folder(name)) is not None:
        return folder
    if not may_read(name):
        raise CorpusError(
            f"'{name}' lies outside of the folders that this laboratory reads; MRNLAB_DATA_ROOTS names them."
        )
    raise CorpusError(
        f"There is no corpus '{name}': it is neither a folder here nor one of {', '.join(CATALOGUE)}."
    )


def find_folder(name: str) -> Path | None:
    """As `locate`, but None where there is no such folder."""
    # Of os.path, whose functions raise nothing, whatever a name holds.
    places = [os.path.expanduser(name)]
    if (data := data_dir()) is not None:
        places.append(os.path.join(data, name))
    return next((Path(place) for place in places if may_read(place) and os.path.exists(place)), None)


def local_folders(name: str) -> list[Path]:
    """The folders under MRNLAB_DATA that a corpus of the catalogue is read from, those that are there."""
    data = data_dir()
    if data is None:
        return []
    return [data / part for part in CATALOGUE[name].hub_folders if (data / part).is_dir()]


def is_local(name: str) -> bool:
    """Whether a corpus of the catalogue, or a folder, can be read without the network."""
    return name not in CATALOGUE or len(local_folders(name)) == len(CATALOGUE[name].hub_folders)


def fingerprint(name: str) -> tuple[str, ...]:
    """Names, sizes and times of the files that a corpus of the catalogue or a folder is read from.

    None of them for one that is made here or comes from the Hub. Raises CorpusError as `locate` does.
    """
    folders = local_folders(name) if name in CATALOGUE else [locate(name)]
    files = [path for folder in folders for path in find_splits(folder).values()]
    return tuple(f"{path}:{path.stat().st_size}:{path.stat().st_mtime_ns}" for path in files)
