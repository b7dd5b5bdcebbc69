"""The shared-task corpora, from a folder of that name under MRNLAB_DATA or else from the Hub."""

from __future__ import annotations

from core.corpora.folder import read_folder
from core.corpora.hub import read_hub
from core.corpora.types import Corpus
from core.paths import data_dir

__all__ = ["CONLL2000_COLUMNS", "CONLL2003_COLUMNS", "conll2000", "conll2003"]

CONLL2003_COLUMNS = ("tokens", "pos", "chunk", "ner")
CONLL2000_COLUMNS = ("tokens", "pos", "chunk")


def conll2003() -> Corpus:
    """CoNLL-2003 English: 14,041 / 3,250 / 3,453 sentences with POS, chunks and entities."""
    return _read("conll2003", CONLL2003_COLUMNS)


def conll2000() -> Corpus:
    """CoNLL-2000: 8,936 / - / 2,012 sentences with POS and chunks."""
    return _read("conll2000", CONLL2000_COLUMNS)


def _read(name: str, columns: tuple[str, ...]) -> Corpus:
    data = data_dir()
    if data is not None and (data / name).is_dir():
        return read_folder(data / name, columns, name)
    return read_hub(name, f"eriktks/{name}")
