"""Tables 1 to 3 of the MRN dissertation, and which of their figures may stand beside a run; tables 3 to 6 of
the SC-LSTM paper; the results of TEA-BERT.

The dissertation's are mean and standard deviation over 5 random starts, in percent. POS was scored by
seqeval's F1 there, which reads `NNP` as a span.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import PurePath

from core.config import RunConfig

CITATION = (
    "C.-J. Chang, A Multi-Linear Relationship Transformer Framework for Multi-Task Sequence Labelling, "
    "MSc dissertation, King's College London, 2022; mean ± SD of 5 random starts"
)

WITHIN, ABOVE, BELOW = "within ± SD", "above", "below"


@dataclass(frozen=True)
class Published:
    """One cell of a published table, mean and SD in percent, and the row that it stands in."""

    table: int
    fraction: float
    encoder: str
    paradigm: str
    task: str
    mean: float
    sd: float

    def verdict(self, score: float) -> str:
        """How a mean score in [0, 1] stands to this cell: `WITHIN` where |score − mean| ≤ SD.

        Both are compared as they are printed, in percent with two decimals.
        """
        difference = round(round(100 * score, 2) - self.mean, 2)
        if abs(difference) <= self.sd:
            return WITHIN
        return ABOVE if difference > 0 else BELOW


@dataclass(frozen=True)
class Reported:
    """A row that stands in the paper's table: scores in percent by task, and perhaps in the `mean` over them,
    without a spread.
    """

    model: str
    source: str
    scores: Mapping[str, float]


@dataclass(frozen=True)
class PaperTable:
    """A published table; Table 3 is one for each fraction. `rows` are (encoder, paradigm) → `mean±SD` for
    each task, in the order of `tasks`.
    """

    number: int
    corpus: str
    tasks: tuple[str, ...]
    alignment: str
    fraction: float
    rows: Mapping[tuple[str, str], str]
    reported: tuple[Reported, ...] = field(default=())

    def cells(self) -> tuple[Published, ...]:
        """All cells, row by row."""
        return tuple(
            Published(self.number, self.fraction, encoder, paradigm, task, *map(float, cell.split("±")))
            for (encoder, paradigm), text in self.rows.items()
            for task, cell in zip(self.tasks, text.split(), strict=True)
        )


_BERT, _BILSTM, _ROBERTA = "bert-base-cased", "bert-base-cased+bilstm", "roberta-base"

_HUANG = "Huang, Xu and Yu 2015, arXiv:1508.01991"
_LI = "Li, Liu and Shi 2020, arXiv:2012.05418"
_POTH = "Poth et al. 2021, arXiv:2104.08247"

TABLES: tuple[PaperTable, ...] = (
    PaperTable(
        1,
        "conll2003",
        ("ner", "chunk", "pos"),
        "disjoint",
        1.0,
        {
            (_BERT, "stl"): "91.67±0.03 91.29±0.03 93.17±0.05",
            (_BERT, "mtl"): "90.76±0.14 91.40±0.08 92.90±0.17",
            (_BERT, "mrn"): "90.82±0.11 91.49±0.06 93.16±0.07",
            (_BILSTM, "mtl"): "90.73±0.14 91.40±0.08 92.88±0.15",
            (_BILSTM, "mrn"): "90.60±0.09 91.42±0.06 93.03±0.07",
            (_ROBERTA, "stl"): "92.16±0.07 91.08±0.06 93.06±0.06",
            (_ROBERTA, "mtl"): "91.55±0.12 91.19±0.10 92.53±0.24",
            (_ROBERTA, "mrn"): "91.81±0.02 91.35±0.03 92.73±0.13",
        },
        (
            Reported("BiLSTM-CRF", _HUANG, {"ner": 90.10}),
            Reported("BERT", "B. Li 2021, arXiv:2101.11122", {"ner": 91.80}),
        ),
    ),
    PaperTable(
        2,
        "conll2000",
        ("chunk", "pos"),
        "disjoint",
        1.0,
        {
            (_BERT, "stl"): "96.63±0.04 98.25±0.11",
            (_BERT, "mtl"): "96.31±0.10 97.94±0.07",
            (_BERT, "mrn"): "96.47±0.07 98.02±0.05",
            (_BILSTM, "mtl"): "96.29±0.11 97.94±0.03",
            (_BILSTM, "mrn"): "96.44±0.09 97.99±0.07",
            (_ROBERTA, "stl"): "96.71±0.05 98.17±0.09",
            (_ROBERTA, "mtl"): "96.76±0.04 97.75±0.09",
            (_ROBERTA, "mrn"): "96.85±0.04 97.86±0.07",
        },
        (
            Reported("BiLSTM-CRF", _HUANG, {"chunk": 94.46}),
            Reported("BERT", _POTH, {"chunk": 95.92}),
            Reported("RoBERTa", _POTH, {"chunk": 96.35}),
            Reported("Flair", _LI, {"chunk": 96.72}),
            Reported("GCDT with BERT", _LI, {"chunk": 96.81}),
        ),
    ),
    PaperTable(
        3,
        "both-pos",
        ("pos-2003", "pos-2000"),
        "exact",
        0.05,
        {
            (_BERT, "mtl"): "90.51±0.17 95.03±0.10",
            (_BERT, "mrn"): "90.61±0.11 95.12±0.13",
        },
    ),
    PaperTable(
        3,
        "both-pos",
        ("pos-2003", "pos-2000"),
        "exact",
        0.1,
        {
            (_BERT, "mtl"): "91.48±0.10 96.49±0.07",
            (_BERT, "mrn"): "91.60±0.07 96.57±0.08",
        },
    ),
)


def matching(config: RunConfig) -> dict[str, Published]:
    """The published cell for each task of this description; none for a task trained or scored otherwise.

    Corpus, fraction, encoder, paradigm, tasks, alignment and scoring must be the paper's, and the encoder
    fine-tuned. The STL runs of all tasks are one row, so a description of STL stands for each of them.
    """
    if config.encoder_training != "full":
        return {}
    return {
        cell.task: cell
        for table in TABLES
        if (table.corpus, table.fraction) == (_catalogue_name(config.corpus), config.fraction)
        and (config.paradigm != "mrn" or config.alignment == table.alignment)
        and (config.paradigm == "stl" or set(config.tasks) == set(table.tasks))
        for cell in table.cells()
        if (cell.encoder, cell.paradigm) == (config.encoder, config.paradigm)
        and (not cell.task.startswith("pos") or config.pos_score == "seqeval_f1")
    }


def _catalogue_name(corpus: str) -> str:
    """The name that a folder bears, for whoever names a local copy by its path; others as they are."""
    return PurePath(corpus).name if PurePath(corpus).is_absolute() else corpus


# Tables 3 to 6 of the SC-LSTM paper: accuracy of POS, F1 of chunks and NER, in percent without a spread.

LU_CITATION = (
    "P. Lu, T. Bai and P. Langlais, SC-LSTM: Learning Task-Specific Representations in Multi-Task Learning "
    "for Sequence Labeling, NAACL-HLT 2019"
)
LU_TASKS = ("pos", "chunk", "ner")

_TABLE_3 = {
    "LSTM (STL)": "95.46 94.44 89.39",
    "LSTM-s": "95.45 95.12 89.35",
    "LSTM-d": "95.44 95.24 89.37",
    "SC-LSTM": "95.51 96.04 89.96",
}
# † is a model that they trained themselves, ♣ one that was trained on the dev sentences too.
_TABLES_4_TO_6 = {
    "Collobert et al. (2011)": "95.41† 94.32 89.59",
    "Chiu and Nichols (2015)": "– – 91.62♣",
    "Huang et al. (2015)": "95.63† 94.13 88.83",
    "Luo et al. (2015)": "– – 91.20",
    "Ma and Hovy (2016)": "95.80† 94.81† 91.21",
    "Lample et al. (2016)": "95.78† 94.68† 90.94",
    "Bjerva et al. (2016)": "95.67 – –",
    "Hashimoto et al. (2016)": "– 95.77 –",
    "Søgaard and Goldberg (2016)": "– 95.56 –",
    "Shen et al. (2017)": "– 93.88 90.89",
    "Yang et al. (2017)": "– 94.66 91.20",
    "Rei (2017)": "– – 86.26",
    "Liu et al. (2017)": "95.95† 95.96 91.71",
    "Peters et al. (2017)": "– 96.37 91.93",
    "Zhang et al. (2018)": "– – 91.2",
    "Liu et al. (2018)": "– 96.13 91.95",
    "Peters et al. (2018)": "96.62† 96.92† 92.22",
    "Clark et al. (2018)": "– 97.00 92.60",
    "Akbik et al. (2018)": "– 96.72 93.09♣",
    "Devlin et al. (2018)": "– – 92.80",
    "SC-LSTM": "95.51 96.04 89.96",
    "SC-LSTM-CNN-CRF": "95.83 96.41 91.37",
    "SC-LSTM-LM-CNN": "96.83 97.40 92.60",
}


def _lu(source: str, rows: Mapping[str, str]) -> tuple[Reported, ...]:
    """The rows of tables; a mark goes on behind the name of its task in the source."""
    made = []
    for model, text in rows.items():
        cells = {task: cell for task, cell in zip(LU_TASKS, text.split(), strict=True) if cell != "–"}
        marked = [f"{task}{cell[-1]}" for task, cell in cells.items() if not cell[-1].isdigit()]
        made.append(
            Reported(
                model,
                ", ".join([source, *marked]),
                {task: float(cell.rstrip("†♣")) for task, cell in cells.items()},
            )
        )
    return tuple(made)


LU_TABLE_3 = _lu("Table 3", _TABLE_3)
LU_TABLES_4_TO_6 = _lu("Tables 4 to 6", _TABLES_4_TO_6)


# The table of section 5.4 of TEA-BERT, its baselines, and the figure of section 6: accuracy of SST and of
# paraphrases, correlation of STS, and their mean, on the dev split, without a spread.

MOU_CITATION = (
    "C. Mou, Z. Xu and H. Yao, Multitask BERT with Task Embedded Attentions (TEA-BERT), Stanford CS224N "
    "project report"
)
MOU_TASKS = ("sst", "quora", "sts", "mean")

_TABLE_5_4 = {
    ("Baseline (sst)", "0.010"): "0.476 0.506 0.289 0.424",
    ("Baseline (all)", "0.010"): "0.378 0.692 0.483 0.518",
    ("Task Embedding at Input Layer", "0.000"): "0.483 0.706 0.627 0.605",
    ("Task Embedding at Input Layer", "0.001"): "0.484 0.688 0.575 0.582",
    ("Task Embedding at Input Layer", "0.010"): "0.444 0.647 0.568 0.553",
    ("Task Embedding at Attention Layer", "0.000"): "0.469 0.699 0.574 0.581",
    ("Task Embedding at Attention Layer", "0.001"): "0.510 0.698 0.552 0.587",
    ("Task Embedding at Attention Layer", "0.010"): "0.445 0.707 0.515 0.556",
    ("Projected Task-embedded Attention", "0.000"): "0.480 0.709 0.590 0.593",
    ("Projected Task-embedded Attention", "0.001"): "0.442 0.710 0.596 0.583",
    ("Projected Task-embedded Attention", "0.010"): "0.441 0.647 0.489 0.526",
    ("Task-embedded Attention with ELU", "0.000"): "0.392 0.615 0.511 0.506",
    ("Task-embedded Attention with ELU", "0.001"): "0.374 0.683 0.489 0.515",
    ("Task-embedded Attention with ELU", "0.010"): "0.289 0.662 0.421 0.457",
    ("Task-embedded Attention with Tanh", "0.000"): "0.366 0.603 0.411 0.460",
    ("Task-embedded Attention with Tanh", "0.001"): "0.366 0.692 0.444 0.501",
    ("Task-embedded Attention with Tanh", "0.010"): "0.318 0.632 0.367 0.439",
    ("Task-embedded Attention with SeLU", "0.000"): "0.369 0.694 0.543 0.535",
    ("Task-embedded Attention with SeLU", "0.001"): "0.390 0.667 0.449 0.502",
    ("Task-embedded Attention with SeLU", "0.010"): "0.330 0.668 0.358 0.452",
    ("Test leaderboard", "0.000"): "0.486 0.705 0.623 0.605",
}


def _mou() -> tuple[Reported, ...]:
    rows = [
        Reported(
            model,
            f"Table 5.4, weight decay {float(decay):g}",
            {task: round(100 * float(cell), 1) for task, cell in zip(MOU_TASKS, text.split(), strict=True)},
        )
        for (model, decay), text in _TABLE_5_4.items()
    ]
    shared = Reported("Task Embedding at Input Layer, task-sharable layers", "section 6", {"sts": 44.2})
    return (*rows, shared)


MOU_TABLE_5_4 = _mou()
