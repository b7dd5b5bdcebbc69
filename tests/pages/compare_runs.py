"""Runs with scores in the store, and the tables of Compare, for tests of its page."""

from __future__ import annotations

from typing import Any

import pandas as pd
from streamlit.testing.v1 import AppTest

from core.config import RunConfig
from core.events import SplitResult
from core.store import Store
from tests.making import finished as finished_as
from tests.making import run_facts, task_score
from tests.pages.conftest import (
    sent,
    sheets,
)


def finished_run(
    config: RunConfig, value: float, labels: dict[str, Any] | None = None, *, text: str = ""
) -> int:
    """A run that ended well, with that score on all its tasks and these gold labels, predicted rightly."""
    scores = tuple(task_score(task, value) for task in config.tasks)
    results = (SplitResult(split, 1, scores, labels or {}, labels or {}) for split in ("dev", "test"))
    return finished_as(Store.open(), config, *([run_facts(text_hash=text)] if text else []), *results)


def mtl(seed: int = 1, **more: Any) -> RunConfig:
    values = {"corpus": "demo", "encoder_training": "frozen", "tasks": ("pos", "ner"), "paradigm": "mtl"}
    return RunConfig.build(seed=seed, **(values | more))


def copied_scores(app: AppTest) -> str:
    """The LaTeX of the table of scores, which a click copies."""
    formats = sent(app, "formats")["formats"]
    assert [copied["name"] for copied in formats] == ["LaTeX", "Markdown", "CSV", "TSV"]
    return str(formats[0]["text"])


def in_numbers(app: AppTest) -> pd.DataFrame:
    """The table of differences, a row a task, by the names that stand above their rows."""
    if app.session_state["closer"] != "differences":
        app.segmented_control(key="closer").set_value("differences").run()
    table: pd.DataFrame = sheets(app)[1]
    is_title = (table == "").all(axis=1).to_numpy()
    names = pd.Series(table.index).where(is_title).ffill()
    return table.assign(Task=table.index).set_axis(pd.Index(names), axis=0)[~is_title]
