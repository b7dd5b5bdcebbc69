"""The shared-task corpora, from a folder of that name under MRNLAB_DATA or else from the Hub."""

from __future__ import annotations

from collections.abc import Mapping

from core.corpora.folder import read_folder
from core.corpora.hub import read_hub
from core.corpora.types import Corpus
from core.paths import data_dir

__all__ = ["CONLL2000_COLUMNS", "CONLL2003_COLUMNS", "conll2000", "conll2003"]

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
