"""What each page of the dashboard shows: each element, label, option, number and table, in their order."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pandas as pd
import pytest

from tests.pages.conftest import app_at, page_names
from tests.pins.recorded import masked, pinned, without_sentences

PAGES = [name.capitalize() for name in page_names()]
EMPTY: list[tuple[str, dict[str, str]]] = [(page, {}) for page in PAGES]
FILLED: list[tuple[str, dict[str, str]]] = [
    *EMPTY,
    *((page, {"run": "1"}) for page in PAGES[1:] if page not in ("Studies", "Transfer")),
    ("Run", {"id": "15"}),
    ("Run", {"id": "16"}),
    ("Run", {"id": "17"}),
    ("Run", {"id": "18"}),
    ("Curves", {"run": "18,19"}),
    ("Relations", {"run": "13"}),
    ("Tag", {"run": "15"}),
]


def _texts(block: Any) -> Iterator[str]:
    """The texts of a block of the page, depth first, each with the kind of element that shows it."""
    for child in block.children.values():
        label = str(getattr(child, "label", "") or getattr(child.proto, "label", "") or "")
        if hasattr(child, "children"):
            if label:
                yield f"{child.type}: {label}"
            yield from _texts(child)
            continue
        if child.type == "bidi_component":
            data = json.loads(child.proto.json or "{}")
            if child.proto.component_name == "mrnlab_run_table":
                yield f"table of runs: {_run_table(data)}"
            elif "bars" in data:
                yield from (f"in progress: {' | '.join(map(str, row.values()))}" for row in data["bars"])
            else:
                yield f"{child.type}: {' | '.join(_chart(data))}"
            continue
        value = getattr(child, "value", None)
        if isinstance(value, pd.DataFrame):
            value = value.map(without_sentences).to_csv(index=False)
        if child.type == "image":
            value = None
        if child.type == "html":
            value = re.sub(r"<[^>]*>", " ", str(value))
        options = getattr(child, "options", None)
        offered = "" if options is None else f"of {without_sentences(list(options))}"
        shown = [label, "" if value is None else str(value), offered]
        yield f"{child.type}: {' | '.join(part for part in shown if part)}"


def _run_table(data: dict[str, Any]) -> str:
    """A table of runs: title, lines, and of each column the values of numbers or the words of others."""
    lines = [(line["name"], line["runs"], line["chosen"]) for line in data["lines"]]
    columns = {
        column["name"]: column["values" if column["kind"] == "number" else "texts"]
        for column in data["columns"]
    }
    return "\n".join(map(str, [f"{data['title']} | {data['about']}", *lines, *columns.items()]))


def _chart(data: dict[str, Any]) -> Iterator[str]:
    """The names of the lines of a chart, and the titles of its axes."""
    figure = json.loads(data["figure"]) if "figure" in data else {"data": [], "layout": {}}
    yield from (str(trace["name"]) for trace in figure["data"] if "name" in trace)
    for name, axis in figure["layout"].items():
        if isinstance(axis, dict) and "text" in axis.get("title", {}):
            yield f"{name} {axis['title']['text']}"


def _page(page: str, query: dict[str, str], home: Path, monkeypatch: pytest.MonkeyPatch) -> list[str]:
    monkeypatch.setenv("MRNLAB_HOME", str(home))
    app = app_at(page.lower())
    app.query_params.update(query)
    app.run()
    text = "\n".join([*_texts(app.sidebar), "", *_texts(app.main)])
    # Without the escapes that keep user text from being Markdown.
    return masked(re.sub(r"\\([^a-zA-Z0-9\s])", r"\1", text).replace("\u2060", ""), home)


def _name(page: str, query: dict[str, str]) -> str:
    return " ".join([page.lower(), *(f"{name}={value}" for name, value in query.items())])


@pytest.mark.parametrize(("page", "query"), EMPTY, ids=lambda value: str(value))
def test_empty(
    page: str, query: dict[str, str], laboratory: Path, workers: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    pinned(f"pages/empty {_name(page, query)}", _page(page, query, laboratory, monkeypatch))


@pytest.mark.parametrize(("page", "query"), FILLED, ids=lambda value: str(value))
def test_filled(
    page: str, query: dict[str, str], filled_home: Path, workers: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    pinned(f"pages/{_name(page, query)}", _page(page, query, filled_home, monkeypatch))
