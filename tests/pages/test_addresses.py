"""Addresses that no page of ours writes: each is answered on the page, without an exception."""

from __future__ import annotations

import pytest

from tests.pages.conftest import Open, words
from tests.pages.filled_store import Filled

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
