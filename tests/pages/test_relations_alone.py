"""The Relations page beside what the alignment alone gives."""

from __future__ import annotations

import contextlib
from typing import Any

import numpy as np

from core.mrn.relations import Relations
from core.store import RunState, Store
from tests.making import run_facts
from tests.pages.conftest import Open, words
from tests.pages.matrices import learned_run, lines, listed, matrix, shown


def test_labels_are_shown_beside_what_the_alignment_alone_gives(open_page: Open) -> None:
    names = ("pos:NN", "pos:,", "ner:O", "ner:B-PER")
    alone, learned = matrix(4, _02=0.97, _13=0.1), matrix(4, _02=0.95, _03=0.5, _13=-0.8)
    facts = run_facts(
        alignment="cooccurrence",
        meet=((True, True), (True, True)),
        label_names=names,
        label_owners=tuple((name.split(":")[0],) for name in names),
        aligned=tuple(map(tuple, alone.tolist())),
    )
    runs = []
    with contextlib.closing(Store.open()) as store:
        for seed in (1, 2, 3):
            found = Relations(np.eye(2), learned, np.zeros((6, 0)), 1.0)
            runs.append(learned_run(found, facts, seed=seed, learn=("task", "label")))
            store.finish(runs[-1], RunState.SUCCEEDED, best_epoch=1)
    link: dict[str, Any] = {"run": ",".join(map(str, runs)), "mode": "Labels"}
    app = open_page("relations", **link, ranked="By value")
    assert list(listed(app).columns) == ["First", "Second", "Correlation", "Alignment alone", "Verdict"]
    assert listed(app).iloc[0].tolist() == ["pos:NN", "ner:O", "0.95", "0.97", "○ related"]
    assert listed(app).iloc[-1].tolist() == ["pos:,", "ner:B-PER", "−0.80", "0.10", "× opposed"]
    assert [(line["quiet"], line["parted"]) for line in lines(app)] == [
        (True, False), (False, False), (False, True),
    ]  # fmt: skip
    assert lines(app)[-1]["short"] == ["pos:comma", "ner:B-PER"]
    assert shown(app).frame["rows"]["short"][:2] == ["NN", "comma"]
    # NN and O have a mark of their own, and the headline counts the others that are related.
    assert shown(app).frame["panels"][0]["verdicts"]["codes"] == "5062543505"
    assert "○ related as far as by the alignment alone" in shown(app).frame["foot"]
    text = words(app)
    assert (
        "1 of 4 pairs of labels came out related more than their words in common explain: pos:NN and "
        "ner:B-PER (0.50"
    ) in text
    assert "1 came out opposed: pos:comma and ner:B-PER" in text
    assert (
        "Before training, labels that fall on the same words are already linked (alignment); that alone "
        "relates 1 more pair as far.\n- Furthest beyond that: pos:NN and ner:B-PER, at 0.50 instead of 0.00."
    ) in text
    beyond = listed(open_page("relations", **link))
    assert beyond.iloc[0].tolist() == ["pos:NN", "ner:B-PER", "0.50", "0.00", "● related"]
