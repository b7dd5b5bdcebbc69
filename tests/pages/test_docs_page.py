"""The docs as a page: each page links to its section, and no link of the docs leads nowhere."""

from __future__ import annotations

import re
from urllib.parse import parse_qs

import pytest
from streamlit.testing.v1 import AppTest

from dashboard.shared import docs
from tests.pages.conftest import Open, page_names, words
from tests.patience import PATIENCE_S

_LINK = re.compile(r"\]\(docs\?([^)]*)\)")


def _page() -> None:
    from dashboard.shared import docs

    docs.show()


def opened(**query: str) -> str:
    """What the page of the docs shows for these parameters."""
    app = AppTest.from_function(_page, default_timeout=PATIENCE_S)
    app.query_params.update(query)
    return words(app.run())


@pytest.mark.parametrize("page", [*page_names(), "run"])
def test_each_page_links_to_its_section(page: str, open_page: Open) -> None:
    links = [query for text in open_page(page).caption for query in _LINK.findall(text.value)]
    ((file,), (anchor,)) = parse_qs(links[0]).values()
    assert docs.section(file, anchor).startswith(f"## {'Runs' if page == 'run' else page.capitalize()}\n")


@pytest.mark.parametrize("file", docs.files())
def test_every_link_of_the_docs_leads_to_a_part_that_is_there(file: str) -> None:
    text = docs.files()[file].read_text(encoding="utf-8")
    drawn = docs.with_links(text, file)
    assert not re.search(r"\]\((?!https?:|docs\?)", drawn)
    for target in map(parse_qs, _LINK.findall(drawn)):
        assert "section" not in target or docs.section(target["file"][0], target["section"][0]), target


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
