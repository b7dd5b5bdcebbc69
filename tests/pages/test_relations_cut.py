"""Relations cuts a link: the button queues seeds with a mapping, or says why not; the loss is shown."""

from __future__ import annotations

from contextlib import closing
from pathlib import Path

from streamlit.testing.v1 import AppTest

from core.mrn.alignments.cut import cut_of
from core.store import RunState, Store
from dashboard.relations.cut import links
from dashboard.relations.views import Rows
from tests.cut_store import corpus, trained
from tests.pages.conftest import App, Open, app_at, problems, words


def opened(run: int) -> AppTest:
    """Relations of that run with its pair of tasks chosen."""
    app: App = app_at("relations")  # type: ignore[assignment]
    app.query_params.update({"run": str(run), "pair": ["a", "b"]})
    return app.run()


def test_a_link_is_cut_and_its_loss_shown(open_page: Open, laboratory: Path) -> None:
    config = corpus(laboratory / "small", "exact")
    with closing(Store.open()) as store:
        runs = [trained(store, config.with_(seed=seed), seed % 2) for seed in range(1, 7)]
    app = opened(runs[0])
    assert problems(app) == []
    app.button(key="cut_link_a,b").click().run()
    assert problems(app) == []
    with closing(Store.open()) as store:
        queued = store.runs(states={RunState.QUEUED})
        assert {run.config.seed for run in queued} == set(range(1, 7))
        assert {cut_of(str(run.config.alignment)) for run in queued} == {"a–b"}
        for run in queued:
            trained(store, run.config, 6 + run.config.seed % 2 + (run.config.seed == 1))
    app = opened(runs[0])
    assert "Cutting a–b costs a 1" in words(app)
    compare = open_page("compare", run=",".join(map(str, range(1, 19))))
    assert "Cutting a–b costs a 1" in words(compare)


def test_what_cannot_be_cut_is_a_sentence(open_page: Open, laboratory: Path) -> None:
    config = corpus(laboratory / "small", "disjoint")
    with closing(Store.open()) as store:
        run = trained(store, config, 0)
    app = opened(run)
    app.button(key="cut_link_a,b").click().run()
    assert any("a and b share no row" in text for text in problems(app))


def test_labels_are_cut_where_a_row_links_tasks() -> None:
    """Under `exact` a row is a label name: the link is between the tasks that share it."""
    shared = Rows(("N", "V", "X"), (("a", "b", "c"), ("a", "b"), ("a",)))
    of_v = [("a:V", "b:V")]
    assert links("exact", "label", shared, ("V", "X")) == of_v
    assert links("exact", "label", shared, ("N", "V")) == [
        ("a:N", "b:N"), ("a:N", "c:N"), ("b:N", "c:N"), *of_v
    ]  # fmt: skip
    apart = Rows(("a:N", "a:V", "b:V"), (("a",), ("a",), ("b",)))
    assert links("cooccurrence", "label", apart, ("a:N", "b:V")) == [("a:N", "b:V")]
    assert links("cooccurrence", "label", apart, ("a:N", "a:V")) == []
    assert links("exact", "task", shared, ("a", "b")) == [("a", "b")]


def test_a_label_that_tasks_share_is_cut_on_the_page(open_page: Open, laboratory: Path) -> None:
    config = corpus(laboratory / "small", "exact").with_(learn=("task", "label"))
    with closing(Store.open()) as store:
        run = trained(store, config, 0)
    app: App = app_at("relations")  # type: ignore[assignment]
    app.query_params.update({"run": str(run), "mode": "Labels", "pair": ["N", "V"]})
    app.run()
    app.button(key="cut_link_a:V,b:V").click().run()
    assert problems(app) == []
    with closing(Store.open()) as store:
        queued = store.runs(states={RunState.QUEUED})
    assert [cut_of(str(of.config.alignment)) for of in queued] == ["a:V–b:V"]
