"""The docs as a page, and the lists of pages: no link leads nowhere, and no page is missing."""

from __future__ import annotations

import re
from pathlib import Path
from urllib.parse import parse_qs

import pytest
from streamlit.testing.v1 import AppTest

from dashboard.serving import modules_of_pages
from dashboard.shared import docs
from tests.pages.conftest import Open, page_names, words
from tests.pages.filled_store import Filled
from tests.patience import PATIENCE_S

ROOT = Path(__file__).resolve().parents[2]
_LINK = re.compile(r"\]\(docs\?([^)]*)\)")


def _page() -> None:
    from dashboard.shared import docs

    docs.show()


def opened(**query: str) -> str:
    """What the page of the docs shows for these parameters."""
    app = AppTest.from_function(_page, default_timeout=PATIENCE_S)
    app.query_params.update(query)
    return words(app.run())


@pytest.mark.parametrize("page", page_names())
def test_each_page_has_a_section(page: str) -> None:
    """tests/pins holds that the link stands below the title of each page."""
    for heading, link in zip((page.capitalize(), "Terms"), _LINK.findall(docs.docs_link(page)), strict=True):
        ((file,), (anchor,)) = parse_qs(link).values()
        assert docs.section(file, anchor).startswith(f"## {heading}\n")


def test_every_list_of_pages_is_that_of_the_navigation() -> None:
    folders = {script.parent.name for script in (ROOT / "dashboard").glob("*/page.py")}
    assert folders == set(page_names())
    table = re.findall(
        r"^\| (\w+) \| [^|]+\?", (ROOT / "docs/pages.md").read_text(encoding="utf-8"), re.MULTILINE
    )
    assert table == [name.capitalize() for name in page_names()]
    contributing = (ROOT / "CONTRIBUTING.md").read_text(encoding="utf-8")
    assert folders <= set(re.findall(r"`dashboard/(\w+)`", contributing))
    modules = modules_of_pages()
    assert {module.split(".")[1] for module in modules} == folders
    assert not [module for module in modules if module.endswith("page")]


def test_every_link_of_the_docs_stays_on_the_page() -> None:
    """tests/unit/test_docs.py holds that its target is there."""
    for file, path in docs.files().items():
        assert not re.search(r"\]\((?!https?:|docs\?)", docs.with_links(path.read_text("utf-8"), file)), file


def test_a_file_or_a_section_is_shown_and_nothing_beside_the_docs() -> None:
    part = opened(file="pages.md", section="tag")
    assert "## Tag" in part
    assert "## Launch" not in part
    assert "## Launch" in opened(file="pages.md")
    start = opened()
    assert "What do you want to do?" in start
    assert opened(file="../pyproject.toml") == opened(file="nothing.md", section="tag") == start


def test_without_a_clone_no_page_has_a_link(open_page: Open, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(docs, "files", dict)
    assert not [text for text in open_page("runs").caption if "Docs" in text.value]


@pytest.mark.parametrize(
    ("page", "metric", "equation"),
    [
        ("launch", "", r"\lambda"),
        ("curves", "MRN penalty", r"\Omega^{-1}"),
        ("curves", "Objective", r"J("),
        ("relations", "", r"R_{ij}"),
    ],
)
def test_a_number_of_mrn_has_its_equation(
    page: str, metric: str, equation: str, open_page: Open, finished: Filled
) -> None:
    """In a fold, which is drawn once it is opened."""
    app = open_page(page, run=str(finished.mrn[0]), **({"metric": metric} if metric else {}))
    assert not app.latex
    app.session_state["how_to_read" if page == "relations" else "what_is_this"] = True
    assert equation in "".join(shown.value for shown in app.run().latex)
