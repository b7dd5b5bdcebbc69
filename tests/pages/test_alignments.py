"""Mappings of labels in the launch form."""

from __future__ import annotations

from pathlib import Path

import pytest
from streamlit.testing.v1 import AppTest

from core.corpora import summarise
from core.mrn.alignments.mapping import template
from core.registry import parse_alignment
from core.store import Store
from jobs.reports.naming import field_text
from tests.pages.conftest import Open, words

CSV = b"task,label,general,weight\nchunk,B-NP,NP,0.5\nchunk,I-NP,NP,0.5\nner,B-PER,NP,1\n"


@pytest.fixture
def form(open_page: Open) -> AppTest:
    """The launch form on the demo corpus, with the alignment mapping chosen."""
    app = open_page("launch")
    app.pills(key="launch_alignment").set_value(["mapping"]).run()
    return app


def upload(app: AppTest, content: bytes, name: str = "my labels.csv") -> AppTest:
    app.file_uploader(key="launch_mapping").set_value((name, content, "text/csv")).run()
    return app


def test_a_mapping_is_asked_for_and_its_template_fits_as_it_is(form: AppTest) -> None:
    assert "start from the template" in words(form)
    assert "Not ready yet" in words(form)
    assert not form.download_button(key="launch_template").disabled
    tasks = [(task.name, task.labels) for task in summarise("demo").tasks]
    upload(form, template(tasks).encode("utf-8-sig"))
    assert "general rows of their own" not in words(form)
    assert form.button(key="launch")


def test_an_uploaded_mapping_is_shown_and_launched(form: AppTest, workers: list[str]) -> None:
    upload(form, CSV)
    assert "**my-labels-" in words(form)
    assert "keep general rows of their own" in words(form)
    form.button(key="launch").click().run()
    runs = Store.open().runs()
    assert len(runs) == 3
    name, file = parse_alignment(str(runs[0].config.alignment))
    assert (name, Path(file).read_bytes()) == ("mapping", CSV)
    assert Path(file).name.startswith("my-labels-")
    assert workers


def test_what_is_wrong_with_a_mapping_is_said_in_its_place(form: AppTest) -> None:
    for content, sentence in (
        (CSV + b"ner,B-LOC,NP,none\n", "my labels.csv, row 5: has the weight 'none'"),
        (b"task,label,general\nsrl,A0,NP\n", "no row, from row 2 on, names a task and a label of this run"),
    ):
        upload(form, content)
        assert words(form).count(sentence) == 2, "beside the field, and in the plan"
        assert "Not ready yet" in words(form)
    upload(form, CSV)
    assert sentence not in words(form)
    assert form.button(key="launch")
    # It is kept while one looks at another page.
    form.switch_page("runs/page.py").run()
    form.switch_page("launch/page.py").run()
    assert form.pills(key="launch_alignment").value == ["mapping"]
    assert "**my-labels-" in words(form)


def test_a_mapping_is_named_after_its_file() -> None:
    assert field_text("alignment", "mapping:/laboratory/uploads/mappings/phrases-1a2b.csv") == (
        "mapping phrases-1a2b"
    )
    assert field_text("alignment", "exact") == "exact"
