"""Starting points of the Launch page: forms with the settings of published tables."""

from __future__ import annotations

from collections.abc import Mapping

from core.config import PRESETS
from core.config.typed import value_text
from dashboard.launch.draft import OPTIONS, Draft

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


TABLES: Mapping[str, Draft] = {
    "Chang (2022), Table 1: CoNLL-2003, three encoders": _table(
        "conll2003", ("pos", "chunk", "ner"), encoder=_ENCODERS
    ),
    "Chang (2022), Table 2: CoNLL-2000, three encoders": _table(
        "conll2000", ("pos", "chunk"), encoder=_ENCODERS
    ),
    "Chang (2022), Table 3: POS of both, 5% and 10% of each": _table(
        "both-pos",
        ("pos-2003", "pos-2000"),
        paradigm=("mtl", "mrn"),
        alignment=("exact",),
        fraction="5%, 10%",
        # As the program draws: corpora in turn, a fresh share in each epoch, no dev sentences.
        select_by=("last",),
        corpus_order=("in_turn",),
        fraction_draw=("each_epoch",),
    ),
    "Lu et al. (2019), Table 3: LSTM-s, LSTM-d and SC-LSTM": _table(
        "conll2003", ("pos", "chunk", "ner"), "sc-lstm", encoder=("bilstm", "lstm-d", "sc-lstm")
    ),
}
"""By what they hold, the forms with the settings of published tables."""
