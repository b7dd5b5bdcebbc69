"""Load a corpus by name or folder."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

from core.corpora.assembly import findings
from core.corpora.catalogue import CATALOGUE
from core.corpora.folder import read_folder
from core.corpora.types import Corpus
from core.errors import CorpusError
from core.paths import data_dir

__all__ = ["load", "locate", "read"]


def load(name: str, columns: Sequence[str] | None = None) -> Corpus:
    """The whole corpus: a name of the catalogue, else a folder of CoNLL or CoNLL-U files.

    `columns` names a CoNLL folder's columns from left to right, one of them `tokens`; without it they are
    named by what is in them. Raises CorpusError in one sentence: what is wrong, where, and what to do.
    """
    corpus = read(name, columns)
    return replace(corpus, notes=corpus.notes + findings(corpus))


def read(name: str, columns: Sequence[str] | None = None) -> Corpus:
    """As `load`, but without findings among the notes: those are told of the sentences a run really uses."""
    spec = CATALOGUE.get(name)
    if spec is None:
        return read_folder(locate(name), columns)
    if columns is not None and tuple(columns) != spec.columns:
        known = f" ({', '.join(spec.columns)})" if spec.columns else ""
        raise CorpusError(f"{name} knows its own columns{known}; leave the names of columns away.")
    return spec.read()


def locate(name: str) -> Path:
    """The folder of that name: as it stands, else under MRNLAB_DATA.

    Raises CorpusError where there is none.
    """
    folder = Path(name).expanduser()
    data = data_dir()
    if not folder.exists() and data is not None and (data / name).exists():
        folder = data / name
    if not folder.exists():
        raise CorpusError(
            f"There is no corpus '{name}': it is neither a folder here nor one of {', '.join(CATALOGUE)}."
        )
    return folder
