"""Runs are chosen on every page alike, as chips."""

from __future__ import annotations

from pathlib import Path

from streamlit.testing.v1 import AppTest

from core.store import Store
from tests.pages.conftest import words
from tests.pages.filled_store import Filled
from tests.patience import PATIENCE_S


def _page() -> None:
    import streamlit as st

    from dashboard.shared.run_picker import pick_runs

    picked = pick_runs(key="x", suitable=lambda run: run.config.paradigm == "mrn")
    st.markdown("nothing" if picked is None else f"picked {[run.id for run in picked]}")


def _open(**query: str) -> AppTest:
    app = AppTest.from_function(_page, default_timeout=PATIENCE_S)
    for name, value in query.items():
        app.query_params[name] = value
    return app.run()


def test_without_a_suitable_run_nothing_is_drawn(laboratory: Path) -> None:
    app = _open()
    assert words(app) == "nothing"
    assert not app.multiselect


def test_the_links_runs_are_picked_and_unsuitable_ones_left_out(finished: Filled) -> None:
    stl = next(run for run in finished.finished if run not in finished.mrn)
    first, second = finished.mrn[:2]
    app = _open(run=f"{second},{stl},{first}")
    assert words(app) == f"picked {[second, first]}"


def test_a_link_to_runs_that_are_gone_says_so_and_shows_no_others(finished: Filled) -> None:
    first, second = finished.mrn[:2]
    Store.open().delete_runs([first])
    app = _open(run=str(first))
    assert [one.value for one in app.warning] == [f"Run {first} was deleted."]
    assert "picked []" in words(app)
    app = _open(run=f"{first},99999,{second}")
    assert [one.value for one in app.warning] == [
        f"Run {first} was deleted. There is no run 99999 in this store."
    ]
    assert f"picked [{second}]" in words(app)
    app.multiselect(key="x").set_value([second, finished.mrn[2]]).run()
    assert not app.warning


def test_an_archived_run_is_offered_to_nobody_but_a_link_to_it_is_good(finished: Filled) -> None:
    run = finished.mrn[0]
    Store.open().archive([run])
    assert run not in _open(run=str(finished.mrn[1])).multiselect[0].value
    assert words(_open(run=str(run))) == f"picked {[run]}"
