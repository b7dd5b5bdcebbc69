"""Published figures to stand beside one's own: tables 1 to 3 of the MRN dissertation.

Mean and standard deviation over 5 random starts, in percent. POS was scored by seqeval's F1 there, which
reads `NNP` as a span; compare it with runs whose `pos_score` is `seqeval_f1`.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from core.config import RunConfig

__all__ = ["CITATION", "PUBLISHED", "Published", "matching"]

CITATION = (
    "C.-J. Chang, A Multi-Linear Relationship Transformer Framework for Multi-Task Sequence Labelling, "
    "MSc dissertation, King's College London, 2022; mean ± SD of 5 random starts"
)


@dataclass(frozen=True)
class Published:
    """One cell of a published table: mean ± SD in percent."""

    table: int
    corpus: str
    encoder: str
    paradigm: str
    fraction: float
    task: str
    mean: float
    sd: float


_BERT, _BILSTM, _ROBERTA = "bert-base-cased", "bert-base-cased+bilstm", "roberta-base"

_TABLES: dict[tuple[int, str, float, tuple[str, ...]], dict[tuple[str, str], str]] = {
    (1, "conll2003", 1.0, ("ner", "chunk", "pos")): {
        (_BERT, "stl"): "91.67±0.03 91.29±0.03 93.17±0.05",
        (_BERT, "mtl"): "90.76±0.14 91.40±0.08 92.90±0.17",
        (_BERT, "mrn"): "90.82±0.11 91.49±0.06 93.16±0.07",
        (_BILSTM, "mtl"): "90.73±0.14 91.40±0.08 92.88±0.15",
        (_BILSTM, "mrn"): "90.60±0.09 91.42±0.06 93.03±0.07",
        (_ROBERTA, "stl"): "92.16±0.07 91.08±0.06 93.06±0.06",
        (_ROBERTA, "mtl"): "91.55±0.12 91.19±0.10 92.53±0.24",
        (_ROBERTA, "mrn"): "91.81±0.02 91.35±0.03 92.73±0.13",
    },
    (2, "conll2000", 1.0, ("chunk", "pos")): {
        (_BERT, "stl"): "96.63±0.04 98.25±0.11",
        (_BERT, "mtl"): "96.31±0.10 97.94±0.07",
        (_BERT, "mrn"): "96.47±0.07 98.02±0.05",
        (_BILSTM, "mtl"): "96.29±0.11 97.94±0.03",
        (_BILSTM, "mrn"): "96.44±0.09 97.99±0.07",
        (_ROBERTA, "stl"): "96.71±0.05 98.17±0.09",
        (_ROBERTA, "mtl"): "96.76±0.04 97.75±0.09",
        (_ROBERTA, "mrn"): "96.85±0.04 97.86±0.07",
    },
    (3, "both-pos", 0.05, ("pos-2003", "pos-2000")): {
        (_BERT, "mtl"): "90.51±0.17 95.03±0.10",
        (_BERT, "mrn"): "90.61±0.11 95.12±0.13",
    },
    (3, "both-pos", 0.1, ("pos-2003", "pos-2000")): {
        (_BERT, "mtl"): "91.48±0.10 96.49±0.07",
        (_BERT, "mrn"): "91.60±0.07 96.57±0.08",
    },
}


def _cells() -> list[Published]:
    cells = []
    for (table, corpus, fraction, tasks), rows in _TABLES.items():
        for (encoder, paradigm), text in rows.items():
            for task, cell in zip(tasks, text.split(), strict=True):
                mean, sd = map(float, cell.split("±"))
                cells.append(Published(table, corpus, encoder, paradigm, fraction, task, mean, sd))
    return cells


PUBLISHED: tuple[Published, ...] = tuple(_cells())


def matching(corpus: str, configs: Sequence[RunConfig]) -> list[Published]:
    """The published cells for this corpus and any of these configurations' encoders and fractions."""
    wanted = {(config.encoder, config.fraction) for config in configs}
    return [p for p in PUBLISHED if p.corpus == corpus and (p.encoder, p.fraction) in wanted]
