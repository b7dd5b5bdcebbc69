"""Annotated text: the catalogue of corpora, readers of files, and the data of a run. Needs no torch."""

from core.corpora.catalogue.folders import detect_columns as detect_columns
from core.corpora.catalogue.names import CATALOGUE as CATALOGUE
from core.corpora.catalogue.uploads import save_upload as save_upload
from core.corpora.loading import load as load
from core.corpora.preparation import prepare as prepare
from core.corpora.reading import Reading as Reading
from core.corpora.summary import CorpusSummary as CorpusSummary
from core.corpora.summary import summarise as summarise
from core.corpora.types import Corpus as Corpus
from core.corpora.types import Sentence as Sentence
from core.corpora.types import Task as Task
