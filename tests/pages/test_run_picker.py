"""Runs are chosen on every page alike: chips, and a field that finds them."""

from __future__ import annotations

from pathlib import Path

import pytest
from streamlit.testing.v1 import AppTest

from core.store import Store
from dashboard.shared.run_views import find
from jobs.run_filter import parse_filter
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


def _find(app: AppTest, text: str) -> AppTest:
    app.session_state["x_finder"] = True
    app.run()
    return app.text_input(key="x_filter").set_value(text).run()


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


def test_a_filter_finds_configurations_with_all_their_seeds(finished: Filled) -> None:
    app = _find(_open(), "lambda:0.1")
    found = app.dataframe[0].value
    assert list(found["Runs"]) == [3]
    assert "0.1" in found["Configuration"][0]
    assert "1 configuration" in words(app)


@pytest.mark.parametrize(
    ("text", "sentence"),
    [
        ("paradgm:mrn", "Did you mean paradigm?"),
        ("paradigm:stl", "No run that this page can show matches."),
    ],
)
def test_a_filter_that_finds_nothing_says_why(finished: Filled, text: str, sentence: str) -> None:
    assert sentence in words(_find(_open(), text))


def test_what_is_found_keeps_the_order_of_runs_and_says_how_many_there_are(finished: Filled) -> None:
    runs = Store.open().runs()
    everything, count = find(runs, lambda run: True, 100)
    assert sorted(run_id for one in everything for run_id in one.run_ids) == sorted(run.id for run in runs)
    first, of = find(runs, lambda run: True, 2)
    assert [one.run_ids for one in first] == [one.run_ids for one in everything[:2]]
    assert of == count == len(everything)
    stl, _ = find(runs, parse_filter("paradigm:stl").matches, 100)
    assert len(stl) == 1  # the STL runs of all tasks stand in one row
    assert stl[0].seeds == 3
    assert len(stl[0].run_ids) == 9
