"""Starting points of the Launch page: forms with the settings of published tables."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from core.config import PRESETS
from core.config.typed import value_text
from dashboard.launch.draft import OPTIONS, Draft


@dataclass(frozen=True)
class FormPreset:
    """A form that one click fills in."""

    title: str
    description: str
    form: Draft


_ENCODERS = ("bert-base-cased", "bert-base-cased+bilstm", "roberta-base")


def _table(
    corpus: str, tasks: tuple[str, ...], preset: str = "dissertation", **lists: str | tuple[str, ...]
) -> Draft:
    """A form with all settings of a preset and five seeds; `lists` override them."""
    shared = {
        name: (value_text(value),) if name in OPTIONS else value_text(value)
        for name, value in PRESETS[preset].items()
    }
    return Draft(
        corpus, tasks=tasks, lists={"paradigm": ("stl", "mtl", "mrn"), **shared, "seed": "1-5", **lists}
    )


_CHANG: tuple[FormPreset, ...] = (
    FormPreset(
        "Table 1",
        "CoNLL-2003: NER, chunking and POS; BERT, BERT-BiLSTM and RoBERTa; 5 seeds",
        _table("conll2003", ("pos", "chunk", "ner"), encoder=_ENCODERS),
    ),
    FormPreset(
        "Table 2",
        "CoNLL-2000: chunking and POS; BERT, BERT-BiLSTM and RoBERTa; 5 seeds",
        _table("conll2000", ("pos", "chunk"), encoder=_ENCODERS),
    ),
    FormPreset(
        "Table 3",
        "POS of both corpora together, 5% and 10% of each; BERT; labels of equal name share a row; 5 seeds",
        _table(
            "both-pos",
            ("pos-2003", "pos-2000"),
            paradigm=("mtl", "mrn"),
            alignment=("exact",),
            fraction="0.05, 0.1",
            # As the program draws: corpora in turn, a fresh share in each epoch, no dev sentences.
            select_by=("last",),
            corpus_order=("in_turn",),
            fraction_draw=("each_epoch",),
        ),
    ),
)

_LU: tuple[FormPreset, ...] = (
    FormPreset(
        "SC-LSTM",
        "CoNLL-2003: NER, chunking and POS; LSTM-s, LSTM-d and SC-LSTM with the settings of Table 3; 5 seeds",
        _table("conll2003", ("pos", "chunk", "ner"), "sc-lstm", encoder=("bilstm", "lstm-d", "sc-lstm")),
    ),
)

TABLES: Mapping[str, tuple[FormPreset, ...]] = {"Chang (2022)": _CHANG, "Lu et al. (2019)": _LU}
"""By paper, the forms with its settings."""
