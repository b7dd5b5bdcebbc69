"""The pages take a run that a notebook trained as one of a worker's."""

from __future__ import annotations

from pathlib import Path

import core
from tests.pages.conftest import Open, words
from tests.pages.test_tag import drawn, lanes, texts
from tests.trained import toy_config


def test_a_run_of_a_notebook(open_page: Open, laboratory: Path) -> None:
    config = toy_config(laboratory, paradigm="mrn", alignment="cooccurrence")
    run = str(core.train(config, lab=core.Laboratory(), progress=False).id)

    runs = words(open_page("runs", run=run))
    assert "Succeeded" in runs
    assert "The best epoch on dev is" in runs
    assert "**Training loss**, total" in words(open_page("curves", runs=run))
    assert "**pos** and **ner** over training" in words(open_page("relations", run=run))
    (sentence,) = drawn(open_page("tag", run=run, text="German lamb ."))
    (entities,) = lanes(sentence, "ner")
    assert texts(entities)[:2] == ["MISC", "MISC"]
