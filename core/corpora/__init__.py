"""Annotated text: the corpora known by name, readers of files, and what a run trains on. Needs no torch."""

from core.corpora.catalogue import CATALOGUE, CorpusSpec
from core.corpora.folder import ColumnProposal, detect_columns
from core.corpora.loading import CorpusSummary, SplitSize, load, summarise
from core.corpora.preparation import prepare
from core.corpora.types import Corpus, Scheme, Sentence, Split, Task
from core.corpora.uploads import save_upload

__all__ = [
    "CATALOGUE",
    "ColumnProposal",
    "Corpus",
    "CorpusSpec",
    "CorpusSummary",
    "Scheme",
    "Sentence",
    "Split",
    "SplitSize",
    "Task",
    "detect_columns",
    "load",
    "prepare",
    "save_upload",
    "summarise",
]
