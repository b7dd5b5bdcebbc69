"""A report as one HTML file: names and a researcher's text stay text, and only its own scripts may run."""

from __future__ import annotations

import contextlib
import re
from html.parser import HTMLParser

from core.paths import database_url
from core.report import ReportAsked
from core.store import Store
from dashboard.report.build import build
from tests.pages.filled_store import Filled
from tests.security.hostile import MARKUP

_ITS_SCRIPTS = 4
"""Two of data, Plotly, and the report's own."""


class _Elements(HTMLParser):
    """The elements of a page with their attributes."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.seen: list[tuple[str, dict[str, str | None]]] = []
        self.feed(text)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.seen.append((tag, dict(attrs)))


def test_a_report_runs_nothing_but_its_own_scripts(hostile_store: Filled) -> None:
    ids = tuple(hostile_store.finished)
    with contextlib.closing(Store.open()) as store:
        text = build(store, ReportAsked(database_url(), ids, title=MARKUP, text=MARKUP)).html
    assert "owned" in text
    assert len(re.findall(r"<script\b", text)) == _ITS_SCRIPTS
    elements = _Elements(re.sub(r"<(script|style)\b.*?</\1>", "", text, flags=re.DOTALL)).seen
    assert not [tag for tag, _ in elements if tag in ("img", "iframe", "object", "base", "link")]
    assert not [name for _, given in elements for name in given if name.startswith("on")]
    links = {given["href"] for tag, given in elements if tag == "a" and given.get("href")}
    assert links <= {"https://evil.example/m", "https://evil.example/p.png"}
    policy = next(given["content"] for _, given in elements if "Content-Security-Policy" in given.values())
    assert policy is not None
    assert policy.startswith("default-src 'none'; script-src 'sha256-")
