"""Runs that are not like the others: each costs a sentence, never a page or a list.

Runs that add a task, runs whose description or facts no longer hold, and names that mean something elsewhere.
"""

from __future__ import annotations

import pytest
from streamlit.testing.v1 import AppTest
from typer.testing import CliRunner

from jobs.cli import app as program
from tests.pages.conftest import Open, page_names, sent
from tests.pages.filled_store import Filled, fill_added


def answer(*arguments: str) -> str:
    """Standard output of a verb that must succeed."""
    result = CliRunner().invoke(program, list(arguments), catch_exceptions=False)
    assert result.exit_code == 0, result.stderr
    return result.stdout


def problems(app: AppTest) -> list[str]:
    """What the page says in place of a part that could not be drawn."""
    return [warning.value for warning in app.warning if warning.icon == ":material/error:"]


@pytest.mark.parametrize("page", [*page_names(), "run"])
def test_runs_that_add_a_task_are_on_every_page(page: str, open_page: Open, finished: Filled) -> None:
    added = fill_added()
    chosen = ",".join(map(str, (*added, *finished.mrn[:2])))
    app = open_page(page, **({"id": str(added[0])} if page == "run" else {"run": chosen}))
    assert problems(app) == []
    names = {
        "compare": [option for box in app.selectbox for option in box.options],
        "curves": [row["name"] for row in sent(app, "runsDrawn").get("rows", ())],
    }
    for end in (" · added to 1", " · added to 2"):
        assert page not in names or any(name.endswith(end) for name in names[page])


def test_runs_that_add_a_task_are_in_reports(finished: Filled) -> None:
    added = [str(run) for run in fill_added()]
    table = answer("results")
    assert "added to 1" in table
    assert "added to 2" in table
    for form in ("latex", "markdown"):
        assert "--added-to 2" in answer("appendix", *added, str(finished.mrn[0]), "--format", form)
