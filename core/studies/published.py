"""Published tables of three papers, and the figures in them that may be compared with a run.

Tables 1 to 3 of the MRN dissertation; tables 3 to 6 of the SC-LSTM paper; the results of TEA-BERT.

The figures stand in `published.json`. The dissertation's are mean and standard deviation over 5 random
starts, in percent; POS was scored by seqeval's F1 there, which reads `NNP` as a span. Those of the SC-LSTM
paper are accuracy of POS, F1 of chunks and NER; † marks a model that they trained themselves, ♣ one that was
trained on the dev sentences too. Those of TEA-BERT are its section 5.4, its baselines and the figure of
section 6: accuracy of SST and of paraphrases, correlation of STS, and their mean, on the dev split.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path, PurePath
from typing import Any

from core.config import RunConfig
from core.registry import FULL

CITATION = (
    "C.-J. Chang, A Multi-Linear Relationship Transformer Framework for Multi-Task Sequence Labelling, "
    "MSc dissertation, King's College London, 2022; mean ± SD of 5 random starts"
)

WITHIN, ABOVE, BELOW = "within ± SD", "above", "below"


@dataclass(frozen=True)
class Published:
    """One cell of a published table, mean and SD in percent, and its row."""

    table: int
    fraction: float
    encoder: str
    paradigm: str
    task: str
    mean: float
    sd: float

    def verdict(self, score: float) -> str:
        """The relation of a mean score in [0, 1] to this cell: `WITHIN` where |score − mean| ≤ SD.

        Both are compared as they are printed, in percent with two decimals.
        """
        difference = round(round(100 * score, 2) - self.mean, 2)
        if abs(difference) <= self.sd:
            return WITHIN
        return ABOVE if difference > 0 else BELOW


@dataclass(frozen=True)
class Reported:
    """A row of the paper's table: scores in percent by task, without a spread, and perhaps their `mean`."""

    model: str
    source: str
    scores: Mapping[str, float]


@dataclass(frozen=True)
class PaperTable:
    """A published table; Table 3 is one for each fraction. `cells` go row by row."""

    number: int
    corpus: str
    tasks: tuple[str, ...]
    alignment: str
    fraction: float
    cells: tuple[Published, ...]
    reported: tuple[Reported, ...]


_FIGURES: Mapping[str, Any] = json.loads(Path(__file__).with_suffix(".json").read_text("utf-8"))


def _reported(rows: list[Any]) -> tuple[Reported, ...]:
    return tuple(Reported(*row) for row in rows)


def _table(fields: dict[str, Any]) -> PaperTable:
    """The table of these values; a row is its encoder, its paradigm and `mean±SD` for each task."""
    number, fraction, tasks = fields["number"], fields["fraction"], tuple(fields["tasks"])
    cells = tuple(
        Published(number, fraction, encoder, paradigm, task, *map(float, cell.split("±")))
        for encoder, paradigm, text in fields["rows"]
        for task, cell in zip(tasks, text.split(), strict=True)
    )
    reported = _reported(fields["reported"])
    return PaperTable(number, fields["corpus"], tasks, fields["alignment"], fraction, cells, reported)


TABLES = tuple(map(_table, _FIGURES["dissertation"]))


def matching(config: RunConfig) -> dict[str, Published]:
    """The published cell for each task of this description; none for a task trained or scored otherwise.

    Corpus, fraction, encoder, paradigm, tasks, alignment and scoring must be the paper's, and the encoder
    fine-tuned. The STL runs of all tasks are one row, so a description of STL stands for each of them.
    """
    if config.encoder_training != FULL:
        return {}
    return {
        cell.task: cell
        for table in TABLES
        if (table.corpus, table.fraction) == (_catalogue_name(config.corpus), config.fraction)
        and (config.paradigm != "mrn" or config.alignment == table.alignment)
        and (config.paradigm == "stl" or set(config.tasks) == set(table.tasks))
        for cell in table.cells
        if (cell.encoder, cell.paradigm) == (config.encoder, config.paradigm)
        and (not cell.task.startswith("pos") or config.pos_score == "seqeval_f1")
    }


def _catalogue_name(corpus: str) -> str:
    """The name that a folder bears, for whoever names a local copy by its path; others as they are."""
    return PurePath(corpus).name if PurePath(corpus).is_absolute() else corpus


LU_CITATION = (
    "P. Lu, T. Bai and P. Langlais, SC-LSTM: Learning Task-Specific Representations in Multi-Task Learning "
    "for Sequence Labeling, NAACL-HLT 2019"
)
LU_TABLE_3 = _reported(_FIGURES["sc-lstm table 3"])
LU_TABLES_4_TO_6 = _reported(_FIGURES["sc-lstm tables 4 to 6"])

MOU_CITATION = (
    "C. Mou, Z. Xu and H. Yao, Multitask BERT with Task Embedded Attentions (TEA-BERT), Stanford CS224N "
    "project report"
)
MOU_TASKS = ("sst", "quora", "sts", "mean")
MOU_TABLE_5_4 = _reported(_FIGURES["tea table 5.4"])
