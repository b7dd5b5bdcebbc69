"""Every figure and verdict of README and of the pages of studies is that of the records."""

from __future__ import annotations

from pathlib import Path

import pytest

from core.studies.recorded import RECORDS
from core.studies.study import with_runs
from dashboard.shared.presets import SCARCE, TRY_IT
from tests.claims.documents import PAGES, ROOT, check_page, claims_of
from tests.claims.recipes import Figures
from tests.claims.runs import CARDS, CARDS_FILE, Runs

_CLAIMS = sorted(PAGES.glob("*.txt"))


@pytest.fixture(scope="module")
def figures() -> Figures:
    """Figures of the results that the package carries, which `test_recorded_studies` computes from the runs."""
    records = {record.results_path.stem: record for record in RECORDS}
    return Figures({**records, "cards": Runs(CARDS, CARDS_FILE)})


@pytest.mark.parametrize("path", _CLAIMS, ids=lambda path: path.stem)
def test_each_printed_figure_and_verb_is_that_of_the_records(path: Path, figures: Figures) -> None:
    checked = check_page(path, figures)
    assert not checked.differences, "\n".join(checked.differences)
    assert checked.computed


def test_no_page_of_a_study_is_left_out() -> None:
    documents = {next(claims_of(path)).document for path in _CLAIMS}
    pages = {str(path.relative_to(ROOT)) for path in (ROOT / "docs" / "studies").glob("*.md")}
    assert documents == {"README.md", *pages} - {"docs/studies/README.md"}


def test_the_recorded_cards_are_those_of_launch() -> None:
    recorded = {run for setting in CARDS.settings for run in with_runs(CARDS, setting).runs()}
    assert recorded == {*TRY_IT.configs, *SCARCE.configs}


@pytest.mark.parametrize(
    ("before", "after", "reason"),
    [
        ("+4.0 [3.3, 4.7]", "+4.0 [3.3, 4.8]", "+4.0 [3.3, 4.8]"),
        ("Pooling still gains", "Pooling still loses", "“loses”"),
        ("in four of nine", "in five of nine", "five"),
        ("## The protocol", "MTL gains +9.1 [8.0, 10.2] somewhere.\n\n## The protocol", "no recipe for “"),
    ],
)
def test_a_changed_figure_verb_or_count_is_found(
    before: str, after: str, reason: str, figures: Figures, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    text = (ROOT / "docs/studies/regimes.md").read_text("utf-8")
    assert before in text
    page = tmp_path / "docs" / "studies" / "regimes.md"
    page.parent.mkdir(parents=True)
    page.write_text(text.replace(before, after, 1), "utf-8")
    monkeypatch.setattr("tests.claims.documents.ROOT", tmp_path)
    differences = check_page(PAGES / "regimes.txt", figures).differences
    assert any(reason in difference for difference in differences)
