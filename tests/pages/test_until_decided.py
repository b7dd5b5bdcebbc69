"""The button *Add seeds until decided*: it declares the plan, starts its follower, and shows its looks."""

from __future__ import annotations

import contextlib
import os
from pathlib import Path
from types import SimpleNamespace

import pytest
from streamlit.testing.v1 import AppTest

from core.results.plan import Plan
from core.store import Store
from jobs.studies.decide import decide, follower_name
from jobs.studies.followers import follower
from tests.deciding import score_of, workers
from tests.making import config
from tests.patience import PATIENCE_S
from tests.studying import finished


def page(first: int, second: int) -> None:
    """The button alone, for the rows of these runs."""
    from dashboard.compare.until_decided import add_until_decided
    from dashboard.shared import resources
    from jobs.cli.decide import rows_of

    add_until_decided(*rows_of(resources.store(), first, second), 0.005)


def test_a_click_declares_the_plan_and_starts_one_process(
    laboratory: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    started: list[list[str]] = []

    def start(command: list[str], _url: str) -> SimpleNamespace:
        started.append(command)
        return SimpleNamespace(pid=os.getpid(), poll=lambda: None)

    monkeypatch.setattr("jobs.studies.followers.start", start)
    with contextlib.closing(Store.open()) as store:
        runs = [config(paradigm=each, seed=1) for each in ("mrn", "mtl")]
        pair = tuple(finished(store, run, score=score_of) for run in runs)
        app = AppTest.from_function(page, args=pair, default_timeout=PATIENCE_S).run()
        assert [button.label for button in app.button] == ["Add seeds until decided"]
        app.button[0].click().run()
        assert not app.exception
        (stored,) = store.plans()
        plan = Plan.from_json(stored.plan)
        assert (plan.matters, plan.looks) == (0.005, (5, 8, 12, 20))
        assert [command[-3:] for command in started] == [["decide", *map(str, pair)]]
        assert follower(store, follower_name(plan)) is not None
        # While it is followed it can be stopped, and nothing starts it again.
        assert [button.label for button in app.button] == ["Stop adding seeds"]
        assert "before the first of four looks" in app.caption[0].value
        monkeypatch.setattr("dashboard.compare.until_decided.follower", lambda *_: None)
        assert [button.label for button in app.run().button] == ["Add seeds until decided"]
        decide(store, plan, lambda _: None, engine=workers(), sleep=lambda _: None)
        app.run()
        assert [button.label for button in app.button] == []
        assert "of four looks\\: higher" in app.caption[0].value


def test_what_cannot_be_planned_is_said(laboratory: Path) -> None:
    with contextlib.closing(Store.open()) as store:
        runs = [config(paradigm="mrn", seed=1), config(paradigm="stl", tasks=("chunk",), seed=1)]
        pair = tuple(finished(store, run, score=score_of) for run in runs)
        app = AppTest.from_function(page, args=pair, default_timeout=PATIENCE_S).run()
        app.button[0].click().run()
        assert not app.exception
        assert "have no task in common" in "".join(each.value for each in app.warning)
        assert store.plans() == []
