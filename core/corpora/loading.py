"""Load a corpus by name or folder, derived ones too. It is read anew only when its files change."""

from __future__ import annotations

import contextlib
import hashlib
import re
from collections.abc import Sequence
from dataclasses import replace
from functools import lru_cache
from pathlib import Path

from core.corpora.assembly import TEXT_VERSION, describe, findings, text_hash
from core.corpora.catalogue import hub
from core.corpora.catalogue.folders import detect_columns, read_folder
from core.corpora.catalogue.names import (
    CATALOGUE,
    find_folder,
    fingerprint,
    is_local,
    join_all,
    locate,
)
from core.corpora.derived import Derivation, derivation, is_derived
from core.corpora.readers.conll_names import ColumnProposal
from core.corpora.types import Corpus
from core.errors import CorpusError, NoRoom
from core.paths import cache_dir, written_whole

PREVIEW_SEED = 1
"""What a derived corpus is drawn with where no run says how."""
_KEPT = 4
"""Corpora kept in memory, some tens of megabytes each: a worker trains many runs of the same one."""


def load(name: str, columns: Sequence[str] | None = None) -> Corpus:
    """The whole corpus: a name of the catalogue, a folder (CoNLL, CoNLL-U, texts), or a derived name.

    `columns` names a CoNLL folder's columns from left to right, one of them `tokens`; without it they are
    named by what is in them. What a derived corpus draws, it draws with seed 1.
    Raises CorpusError in one sentence: what is wrong, where, and what to do.
    """
    corpus = read(name, columns)
    made_by = derivation_of(name)
    if made_by is not None:
        corpus = describe(made_by.make(corpus, PREVIEW_SEED))
    return replace(corpus, notes=corpus.notes + findings(corpus))


def derivation_of(name: str) -> Derivation | None:
    """How the corpus of that name is derived; None for one of the catalogue, for a dataset and for a folder.

    Raises CorpusError where the name says nothing that can be made.
    """
    if name in CATALOGUE or not is_derived(name) or find_folder(name) is not None:
        return None
    return derivation(name)


def bases_of(name: str) -> tuple[str, ...]:
    """The corpora of the catalogue and the folders that the sentences of this one come from."""
    made_by = derivation_of(name)
    return (name,) if made_by is None else made_by.bases


def tasks_of(name: str, columns: Sequence[str] | None = None) -> tuple[str, ...]:
    """The names of a corpus's tasks; of a derived one, without drawing it. Raises CorpusError as `load`."""
    made_by = derivation_of(name)
    names = tuple(task.name for task in read(name, columns).tasks)
    return names if made_by is None else tuple(made_by.recipe.origins(names))


def auxiliary_tasks(name: str) -> tuple[str, ...]:
    """The tasks of that corpus that are only trained on. Raises CorpusError as `derivation_of`."""
    made_by = derivation_of(name)
    return () if made_by is None else tuple(made_by.recipe.auxiliary)


def pinned_name(name: str) -> str:
    """The same corpus by a name that holds on any machine.

    Folders have their absolute paths, datasets the commit that is read.

    Raises CorpusError where there is no such corpus.
    """
    made_by = derivation_of(name)
    if made_by is not None:
        return replace(made_by, bases=tuple(map(pinned_name, made_by.bases))).name
    if hub.is_hub(name):
        return hub.pinned(name)
    return name if name in CATALOGUE else str(locate(name).resolve())


def read(name: str, columns: Sequence[str] | None = None) -> Corpus:
    """The corpus as `load` gives it, without findings among its notes; of a derived corpus the base.

    Findings are reported for the sentences that a run really uses. The corpus is read anew only when its
    files change, and has its `text_hash`.
    """
    key = bases_of(name), column_key(columns), files_of(name)
    corpus = _read(*key)
    with contextlib.suppress(OSError, NoRoom):  # a disk that is full or read-only keeps nobody from reading
        if not (kept := _kept_hash(*key)).exists():
            with written_whole(kept, len(corpus.text_hash), f"The hash of {corpus.name}") as beside:
                beside.write_text(corpus.text_hash)
    return corpus


def text_known(name: str, columns: Sequence[str] | None = None) -> str | None:
    """The `text_hash` of the corpus as it was last read here, without reading it.

    None where its files have changed since. Raises CorpusError where there is no corpus of this name.
    """
    kept = _kept_hash(bases_of(name), column_key(columns), files_of(name))
    try:
        text = kept.read_text()
    except (OSError, ValueError):
        return None
    return text if re.fullmatch(f"[0-9a-f]{{16}}({TEXT_VERSION})?", text) else None


def _kept_hash(*key: object) -> Path:
    """The file of the cache that has the text hash of a corpus, by its names, columns and files."""
    digest = hashlib.sha256(repr((*key, TEXT_VERSION)).encode())
    return cache_dir("corpora") / f"{digest.hexdigest()[:24]}.txt"


def proposed_columns(path: str) -> ColumnProposal | None:
    """The columns that `detect_columns` finds; None for a dataset.

    A folder is read anew only when its files change.
    """
    if hub.is_hub(path):
        return None
    if (folder := find_folder(path)) is None or not folder.is_dir():
        return detect_columns(path)
    path = str(folder.resolve())
    return _proposed(path, fingerprint(path))


@lru_cache(maxsize=64)
def _proposed(folder: str, files: tuple[str, ...]) -> ColumnProposal | None:
    """`files` are part of the cache's key, and change when the files do."""
    return detect_columns(folder)


def column_key(columns: Sequence[str] | None) -> tuple[str, ...] | None:
    """The columns as a cache can keep them."""
    return None if columns is None else tuple(columns)


Files = tuple[tuple[str, ...], ...]
"""The part of a cache key that changes with the content of a corpus's files."""


def files_of(name: str) -> Files:
    """The files that a corpus is read from. Raises CorpusError where there is none."""
    return tuple(hub.fingerprint(base) if hub.is_hub(base) else fingerprint(base) for base in bases_of(name))


def is_here(name: str) -> bool:
    """Whether a corpus can be read without the network. Raises CorpusError as `derivation_of`."""
    return all(hub.is_here(base) if hub.is_hub(base) else is_local(base) for base in bases_of(name))


@lru_cache(maxsize=_KEPT)
def _read(bases: tuple[str, ...], columns: tuple[str, ...] | None, files: Files) -> Corpus:
    """`files` are part of the cache's key, and change when the files do."""
    name, spec = bases[0], CATALOGUE.get(bases[0])
    if len(bases) > 1:
        named = [None if base in CATALOGUE or hub.is_hub(base) else columns for base in bases]
        corpus = join_all([read(base, names) for base, names in zip(bases, named, strict=True)])
    elif hub.is_hub(name):
        if columns is not None:
            raise CorpusError(f"{name}: name its columns in its name, as ?columns=COLUMN,COLUMN:NAME.")
        corpus = hub.read_hub(name)
    elif spec is None:
        corpus = read_folder(locate(name), columns)
    elif columns not in (None, spec.columns):
        columns_shown = f" ({', '.join(spec.columns)})" if spec.columns else ""
        raise CorpusError(f"{name} knows its own columns{columns_shown}; leave out the column names.")
    else:
        corpus = spec.read()
    return replace(corpus, text_hash=text_hash(corpus))
