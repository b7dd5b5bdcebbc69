"""Load a corpus by name or folder, or one derived from such."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from functools import lru_cache

from core.corpora.assembly import describe, findings
from core.corpora.catalogue import CATALOGUE
from core.corpora.derived import Recipe, is_derived, recipe
from core.corpora.folder import read_folder
from core.corpora.places import find_folder, fingerprint, locate
from core.corpora.types import Corpus
from core.errors import CorpusError

__all__ = ["load", "placed_name", "read", "recipe_of"]

_PREVIEW_SEED = 1
_KEPT = 4
"""Corpora kept in memory, some tens of megabytes each: a worker trains many runs of the same one."""


def load(name: str, columns: Sequence[str] | None = None) -> Corpus:
    """The whole corpus: a name of the catalogue, a folder of CoNLL or CoNLL-U files, or a derived name.

    `columns` names a CoNLL folder's columns from left to right, one of them `tokens`; without it they are
    named by what is in them. What a derived corpus draws, it draws with seed 1.
    Raises CorpusError in one sentence: what is wrong, where, and what to do.
    """
    made_by = recipe_of(name)
    if made_by is None:
        corpus = read(name, columns)
    else:
        corpus = describe(made_by.make(read(made_by.base, columns), _PREVIEW_SEED))
    return replace(corpus, notes=corpus.notes + findings(corpus))


def recipe_of(name: str) -> Recipe | None:
    """How the corpus of that name is derived; None for one of the catalogue and for a folder.

    Raises CorpusError where the name says nothing that can be made.
    """
    if name in CATALOGUE or not is_derived(name) or find_folder(name) is not None:
        return None
    return recipe(name)


def placed_name(name: str) -> str:
    """The same corpus by a name that holds from any folder: folders by their whole path.

    Raises CorpusError where there is no such corpus.
    """
    made_by = recipe_of(name)
    if made_by is not None:
        return replace(made_by, base=placed_name(made_by.base)).name
    return name if name in CATALOGUE else str(locate(name).resolve())


def read(name: str, columns: Sequence[str] | None = None) -> Corpus:
    """A corpus of the catalogue or a folder, without findings among the notes: those are told of the
    sentences a run really uses. Read anew only when its files change. Raises CorpusError as `load` does.
    """
    return _read(name, tuple(columns) if columns is not None else None, fingerprint(name))


@lru_cache(maxsize=_KEPT)
def _read(name: str, columns: tuple[str, ...] | None, files: tuple[str, ...]) -> Corpus:
    del files  # part of the cache's key only: it changes when the files do
    spec = CATALOGUE.get(name)
    if spec is None:
        return read_folder(locate(name), columns)
    if columns is not None and columns != spec.columns:
        known = f" ({', '.join(spec.columns)})" if spec.columns else ""
        raise CorpusError(f"{name} knows its own columns{known}; leave the names of columns away.")
    return spec.read()
