"""Encoders over word vectors that share in different ways, and MRN over the smallest of them.

Lu, Bai and Langlais (SC-LSTM, NAACL-HLT 2019) compare STL, LSTM-s, LSTM-d and SC-LSTM on POS, chunks and NER,
each from a corpus of its own. The parts `10%` and `30%` do so in a size that two cores train in an hour; `all
data` has the size, the batches and the sentences of the paper, `grid search` its search for that size.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from itertools import combinations, permutations, product
from typing import Any

from core.studies.published import LU_CITATION, LU_TABLE_3, LU_TABLES_4_TO_6, Reported
from core.studies.study import (
    PUBLISHED,
    RELATIONAL,
    Candidates,
    Method,
    Paper,
    Setting,
    Study,
    mrn_candidates,
    one_rate,
)
from core.wording import all_of

POS, CHUNKS, NER = "upos", "chunk@conll2000", "ner"
_TASKS = {POS: "POS", CHUNKS: "chunks", NER: "NER"}
_CORPUS = "joined:conll2003+conll2000+ud-lines"


# What the paper's sections 4.2 and 4.3 say, and its Algorithm 1.
_TRAINING: dict[str, Any] = {
    "characters": "none",
    "input_dropout": 0.5,
    "dropout": 0.5,
    "optimiser": "adam",
    "lr_schedule": "constant",
    "weight_decay": 0.0,
    "clip_norm": 5.0,
    "draw_tasks": "uniform",
    "batch_size": 10,
    "alignment": "exact",
}
# The smallest size of their search (section 5.1). Tried on 10%: 12 epochs at a rate of 0.002
# give a dev average of 0.79 with one layer and 0.76 with two; 10 epochs at 0.005 give 0.80 with one.
_SMALL: dict[str, Any] = one_rate(5e-3) | {"bilstm_hidden": 100, "lstm_layers": 1}
_PUBLISHED: dict[str, Any] = one_rate(1e-3) | {
    "bilstm_hidden": 300,
    "lstm_layers": 3,
    "epochs": 30,
    "dev_sentences": 1000,
}
HIDDEN, LAYERS = (100, 200, 300, 400), (1, 2, 3)
"""The values that the paper searched for each MTL model (the caption of its Table 3)."""


def _lstm_d(order: tuple[str, ...], layers: int | None = None, **fields: Any) -> Mapping[str, Any]:
    """A candidate of LSTM-d, with a layer for each task where `layers` is None."""
    return {"paradigm": "mtl", "encoder": "lstm-d", "task_order": order, "lstm_layers": layers} | fields


def _orders(base: Mapping[str, Any]) -> Candidates:
    """LSTM-d with every task on every layer."""
    return tuple(map(_lstm_d, permutations(base["tasks"])))


def _sizes(encoder: str) -> Candidates:
    """An encoder in every size that the paper searched."""
    return tuple(
        {"paradigm": "mtl", "encoder": encoder, "bilstm_hidden": hidden, "lstm_layers": layers}
        for hidden, layers in product(HIDDEN, LAYERS)
    )


def _sized_orders(base: Mapping[str, Any]) -> Candidates:
    """LSTM-d in every size and order, but with one layer, which is LSTM-s."""
    return tuple(
        _lstm_d(order, layers, bilstm_hidden=hidden)
        for hidden, layers in product(HIDDEN, LAYERS[1:])
        for order in _different(base["tasks"], layers)
    )


def _different(tasks: Sequence[str], layers: int) -> Iterator[tuple[str, ...]]:
    """The orders that are different models: in which order tasks share the lowest layer does not matter."""
    sharing = len(tasks) - layers + 1
    for order in permutations(tasks):
        if [*order[:sharing]] == sorted(order[:sharing], key=tasks.index):
            yield order


_BY_DEV = "with the hidden size and the number of layers that score best on dev."
_METHODS = (
    Method(
        "stl",
        "STL",
        ({"paradigm": "stl", "encoder": "bilstm"},),
        meaning="A BiLSTM over word vectors for each task, trained alone.",
    ),
    Method(
        "lstm-s",
        "LSTM-s",
        ({"paradigm": "mtl", "encoder": "bilstm"},),
        meaning="One BiLSTM over word vectors, shared by all tasks; only the heads differ.",
    ),
    Method(
        "lstm-d",
        "LSTM-d",
        base="lstm-s",
        candidates_for=_orders,
        meaning="One stack of LSTM layers for all tasks; each task's head reads a layer of its own. Dev "
        "chooses which task reads which layer.",
    ),
    Method(
        "sc-lstm",
        "SC-LSTM",
        ({"paradigm": "mtl", "encoder": "sc-lstm"},),
        base="lstm-s",
        meaning="One LSTM for all tasks, to whose top layer each task adds an output gate of its own: its "
        "head reads the shared state and what this gate lets through.",
    ),
    # MRN over the heads of LSTM-s.
    Method(
        "relational",
        "MRN relational",
        mrn_candidates((1e-3, 1e-2), "relational", encoder="bilstm"),
        base="lstm-s",
        words=RELATIONAL,
    ),
    Method(
        "paper",
        "MRN paper",
        mrn_candidates((5e-3, 5e-2), "paper", encoder="bilstm"),
        base="lstm-s",
        words=PUBLISHED,
    ),
    Method(
        "sc-lstm-cnn",
        "SC-LSTM-CNN",
        ({"paradigm": "mtl", "encoder": "sc-lstm", "characters": "cnn"},),
        base="sc-lstm",
        meaning="SC-LSTM that also reads the characters of each word, with a small CNN.",
    ),
    Method(
        "sc-lstm-cnn-crf",
        "SC-LSTM-CNN-CRF",
        ({"paradigm": "mtl", "encoder": "sc-lstm", "characters": "cnn", "head": "crf"},),
        base="sc-lstm-cnn",
        meaning="SC-LSTM-CNN whose heads score whole label sequences, with a CRF.",
    ),
    Method(
        "lstm-s-sizes",
        "LSTM-s, size by dev",
        _sizes("bilstm"),
        meaning=f"LSTM-s, {_BY_DEV}",
    ),
    Method(
        "lstm-d-sizes",
        "LSTM-d, size by dev",
        base="lstm-s-sizes",
        candidates_for=_sized_orders,
        meaning=f"LSTM-d, {_BY_DEV} Dev chooses which task reads which layer, too.",
    ),
    Method(
        "sc-lstm-sizes",
        "SC-LSTM, size by dev",
        _sizes("sc-lstm"),
        base="lstm-s-sizes",
        meaning=f"SC-LSTM, {_BY_DEV}",
    ),
)
_SHARED = ("stl", "lstm-s", "lstm-d", "sc-lstm")
_ALL = (*_SHARED, "relational", "paper")
_WITH_CRF = (*_ALL, "sc-lstm-cnn", "sc-lstm-cnn-crf")
_SIZED = ("stl", "lstm-s-sizes", "lstm-d-sizes")

_ALL_TASKS = tuple(_TASKS)
_SUBSETS = (_ALL_TASKS, *combinations(_ALL_TASKS, 2))


def _setting(part: str, tasks: tuple[str, ...], methods: tuple[str, ...], **base: Any) -> Setting:
    """All three tasks have a row in the part's table, pairs have none."""
    words = [_TASKS[task] for task in tasks]
    return Setting(
        "-".join([part.rstrip("%").replace(" ", "-"), *(word.lower() for word in words)]),
        f"{' + '.join(words)}, {part}",
        part,
        _TRAINING | {"tasks": tasks} | base,
        tasks,
        methods,
        model="ours" if tasks == _ALL_TASKS else "",
        words=f"{all_of(words)} with {part}{' of the sentences' * part.endswith('%')}",
    )


def _share(percent: int, tasks: tuple[str, ...], methods: tuple[str, ...], **base: Any) -> Setting:
    """A share of the sentences, small models, few dev sentences."""
    return _setting(
        f"{percent}%",
        tasks,
        methods,
        **_SMALL,
        corpus=f"{_CORPUS}?dev=500",
        fraction=percent / 100,
        **base,
    )


_GRID = _setting("grid search", _ALL_TASKS, (*_SIZED, "sc-lstm-sizes"), corpus=_CORPUS, **_PUBLISHED)


def _main_task_setting(task: str) -> Setting:
    """Sizes and orders chosen for one task: the paper reports LSTM-s and LSTM-d by their best for each."""
    return replace(
        _GRID,
        name=f"grid-search-main-{_TASKS[task].lower()}",
        title=f"Main task {_TASKS[task]}, grid search",
        targets=(task,),
        methods=_SIZED,
        model="",
        words=f"{_TASKS[task]} as the main task",
    )


_DEMO = Setting(
    "demo",
    "POS + chunks + NER of the demo corpus",
    "demo",
    _TRAINING
    | one_rate(5e-3)
    | {"corpus": "apart:demo?tokens=500&dev=100&test=200", "tasks": ("pos", "chunk", "ner")}
    | {"bilstm_hidden": 32, "lstm_layers": 1, "epochs": 8},
    ("pos", "chunk", "ner"),
    _ALL,
)
_SETTINGS = (
    *(
        _share(10, tasks, _ALL if tasks == _ALL_TASKS else _SHARED, epochs=10, dev_sentences=200)
        for tasks in _SUBSETS
    ),
    _share(30, _ALL_TASKS, _WITH_CRF, epochs=6, dev_sentences=400),
    *(
        _setting(
            "all data",
            tasks,
            _WITH_CRF if tasks == _ALL_TASKS else _ALL,
            corpus=_CORPUS,
            **_PUBLISHED,
        )
        for tasks in _SUBSETS
    ),
    _GRID,
    *(_main_task_setting(task) for task in _ALL_TASKS),
    _DEMO,
)

_PROTOCOL = (
    "POS is that of UD English LinES (the paper's is UD English v1.3), chunks are those of CoNLL-2000, named "
    "entities those of CoNLL-2003; each task has the sentences of its own corpus alone. Inputs are GloVe "
    "vectors (100) and capitalisation, characters in the CNN models alone. Each batch of 10 sentences "
    "belongs to one task, drawn alike among those with batches left. Adam at a constant rate, gradient norm "
    "at most 5, dropout 0.5. Dev chooses the epoch, the order of LSTM-d and λ. Of CoNLL-2000, which has no "
    "dev split, 200 (10%), 400 (30%) or 1,000 (all) training sentences are held out. 10% and 30%: hidden "
    "size 100, one layer, rate 0.005, 10 and 6 epochs, and 500 dev sentences of each other corpus. All data: "
    "hidden size 300, 3 layers, rate 0.001 and 30 epochs, as in the paper. LSTM-d has a layer for each task. "
    "Grid search: as all data, but dev chooses the hidden size (100 to 400) and the number of layers (1 to "
    "3) of each MTL model too, for the mean over tasks or for a main task; STL keeps 300 and 3. MRN aligns "
    "labels by name; O of chunks and entities is the only name that two tasks share."
)
_NOTE = (
    "Reported rows have all data and the published size, and no spread, so there is no verdict. Their POS "
    "is that of UD English v1.3, ours of UD English LinES: two corpora. † is a model that they trained "
    "themselves, ♣ one that was trained on the dev sentences too."
)


def _paper(title: str, reported: tuple[Reported, ...]) -> Paper:
    return Paper(title, LU_CITATION, _NOTE, reported, is_compared=False)


STUDY = Study(
    "sc-lstm",
    "Sharing an LSTM",
    "Does one LSTM for several tasks beat an LSTM for each task, and does MRN help there?",
    _SETTINGS,
    _METHODS,
    "stl",
    papers={
        "10%": _paper("10% of the sentences, beside Table 3", LU_TABLE_3),
        "30%": _paper("30% of the sentences, beside Table 3", LU_TABLE_3),
        "all data": _paper("All data, beside Tables 3 to 6", (*LU_TABLE_3, *LU_TABLES_4_TO_6)),
        "grid search": _paper("All data, sizes chosen by dev, beside Table 3", LU_TABLE_3),
    },
    protocol=_PROTOCOL,
    by_task=True,
    by_epoch=True,
    small={"setting": "demo"},
)
