"""The corpora known by name: how each is read, where its files are, and several joined as one.

A new corpus is an entry of CATALOGUE.
"""

from __future__ import annotations

import os
import re
import socket
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import chain
from pathlib import Path
from typing import TYPE_CHECKING
from urllib.parse import urlsplit
from urllib.request import getproxies

from core.corpora.assembly import describe
from core.corpora.catalogue.folders import find_splits, read_folder
from core.corpora.readers.dataset_rows import corpus_of
from core.corpora.readers.row_files import NAMES_FILES
from core.corpora.types import Corpus, Scheme, Sentences, Split
from core.errors import CorpusError
from core.paths import OUTSIDE, PACKAGED_CORPORA, data_dir, may_read

if TYPE_CHECKING:
    from datasets import Dataset


_OF_TEXTS = "sentences"
"""A folder of MRNLAB_DATA that may hold folders of corpora."""

# The bare names on the Hub are script repositories, which `datasets` refuses since version 4; the parquet
# revision holds the same data without code.
_REVISION = "refs/convert/parquet"
_MAIN = "main"
"""The revision of datasets that their owners keep as files of data."""
_SPLITS: dict[str, Split] = {"train": "train", "validation": "dev", "test": "test"}


@dataclass(frozen=True)
class HubTexts:
    """How a dataset of texts is laid out on the Hub: its columns, and its configuration where it has several.

    texts    the column of the text, or of the first and the second text of a pair
    label    the column of labels or numbers
    scheme   the kind of task
    """

    texts: tuple[str, ...]
    label: str
    scheme: Scheme
    config: str | None = None


def read_hub(name: str, repository: str, layout: HubTexts | None = None) -> Corpus:
    """The corpus from the Hub, or from the copy that an earlier load left on this machine.

    `layout` is of a dataset of texts; a text task has the corpus's name.

    Raises CorpusError where there is neither network nor copy.
    """
    from datasets import config, load_dataset

    configuration = None if layout is None else layout.config
    cached = Path(config.HF_DATASETS_CACHE) / repository.replace("/", "___") / (configuration or "")
    try:
        if not cached.is_dir():
            look_up_hub()
        data = load_dataset(repository, configuration, revision=_MAIN if layout else _REVISION)
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
    tables = {split: (title, data[title]) for title, split in _SPLITS.items() if title in data}
    if layout is None:
        return corpus_of(name, tables)
    columns = [*layout.texts, f"{layout.label}:{name}"]
    return corpus_of(
        name, {split: (title, _numbered(table, layout)) for split, (title, table) in tables.items()}, columns
    )


def _numbered(table: Dataset, layout: HubTexts) -> Dataset:
    """The table with labels as their numbers, as the files of these corpora elsewhere have them."""
    from datasets import ClassLabel, Value

    is_named = isinstance(table.features[layout.label], ClassLabel)
    return table.cast_column(layout.label, Value("int64")) if is_named else table


def look_up_hub() -> None:
    """Raises OSError at once where the Hub's name is not found; `datasets` would try for half a minute."""
    from huggingface_hub import constants

    # A proxy looks names up itself; and offline mode is told by `datasets`, without delay.
    if not constants.HF_HUB_OFFLINE and not getproxies():
        socket.getaddrinfo(urlsplit(constants.ENDPOINT).hostname, None)


def join_all(corpora: Sequence[Corpus]) -> Corpus:
    """One corpus of all tasks of all these. A task that several of them have is named `task@corpus`.

    Raises CorpusError where two corpora have one name.
    """
    for name, number in Counter(corpus.name for corpus in corpora).items():
        if number > 1:
            raise CorpusError(f"Two of the corpora to join are called {name}; name one, or rename a folder.")
    owners = Counter(task.name for corpus in corpora for task in corpus.tasks)
    names = {
        corpus.name: {
            f"{task.name}@{corpus.name}" if owners[task.name] > 1 else task.name: task.name
            for task in corpus.tasks
        }
        for corpus in corpora
    }
    return join("+".join(names), corpora, names)


def join(name: str, corpora: Sequence[Corpus], names: Mapping[str, Mapping[str, str]]) -> Corpus:
    """One corpus of the sentences of all these.

    `names` maps, by corpus, a new task's name to the task there. Each sentence keeps those of its corpus's
    tasks, and remembers the corpus as its `part`.
    """

    def sentences(split: Split) -> Sentences:
        return Sentences.joined(
            [corpus.split(split).as_part(corpus.name, names[corpus.name]) for corpus in corpora]
        )

    tasks = [
        replace(corpus.task(task), name=new) for corpus in corpora for new, task in names[corpus.name].items()
    ]
    whose: dict[str, list[str]] = {}
    for corpus in corpora:
        for note in corpus.notes:
            whose.setdefault(note, []).append(corpus.name)
    notes = tuple(f"{', '.join(owners)}: {note}" for note, owners in whose.items())
    readings = tuple(chain.from_iterable(corpus.readings for corpus in corpora))
    splits = (sentences("train"), sentences("dev"), sentences("test"))
    return describe(Corpus(name, tuple(tasks), *splits, notes, readings=readings))


# The tag lists that the corpora declare on the Hub. Some of their tags occur in no sentence; a head of the
# published program has a row for each all the same.
_POS_2000 = (
    *("''", "#", "$", "(", ")", ",", ".", ":", "``", "CC", "CD", "DT", "EX", "FW", "IN", "JJ", "JJR", "JJS"),
    *("MD", "NN", "NNP", "NNPS", "NNS", "PDT", "POS", "PRP", "PRP$", "RB", "RBR", "RBS", "RP", "SYM", "TO"),
    *("UH", "VB", "VBD", "VBG", "VBN", "VBP", "VBZ", "WDT", "WP", "WP$", "WRB"),
)


def _spans(types: str) -> tuple[str, ...]:
    return ("O", *(f"{prefix}-{kind}" for kind in types.split() for prefix in "BI"))


_CHUNKS = _spans("ADJP ADVP CONJP INTJ LST NP PP PRT SBAR UCP VP")


_LINES_FEATURES = (
    *("Case", "Definite", "Degree", "ExtPos", "Gender", "Mood", "NumType", "Number", "Person", "Polarity"),
    *("Poss", "PronType", "Reflex", "Tense", "VerbForm", "Voice"),
)


@dataclass(frozen=True)
class CorpusSpec:
    """A corpus with a name of its own.

    tasks        the names of its tasks
    columns      the columns of its files; None where these name them, and for a joined corpus
    repository   where the Hub has it; None for one that is joined, comes with MRN Lab or is a folder
    hub_texts    how the Hub's dataset is laid out, of texts
    tag_lists    by task, the labels that the corpus declares
    parts        of a joined corpus: by corpus, each task and its name there
    """

    name: str
    description: str
    tasks: tuple[str, ...]
    columns: tuple[str, ...] | None = None
    repository: str | None = None
    hub_texts: HubTexts | None = None
    tag_lists: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    parts: Mapping[str, Mapping[str, str]] = field(default_factory=dict)

    @property
    def needs_folder(self) -> bool:
        """Whether it is read from a folder under MRNLAB_DATA alone."""
        return not self.parts and self.repository is None and not (PACKAGED_CORPORA / self.name).is_dir()

    @property
    def hub_folders(self) -> tuple[str, ...]:
        """The folders under MRNLAB_DATA that the corpus is read from; missing ones come from the Hub."""
        if self.repository is not None or self.needs_folder:
            return (self.name,)
        return tuple(folder for part in self.parts for folder in CATALOGUE[part].hub_folders)

    def read(self) -> Corpus:
        """The whole corpus. Raises CorpusError where it cannot be read."""
        if self.parts:
            return join(self.name, [CATALOGUE[part].read() for part in self.parts], self.parts)
        for folder in local_folders(self.name):
            return read_folder(folder, self.columns, self.name, self.tag_lists)
        if self.repository is not None:
            return read_hub(self.name, self.repository, self.hub_texts)
        if self.needs_folder:
            raise CorpusError(
                f"{self.name} is not on this machine; set MRNLAB_DATA to a folder that holds a folder "
                f"'{self.name}' with its files."
            )
        return read_folder(PACKAGED_CORPORA / self.name, self.columns, self.name)


CATALOGUE: dict[str, CorpusSpec] = {
    spec.name: spec
    for spec in (
        CorpusSpec(
            "demo",
            "1,800 newswire-like sentences made by MRN Lab's own grammar: POS, chunks and entities.",
            tasks=("pos", "chunk", "ner"),
            columns=("tokens", "pos", "chunk", "ner"),
        ),
        CorpusSpec(
            "demo-pos-a",
            "Sentences of the demo grammar with its own POS tags.",
            tasks=("pos",),
            columns=("tokens", "pos"),
        ),
        CorpusSpec(
            "demo-pos-b",
            "Other sentences of the demo grammar, with a POS tag set that differs in a few labels.",
            tasks=("pos",),
            columns=("tokens", "pos"),
        ),
        CorpusSpec(
            "demo-both-pos",
            "demo-pos-a and demo-pos-b together: two tasks, each on sentences of its own.",
            tasks=("pos-a", "pos-b"),
            parts={"demo-pos-a": {"pos-a": "pos"}, "demo-pos-b": {"pos-b": "pos"}},
        ),
        CorpusSpec(
            "demo-intents",
            "1,350 requests of travellers made by MRN Lab: POS, slots, and the intent of each sentence.",
            tasks=("pos", "slots", "intent"),
            columns=("tokens", "pos", "slots"),
        ),
        CorpusSpec(
            "conll2003",
            "English newswire of the CoNLL-2003 shared task: POS, chunks and entities.",
            tasks=("pos", "chunk", "ner"),
            columns=("tokens", "pos", "chunk", "ner"),
            repository="eriktks/conll2003",
            tag_lists={
                "pos": (*_POS_2000, '"', "LS", "NN|SYM"),
                "chunk": _CHUNKS,
                "ner": _spans("LOC MISC ORG PER"),
            },
        ),
        CorpusSpec(
            "conll2000",
            "English newswire of the CoNLL-2000 shared task: POS and chunks.",
            tasks=("pos", "chunk"),
            columns=("tokens", "pos", "chunk"),
            repository="eriktks/conll2000",
            tag_lists={"pos": _POS_2000, "chunk": _CHUNKS},
        ),
        CorpusSpec(
            "both-pos",
            "The POS tags of conll2003 and conll2000: two tasks, each on sentences of its own.",
            tasks=("pos-2003", "pos-2000"),
            parts={"conll2003": {"pos-2003": "pos"}, "conll2000": {"pos-2000": "pos"}},
        ),
        CorpusSpec(
            "streusle",
            "English web reviews of STREUSLE: POS, multiword expressions and supersenses.",
            tasks=("upos", "xpos", "mwe", "supersense"),
            columns=("tokens", "upos", "xpos", "mwe", "supersense"),
        ),
        CorpusSpec(
            "ud-lines",
            "English novels, manuals and debates (UD English LinES): tags, relations and features of words.",
            tasks=("upos", "xpos", "deprel", *(f"feats:{name}" for name in _LINES_FEATURES)),
        ),
        CorpusSpec(
            "sst",
            "Sentences of film reviews (Stanford Sentiment Treebank): sentiment from 0, very negative, to 4.",
            tasks=("sst",),
            repository="SetFit/sst5",
            hub_texts=HubTexts(("text",), "label", "text"),
        ),
        CorpusSpec(
            "quora",
            "Pairs of questions asked on Quora: 1 where both ask the same, else 0.",
            tasks=("quora",),
            repository="nyu-mll/glue",
            hub_texts=HubTexts(("question1", "question2"), "label", "pair", "qqp"),
        ),
        CorpusSpec(
            "sts",
            "Pairs of sentences (STS benchmark): how similar they are, a number from 0 to 5.",
            tasks=("sts",),
            repository="nyu-mll/glue",
            hub_texts=HubTexts(("sentence1", "sentence2"), "label", "score", "stsb"),
        ),
    )
}


def locate(name: str) -> Path:
    """The folder of this name: the path itself, else under MRNLAB_DATA.

    Raises CorpusError where there is none.
    """
    if (folder := find_folder(name)) is not None:
        return folder
    if not may_read(name):
        raise CorpusError(f"'{name}' {OUTSIDE}")
    hint = f" Write hub:{name} for the dataset of the Hub." if re.fullmatch(r"[\w.-]+/[\w.-]+", name) else ""
    raise CorpusError(
        f"There is no corpus '{name}': it is neither a folder here nor one of {', '.join(CATALOGUE)}.{hint}"
    )


def find_folder(name: str) -> Path | None:
    """The folder that `locate` finds; None where there is none."""
    # Of os.path, whose functions raise nothing, whatever a name holds.
    places = [os.path.expanduser(name)]
    if (data := data_dir()) is not None:
        places.append(os.path.join(data, name))
    return next((Path(path) for path in places if may_read(path) and os.path.exists(path)), None)


def local_folders(name: str) -> list[Path]:
    """The existing folders that a corpus of the catalogue is read from.

    They are under MRNLAB_DATA, or under its folder `sentences`.
    """
    data = data_dir()
    if data is None:
        return []
    places = [(data / part, data / _OF_TEXTS / part) for part in CATALOGUE[name].hub_folders]
    folders = (next(filter(Path.is_dir, either), None) for either in places)
    return [folder for folder in folders if folder is not None]


def offered() -> list[str]:
    """The corpora that are available: all but the ones that need a folder which is not here."""
    return [name for name, spec in CATALOGUE.items() if not spec.needs_folder or is_local(name)]


def is_local(name: str) -> bool:
    """Whether a corpus of the catalogue, or a folder, can be read without the network."""
    return name not in CATALOGUE or len(local_folders(name)) == len(CATALOGUE[name].hub_folders)


def fingerprint(name: str) -> tuple[str, ...]:
    """Names, sizes and times of the files that a corpus of the catalogue or a folder is read from.

    None of them for one that is made here or comes from the Hub. Raises CorpusError as `locate` does.
    """
    folders = local_folders(name) if name in CATALOGUE else [locate(name)]
    files = [path for folder in folders for path in find_splits(folder).values()]
    files += [path for folder in folders for name in NAMES_FILES if (path := folder / name).is_file()]
    return tuple(f"{path}:{path.stat().st_size}:{path.stat().st_mtime_ns}" for path in files)
