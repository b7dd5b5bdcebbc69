"""Odd runs, names and addresses: each costs a sentence, never a page or a list.

Runs that add a task, names that mean something elsewhere, and addresses that no page of ours writes.
"""

from __future__ import annotations

import json
import random
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st
from typer.testing import CliRunner

from core.events import Snapshot, SplitResult
from core.store import Store
from dashboard.components.charts import component_key
from jobs.cli import app as program
from tests.making import config, corpus_folder, relations, run_facts, task_score
from tests.making import finished as finished_as
from tests.pages.conftest import Open, figures, page_names, problems, run_tables, sent, sheets, words
from tests.pages.filled_store import TASKS, Filled, fill_added


@pytest.mark.parametrize(
    ("page", "given", "keys"),
    [
        ("curves", {}, ("metric", "over", "seeds", "of", "smooth_others")),
        ("curves", {"metric": "loss"}, ("smooth",)),
        ("relations", {}, ("mode", "view")),
        ("compare", {}, ("on", "closer", "of", "to")),
        ("run", {"id": "1", "run_part": "By label"}, ("report_task", "report_split")),
        ("run", {"id": "1"}, ("run_part",)),
        ("runs", {}, ("order", "scores", "sort")),
    ],
    ids=str,
)
def test_an_empty_value_in_a_link_is_the_default(
    open_page: Open, finished: Filled, page: str, given: dict[str, str], keys: Sequence[str]
) -> None:
    """Streamlit then picks nothing, even where one option is required."""
    usual = words(open_page(page, **given))
    for key in keys:
        app = open_page(page, **given, **{key: ""})
        assert words(app) == usual, key
        app.run()


def answer(*arguments: str) -> str:
    """Standard output of a verb that must succeed."""
    result = CliRunner().invoke(program, list(arguments), catch_exceptions=False)
    assert result.exit_code == 0, result.stderr
    return result.stdout


def test_runs_that_add_a_task_are_in_reports(finished: Filled) -> None:
    added = [str(run) for run in fill_added()]
    table = answer("results")
    assert "added to 1" in table
    assert "added to 2" in table
    for form, option in (("latex", "-{}-added-to 2"), ("markdown", "--added-to 2")):
        assert option in answer("appendix", *added, "--format", form)


# Names that mean something to Streamlit, Markdown, Plotly, paths, addresses or the store


_SIGNS = "__ _ - $$ % %5F : :: . / \\ ' \" ` * ~ | & # ? = + @ ^ ( ) [ ] { } {0} <b> é ß 💥 名 \u202e"
_MEANT = "None total nan 0 test dev score loss a b www.a.b :material/add:"
_PIECES = (*_SIGNS.split(), *_MEANT.split(), " ", "x" * 80)


def hostile_names(seed: str, count: int) -> list[str]:
    """Names that a column of a corpus may have: not blank at an end, and not beginning with `_`."""
    draw, names = random.Random(seed), dict[str, None]()
    while len(names) < count:
        name = "".join(draw.choices(_PIECES, k=draw.randint(1, 4))).strip()
        if name and not name.startswith("_"):
            names[name] = None
    return list(names)


def rename(tasks: Sequence[str]) -> None:
    """Gives the tasks of a filled store these names, wherever they stand."""
    store = Store.open()
    with store.transaction() as connection:
        for old, new in zip(TASKS, tasks, strict=True):
            for table in ("metric_keys", "scores", "predictions"):
                connection.exec_driver_sql(f"UPDATE {table} SET task = ? WHERE task = ?", (new, old))
            for table, column in (("runs", "config"), ("facts", "facts")):
                connection.exec_driver_sql(
                    f"UPDATE {table} SET {column} = replace({column}, ?, ?)",
                    (json.dumps(old), json.dumps(new, ensure_ascii=False)),
                )
    store.close()


_LOOKS: Mapping[str, Sequence[Mapping[str, str]]] = {
    "runs": ({}, {"order": "runs"}),
    "curves": ({}, {"seeds": "lines"}),
    "compare": tuple(
        {"closer": look} for look in ("differences", "where", "per class", "mistakes", "per seed")
    ),
    "run": ({}, {"run_part": "By label"}),
}
"""The looks at a page that show names of tasks, as its address has them."""
_CHARTS = {"curves": ("curve_small_", len(TASKS) - 1), "run": ("dev_", len(TASKS))}
"""The keys of charts of which each task has one, and their number; on Curves one task has the large chart."""


@pytest.mark.parametrize("page", [*page_names(), "run"])
def test_any_name_of_a_task_and_runs_that_add_one_are_on_every_page(
    page: str, open_page: Open, pairs: Filled
) -> None:
    added = fill_added()
    rename(["a__b", *hostile_names(page, 2)])
    several = ",".join(map(str, (*pairs.finished[:6], *added)))
    for look in _LOOKS.get(page, ({},)):
        app = open_page(page, **({"id": str(pairs.mrn[0])} if page == "run" else {"run": several}), **look)
        assert problems(app) == []
        if page in _CHARTS and look != {"run_part": "By label"}:
            key, count = _CHARTS[page]
            assert len(figures(app, key)) == count
        names = {
            "compare": [option for box in app.selectbox for option in box.options],
            "curves": [row["name"] for row in sent(app, "runsDrawn").get("rows", ())],
        }
        for end in (" · added to 1", " · added to 2"):
            assert page not in names or any(name.endswith(end) for name in names[page])


def test_a_run_that_adds_a_task_has_a_page(open_page: Open, finished: Filled) -> None:
    assert problems(open_page("run", id=str(fill_added()[0]))) == []


def test_any_name_of_a_column_is_on_launch(open_page: Open, tmp_path: Path) -> None:
    names = ["a__b", *hostile_names("launch", 3), "c__score"]
    rows = [("text1", "text2", *names), *(("a b", "c", *"xxxx", number) for number in "123")]
    text = "".join("\t".join(row) + "\n" for row in rows)
    folder = corpus_folder(tmp_path / "texts", {"train.tsv": text, "test.tsv": text})
    app = open_page("launch", corpus=folder)
    app.session_state["launch_more_data"] = True
    app.run()
    assert problems(app) == []
    assert len(figures(app, "launch_numbers_c__score")) == 1
    assert len(app.tabs) == len(names)


@given(st.text(), st.text())
def test_a_key_of_a_component_can_be_told_from_what_streamlit_adds(key: str, other: str) -> None:
    made = component_key(key)
    assert "__" not in f"{made}_"
    assert "__" not in f"_{made}"
    assert (made == component_key(other)) == (key == other)


@pytest.mark.parametrize("key", ["chart", "curve_small_ner", "dev_pos"])
def test_a_plain_key_stays_as_it_is(key: str) -> None:
    assert component_key(key) == key


# Addresses that no page of ours writes


_DIGITS = "9" * 5000
_BEYOND = str(2**64)
_LONG = "a" * 5000
_MANY_SEEDS = ",".join(f"{first}-{first + 9999}" for first in range(1, 120_001, 10_000))


@pytest.mark.parametrize("page", ["runs", "curves", "compare", "relations", "tag"])
def test_runs_that_cannot_be(page: str, open_page: Open, finished: Filled) -> None:
    app = open_page(page, run=f"{_BEYOND},{_DIGITS},\u0661,1_0")
    assert app.title[0].value.lower() == page


_LINKS: tuple[tuple[dict[str, str], str], ...] = (
    ({"clone": _BEYOND}, "There is no run"),
    ({"clone": _DIGITS}, "There is no run"),
    ({"clone": "1_0"}, "There is no run 1_0"),
    ({"seed": _DIGITS}, "is not a seed"),
    ({"seed": _MANY_SEEDS}, "more than 10,000 seeds"),
    ({"seed": "1-10000", "epochs": "1,2"}, "more than 10,000 runs"),
    ({"epochs": _DIGITS}, "is not a whole number"),
    ({"lambda": "1_0", "paradigm": "mrn"}, "is not a number"),
    ({"corpus": _LONG}, "There is no folder"),
    ({"corpus": "a\0b"}, "There is no folder"),
    ({"corpus": "~nobody-here/x"}, "There is no folder"),
    ({"encoder": _LONG}, "encoder"),
    ({"encoder": "a\0b"}, "encoder"),
    ({"encoder": "~nobody-here"}, "encoder"),
)


def test_links_to_the_form(open_page: Open) -> None:
    app = open_page("launch")
    for query, sentence in _LINKS:
        app.query_params.clear()
        app.query_params |= query
        app.run()
        assert sentence in words(app), str(query)[:40]


def test_filters(open_page: Open, finished: Filled) -> None:
    app = open_page("runs")
    for text in (_DIGITS, f"-{_DIGITS}", "created<99999999999999999d", f"run:{_BEYOND}"):
        app.query_params["table_page"] = _DIGITS
        app.text_input(key="filter").set_value(text).run()
        assert app.title[0].value == "Runs"


def test_parts_of_a_matrix(open_page: Open, finished: Filled) -> None:
    run = str(finished.mrn[0])
    open_page("relations", run=run, step=_DIGITS, zoom=f"{_DIGITS},\u0661", a=_DIGITS, pair="nothing")


# Many tasks with long names


def test_numbers_stay_in_sight_beside_long_names(open_page: Open) -> None:
    """The names are what sets them apart; what they share is said nowhere and what is left is counted."""
    long = "the relation of a word to its head in the dependency tree of part"
    names = tuple(f"{long} {number}" for number in range(1, 13))
    facts = run_facts(
        tasks=tuple(replace(run_facts().tasks[0], name=name) for name in names),
        label_names=(),
        label_owners=(),
    )
    scored = SplitResult("test", 1, tuple(task_score(name, 0.5) for name in names), {}, {})
    learned = Snapshot(2, 0.2, relations(tasks=len(names)))
    run = finished_as(Store.open(), config(tasks=names, learn=("task",)), facts, learned, scored)

    app = open_page("run", id=str(run))
    assert list(sheets(app)[0].index) == list(map(str, range(1, 13)))
    assert "12 tasks · " in words(app)
    (shown,) = run_tables(open_page("runs"))
    assert "12 tasks" in [words for words, _ in shown["about"]]
    assert long not in f"{shown['about']} {[line['name'] for line in shown['lines']]}"
    app = open_page("relations", run=str(run), mode="Tasks")
    lines = sent(app, "lines")["lines"]
    assert {name for line in lines for name in line["short"]} <= set(map(str, range(1, 13)))
    assert long not in words(app)
