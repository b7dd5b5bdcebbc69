"""Load a corpus by name or folder, or one derived from such."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from functools import lru_cache

from core.corpora.assembly import describe, findings
from core.corpora.catalogue import CATALOGUE
from core.corpora.derived import Recipe, is_derived, recipe
from core.corpora.fingerprint import text_hash
from core.corpora.folder import read_folder
from core.corpora.joined import join_all
from core.corpora.places import find_folder, fingerprint, locate
from core.corpora.types import Corpus
from core.errors import CorpusError

__all__ = ["bases_of", "load", "placed_name", "read", "recipe_of"]

_PREVIEW_SEED = 1
_KEPT = 4
"""Corpora kept in memory, some tens of megabytes each: a worker trains many runs of the same one."""


def load(name: str, columns: Sequence[str] | None = None) -> Corpus:
    """The whole corpus: a name of the catalogue, a folder of CoNLL or CoNLL-U files, or a derived name.

    `columns` names a CoNLL folder's columns from left to right, one of them `tokens`; without it they are
    named by what is in them. What a derived corpus draws, it draws with seed 1.
    Raises CorpusError in one sentence: what is wrong, where, and what to do.
    """
    corpus = read(name, columns)
    made_by = recipe_of(name)
    if made_by is not None:
        corpus = describe(made_by.make(corpus, _PREVIEW_SEED))
    return replace(corpus, notes=corpus.notes + findings(corpus))


def recipe_of(name: str) -> Recipe | None:
    """How the corpus of that name is derived; None for one of the catalogue and for a folder.

    Raises CorpusError where the name says nothing that can be made.
    """
    if name in CATALOGUE or not is_derived(name) or find_folder(name) is not None:
        return None
    return recipe(name)


def bases_of(name: str) -> tuple[str, ...]:
    """The corpora of the catalogue and the folders that the sentences of this one come from."""
    made_by = recipe_of(name)
    return (name,) if made_by is None else made_by.bases


def placed_name(name: str) -> str:
    """The same corpus by a name that holds wherever one is: folders by their whole path.

    Raises CorpusError where there is no such corpus.
    """
    made_by = recipe_of(name)
    if made_by is not None:
        return replace(made_by, bases=tuple(map(placed_name, made_by.bases))).name
    return name if name in CATALOGUE else str(locate(name).resolve())


def read(name: str, columns: Sequence[str] | None = None) -> Corpus:
    """As `load`, but without findings among the notes (those are told of the sentences a run really uses),
    and of a derived corpus its base. Read anew only when its files change. Has its `text_hash`.
    """
    bases = bases_of(name)
    columns = tuple(columns) if columns is not None else None
    return _read(bases, columns, tuple(map(fingerprint, bases)))


@lru_cache(maxsize=_KEPT)
def _read(
    bases: tuple[str, ...], columns: tuple[str, ...] | None, files: tuple[tuple[str, ...], ...]
) -> Corpus:
    corpus = _as_stored(bases, columns, files)
    return replace(corpus, text_hash=text_hash(corpus))


def _as_stored(
    bases: tuple[str, ...], columns: tuple[str, ...] | None, files: tuple[tuple[str, ...], ...]
) -> Corpus:
    del files  # part of the key of `_read` only: it changes when the files do
    if len(bases) > 1:
        return join_all([read(base, None if base in CATALOGUE else columns) for base in bases])
    name = bases[0]
    spec = CATALOGUE.get(name)
    if spec is None:
        return read_folder(locate(name), columns)
    if columns is not None and columns != spec.columns:
        known = f" ({', '.join(spec.columns)})" if spec.columns else ""
        raise CorpusError(f"{name} knows its own columns{known}; leave the names of columns away.")
    return spec.read()
