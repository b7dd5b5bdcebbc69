"""The card on Launch that asks which tasks help each other: its runs, the advice, the sweep."""

from __future__ import annotations

from itertools import permutations

import pytest

from core.records import StepMetrics
from core.store import RunState, Store
from core.transfer.affinity import affinity_curves
from core.transfer.prediction import EVEN, HELPS, HURTS, lessons
from jobs.reports import advise
from tests.making import OWNER, run_facts, split_result, step_metrics
from tests.pages.conftest import Open, words
from tests.unit.test_prediction import evidence, planted


def _train(store: Store) -> None:
    """Ends all runs that wait, with numbers as a training leaves them."""
    while (run := store.claim(OWNER, due_in=15)) is not None:
        store.set_facts(run.id, run_facts())
        store.add_metrics(run.id, [step_metrics(step, 2 / step) for step in range(1, 30)])
        cosines = dict.fromkeys(affinity_curves(run.config.tasks), 0.5)
        store.add_metrics(run.id, [StepMetrics(25, 2.5, 1.0, cosines)])
        store.add_result(run.id, split_result("test"))
        store.finish(run.id, RunState.SUCCEEDED, best_epoch=1, owner=OWNER)


def test_the_card_asks_answers_and_settles(
    open_page: Open, workers: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(advise, "packaged", lambda part: lessons(evidence(planted)))
    app = open_page("launch")
    app.button(key="task_advice_ask").click().run()
    assert workers
    store = Store.open()
    (joint,) = store.runs()
    assert (joint.config.paradigm, joint.config.tasks) == ("mtl", ("pos", "chunk", "ner"))
    assert [bar.proto.text for bar in app.get("progress")] == ["0 of 1 run done"]

    _train(store)
    app.run()
    (table,) = (shown.value for shown in app.table if "beside" in shown.value.columns)
    assert set(zip(table.index, table["beside"], strict=True)) == set(
        permutations(("pos", "chunk", "ner"), 2)
    )
    assert {text.replace("\u00a0", " ") for text in table["advice"]} <= {HELPS, HURTS, EVEN}
    assert "where it has seen neither task" in words(app)
    (settle,) = (button for button in app.button if button.label.startswith("Launch 30 runs"))
    settle.click().run()
    assert len(store.runs()) == 1 + 30
    store.close()


def test_what_cannot_be_asked_is_said(open_page: Open) -> None:
    app = open_page("launch", tasks="pos")
    app.button(key="task_advice_ask").click().run()
    assert "one task helps no other" in words(app)
    assert Store.open().runs() == []
