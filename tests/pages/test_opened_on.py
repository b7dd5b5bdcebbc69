"""What pages show of a store of several sweeps: what was chosen, else the newest sweep, no other run."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import closing
from pathlib import Path

import pytest
from streamlit.testing.v1 import AppTest

from core.events import Event
from core.store import RunState, Store
from dashboard.shared.selection import newest_sweep
from tests.making import OWNER, config, run_facts, snapshot, split_result, step_metrics
from tests.making import finished as finished_as
from tests.pages.conftest import (
    Open,
    figures,
    press,
    sheets,
    words,
)

DONE, TRAINS, WAITS = RunState.SUCCEEDED, RunState.RUNNING, RunState.QUEUED


def launched(name: str, *states: RunState, corpus: str = "demo") -> list[int]:
    """The runs of a sweep in these states: MTL and MRN in turn."""
    ids = []
    with closing(Store.open()) as store:
        for place, state in enumerate(states):
            run = config(paradigm=("mtl", "mrn")[place % 2], seed=place // 2, corpus=corpus)
            begun: list[Event] = [run_facts(), step_metrics(1), step_metrics(2), snapshot(1), snapshot(2)]
            if state is DONE:
                results = map(split_result, ("dev", "test"))
                ids.append(finished_as(store, run, *begun, *results, sweep=name, checkpoint=f"/gone/{name}"))
                continue
            ids += store.add_runs([run], name)
            if state is TRAINS:
                assert store.claim(OWNER, run_id=ids[-1])
                store.set_facts(ids[-1], run_facts())
                store.add_metrics(ids[-1], [step_metrics(1), step_metrics(2)])
                store.add_snapshot(ids[-1], snapshot(1))
                store.set_progress(ids[-1], 2, 0.2, 20)
    return ids


def chips(app: AppTest, page: str) -> set[int]:
    """The runs of the chips on top of a page."""
    return {int(run) for option in app.multiselect(key=f"{page}_runs").value for run in option.split(",")}


def linked(runs: Sequence[int]) -> dict[str, str]:
    return {"run": ",".join(map(str, runs))}


@pytest.mark.parametrize("states", [(DONE, TRAINS, TRAINS, WAITS, WAITS), (TRAINS, TRAINS, WAITS, WAITS)])
def test_pages_open_on_what_has_begun_of_the_newest_sweep(
    open_page: Open, states: Sequence[RunState]
) -> None:
    launched("old", DONE, DONE, DONE, DONE, corpus="demo-both-pos")
    new = launched("new", *states)
    begun = [run for run, state in zip(new, states, strict=True) if state is not WAITS]
    launched("waiting", WAITS, WAITS)
    assert chips(open_page("curves"), "curves") == set(begun)
    assert chips(open_page("relations"), "relations") == {run for run in begun if (run - new[0]) % 2}
    done = states.count(DONE)
    app = open_page("compare")
    assert len(sheets(app)) == (1 if done else 0)
    assert ("The newest sweep: 1 run on demo." in words(app)) is bool(done)
    assert ("0 of 4 runs done" in words(app)) is not bool(done)
    press(app, "All runs")
    assert "demo-both-pos" in app.selectbox(key="data").options if done else "on demo-both-pos" in words(app)
    assert len(sheets(app)) > 0


def test_tag_opens_on_the_configurations_of_the_newest_sweep(open_page: Open) -> None:
    launched("old", DONE, DONE, corpus="demo-both-pos")
    new = launched("new", DONE, DONE, DONE, DONE)
    launched("waiting", WAITS, TRAINS)
    assert chips(open_page("tag"), "tag") == set(new)


@pytest.mark.parametrize(("most", "shown"), [(6, [0, 1, 2, 3, 4, 5]), (5, [1, 3, 5]), (2, [1, 3, 5])])
def test_of_a_large_sweep_whole_configurations_are_shown(
    laboratory: Path, most: int, shown: Sequence[int]
) -> None:
    runs = launched("new", *[DONE] * 6)
    with closing(Store.open()) as store:
        assert sorted(newest_sweep(store.runs(), most)) == [runs[place] for place in shown]


@pytest.mark.parametrize("page", ["compare", "relations", "tag"])
def test_nothing_is_shown_of_runs_that_were_not_chosen(page: str, open_page: Open) -> None:
    launched("old", DONE, DONE, DONE, DONE, corpus="demo-both-pos")
    chosen = launched("new", TRAINS, WAITS, TRAINS, WAITS)[::2]  # of MTL, which learns no relations
    app = open_page(page, **linked(chosen))
    assert chips(app, page) == set()
    assert not sheets(app)
    assert not app.dataframe
    assert not figures(app)
    assert "demo-both-pos" not in words(app)
    assert page != "compare" or "0 of 2 runs done" in words(app)
    press(app, "Show the newest sweep")
    assert app.query_params.get("run") is None


def test_runs_that_all_failed_are_no_reason_to_compare_others(open_page: Open) -> None:
    launched("old", DONE, DONE)
    failed = launched("new", TRAINS)
    with closing(Store.open()) as store:
        store.finish(failed[0], RunState.FAILED)
    app = open_page("compare", **linked(failed))
    assert "0 of 1 run done" in words(app)
    assert app.get("progress")[-1].proto.text == "1 failed"
    assert not sheets(app)
