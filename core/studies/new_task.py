"""A study of the gain that a task with few sentences has from heads that are already trained.

The base run learns tasks from 400 sentences of each corpus over frozen MiniLM, its heads drawn to zero. The
new task is added to it from 10 to 500 sentences. Test sentences and base are the same in all methods.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from core.registry import PREDICTED
from core.studies.study import Asked, Candidates, Method, Setting, Study, mrn_candidates
from core.wording import uncapitalised

_OLD, _DEV, _TEST = 400, 30, 400
# With 1e-3 to 3e-2 dev chose an edge in half of the settings: half a decade more on each side.
_LAMBDAS = (3e-4, 1e-3, 3e-3, 1e-2, 3e-2, 1e-1)
_DEFAULT = 5e-3
_OLD_EPOCHS = 20
_EPOCHS = {10: 60, 50: 60, 200: 30, 500: 20}
"""By the number of new sentences."""

_TASKS: dict[str, tuple[str, str, str, str]] = {
    "XPOS": (
        "XPOS of web reviews beside POS of two news corpora",
        "streusle+conll2000+conll2003",
        "xpos",
        "pos@conll2000 pos@conll2003",
    ),
    "UPOS": (
        "UPOS of LinES beside UPOS of web reviews and POS of two news corpora",
        "ud-lines+streusle+conll2000+conll2003",
        "upos@ud-lines",
        "upos@streusle pos@conll2000 pos@conll2003",
    ),
    "other tags": (
        "UPOS of web reviews beside POS of two news corpora",
        "streusle+conll2000+conll2003",
        "upos",
        "pos@conll2000 pos@conll2003",
    ),
    "chunk": (
        "Chunks of CoNLL-2000 beside chunks, POS and NER of CoNLL-2003",
        "conll2000+conll2003",
        "chunk@conll2000",
        "chunk@conll2003 pos@conll2003 ner",
    ),
    "NER": (
        "NER of CoNLL-2003 beside chunks and POS of CoNLL-2000 and supersenses",
        "conll2003+conll2000+streusle",
        "ner",
        "chunk@conll2000 pos@conll2000 supersense",
    ),
}
"""By part the title, corpora (the new task's first), the new task, the trained ones."""


def _sampled(corpora: str, train: int) -> str:
    """A sample of each corpus's training sentences, drawn by seed and corpus alone."""
    return f"joined:{corpora}?train={train}&dev={_DEV}&test={_TEST}"


def _pooled(base: Mapping[str, Any]) -> Candidates:
    """All tasks from the start, labels of equal name in one row: the new sentences and the base's."""
    corpora, _, sizes = base["corpus"].partition("?train=")
    new, _, rest = sizes.partition("&")
    train = ",".join([new, *[str(_OLD)] * corpora.count("+")])
    fields = {"paradigm": "mtl", "heads": "shared", "epochs": _OLD_EPOCHS}
    return (fields | {"corpus": f"{corpora}?train={train}&{rest}"},)


_METHODS = (
    Method(
        "alone",
        "Alone",
        ({"paradigm": "stl"},),
        words="a head trained alone",
        meaning="The head of the new task is trained without the other heads.",
    ),
    Method(
        "ridge",
        "Ridge",
        mrn_candidates(_LAMBDAS, PREDICTED, alignment="disjoint"),
        words="a head drawn to zero",
        meaning="The head of the new task is drawn to zero (ridge).",
    ),
    Method(
        "predicted",
        "Predicted",
        mrn_candidates([_DEFAULT], PREDICTED),
        words="a head predicted from trained ones",
    ),
    Method(
        "predicted-dev",
        "Predicted, λ by dev",
        mrn_candidates(_LAMBDAS, PREDICTED),
        base="predicted",
        words="a predicted head with λ chosen on dev",
        meaning="As a predicted head, with the strength of the pull (λ) that scores best on dev.",
    ),
    Method("pooled", "Pooled", candidates_for=_pooled, words="one head for all tasks"),
)


def _setting(part: str, sentences: int) -> Setting:
    title, corpora, new, trained = _TASKS[part]
    return Setting(
        f"{part.lower().replace(' ', '-')}-{sentences}",
        f"{title}, from {sentences} sentences",
        part,
        {
            "corpus": _sampled(corpora, sentences),
            "tasks": (new, *trained.split()),
            "encoder_training": "frozen",
            "epochs": _EPOCHS[sentences],
            "lr_heads": 0.03,
            "select_by": "last",
        },
        (new,),
        tuple(method.name for method in _METHODS),
        added_to={
            "corpus": _sampled(corpora, _OLD),
            "epochs": _OLD_EPOCHS,
            "paradigm": "mrn",
            "alignment": "disjoint",
            "lambda": 3e-3,
        },
        words=f"{uncapitalised(title.partition(' beside ')[0])} with {sentences} sentences",
    )


STUDY = Study(
    "new-task",
    "A new task",
    "Can a new task with few sentences learn from the trained heads of other tasks?",
    tuple(_setting(part, sentences) for part in _TASKS for sentences in _EPOCHS),
    _METHODS,
    "ridge",
    search_seeds=(71, 72),
    seeds=(71, 72, 73, 74, 75),
    protocol=(
        f"Frozen MiniLM; base heads have {_OLD} sentences of each corpus and λ = 0.003, tests {_TEST}; of "
        f"web reviews there are 454 in all. The last epoch counts. {_DEV} development sentences of each "
        "search seed choose λ of Ridge and of Predicted, λ by dev: more than a task of ten sentences can "
        f"spare. Alone, Predicted (λ = {_DEFAULT}) and Pooled use none. Pooled trains all tasks from the "
        "start, on the sentences of the base too. A record has no weights: for runs still to come it trains "
        "their base again."
    ),
    small={"setting": "xpos-10"},
    asked=Asked(("predicted",), lambda setting: f"with {setting.name.rpartition('-')[2]} sentences"),
)
