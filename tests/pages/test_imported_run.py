"""The pages take a run of another laboratory, which no worker here has trained, as one of their own."""

from __future__ import annotations

import contextlib

from core.store import Store
from tests.contracts.test_exchange import finished
from tests.pages.conftest import Open, words


def test_an_imported_run(open_page: Open) -> None:
    with contextlib.closing(Store.open("sqlite://")) as elsewhere, contextlib.closing(Store.open()) as store:
        run = str(store.take_in(elsewhere.record(finished(elsewhere)), "Imported."))
    assert "Succeeded" in words(open_page("run", id=run))
    assert "**pos** and **ner** over training" in words(open_page("relations", run=run))
