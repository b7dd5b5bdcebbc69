"""Every figure and verdict of README and of the pages of studies is that of the records."""

from __future__ import annotations

import re
from collections.abc import Mapping
from pathlib import Path

import numpy as np
import pytest

from core.evaluation.comparison import BySeed
from core.evaluation.statistics import MATTERS
from core.studies.analysis import MEAN
from core.studies.answer import answer
from core.studies.recorded import RECORDS, Record
from core.studies.study import with_runs
from core.wording import signed_points
from dashboard.shared.presets import SCARCE, TRY_IT
from tests.claims.documents import PAGES, ROOT, check_page, read_page
from tests.claims.recipes import Figures
from tests.claims.runs import CARDS, CARDS_FILE, Runs

_CLAIMS = sorted(PAGES.glob("*.txt"))


@pytest.fixture(scope="module")
def figures() -> Figures:
    """Of the results that the package carries, which `test_recorded_studies` computes from the runs."""
    records = {record.results_path.stem: record for record in RECORDS}
    return Figures({**records, "cards": Runs(CARDS, CARDS_FILE)})


@pytest.mark.parametrize("path", _CLAIMS, ids=lambda path: path.stem)
def test_each_printed_figure_and_verb_is_that_of_the_records(path: Path, figures: Figures) -> None:
    checked = check_page(path, figures)
    assert not checked.differences, "\n".join(checked.differences)
    assert checked.computed or path.stem in ("rare-labels", "studies"), "no figure is held"


def test_no_page_of_a_study_is_left_out() -> None:
    documents = {read_page(path).document for path in _CLAIMS}
    pages = {str(path.relative_to(ROOT)) for path in (ROOT / "docs" / "studies").glob("*.md")}
    assert documents == {"README.md", "docs/mathematics.md", *pages}


def test_the_recorded_cards_are_those_of_launch() -> None:
    recorded = {run for setting in CARDS.settings for run in with_runs(CARDS, setting).runs()}
    assert recorded == {*TRY_IT.configs, *SCARCE.configs}


@pytest.mark.parametrize("record", RECORDS, ids=lambda record: record.results_path.stem)
def test_the_answers_of_studies_print_what_scipy_finds_in_the_scores(record: Record) -> None:
    for setting in record.settings[:20]:
        result = record.result(setting)
        text, decided = answer(result), 0
        scores = {outcome.method.name: outcome.by_seed.get(MEAN, {}) for outcome in result.outcomes}
        methods = [outcome.method for outcome in result.outcomes if MEAN in outcome.by_seed]
        from_reference = {method.title: (method.name, result.reference) for method in methods}
        from_base = {method.title: (method.name, method.base) for method in methods if method.base}
        for pairs in (from_reference, from_base):
            family = {title: (scores[a], scores[b]) for title, (a, b) in pairs.items() if a != b}
            for title, (verb, printed) in _by_scipy(family).items():
                start = text.index(f"{title} ({printed})")
                said = re.search(r"scores? (higher|lower)", text[start:])
                assert said is not None, (setting.name, title, text)
                assert said[1] == verb, (setting.name, title, text)
                decided += 1
        assert text.count("(") == decided, (setting.name, text)


def _by_scipy(family: Mapping[str, tuple[BySeed, BySeed]]) -> dict[str, tuple[str, str]]:
    """The verb and the printed difference of those that differ after Holm's correction."""
    from scipy.stats import ttest_rel

    tests = {}
    for title, (scores, base) in family.items():
        seeds = sorted(scores.keys() & base.keys())
        pairs = np.array([[scores[seed], base[seed]] for seed in seeds]).T
        if len(seeds) > 1 and np.ptp(pairs[0] - pairs[1]) > 1e-12:
            tests[title] = (pairs[0] - pairs[1], ttest_rel(*pairs))
    ordered = sorted(tests, key=lambda title: float(tests[title][1].pvalue))
    found: dict[str, tuple[str, str]] = {}
    for rank, title in enumerate(ordered):
        differences, test = tests[title]
        if test.pvalue * (len(ordered) - rank) >= 0.05:
            break
        low, high = test.confidence_interval()
        if max(abs(low), abs(high)) < MATTERS:
            continue  # equivalent
        bounds = ", ".join(map(signed_points, (low, high)))
        verb = "higher" if differences.mean() > 0 else "lower"
        found[title] = (verb, f"{signed_points(differences.mean())} [{bounds}]")
    return found


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
