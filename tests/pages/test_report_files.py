"""Reports as one HTML file: their parts, what they refuse, their size, and whether their figures hold."""

from __future__ import annotations

import contextlib
import json
import re
import shutil
from collections.abc import Iterator
from html.parser import HTMLParser
from pathlib import Path

import pytest
from typer.testing import CliRunner

from core.errors import ConfigError, MRNLabError
from core.report import PARTS, Report, ReportAsked
from core.store import RunState, Store
from core.studies import STUDIES
from core.studies.recorded import records_of
from dashboard.report.build import MOST_BYTES, build
from dashboard.report.placed import key, markdown_html
from dashboard.theme import PARADIGM_COLOURS, of_theme
from jobs.cli.app import app
from jobs.exchange.run_table import RunTable
from jobs.reports.verify import verify
from tests.pages.filled_store import fill

_MOST_OF_A_SMALL_ONE = 3_000_000


@pytest.fixture(scope="module")
def filled_home(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A laboratory with made-up runs of STL, MTL and MRN; no test changes it."""
    home = tmp_path_factory.mktemp("reported")
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("MRNLAB_HOME", str(home))
        fill(f"sqlite:///{home / 'runs.db'}", seeds=(1, 2), active=False)
    return home


@pytest.fixture
def store(filled_home: Path, laboratory: Path) -> Iterator[Store]:
    """A copy of it in the test's own laboratory."""
    for path in filled_home.glob("runs.db*"):
        shutil.copy(path, laboratory / path.name)
    with contextlib.closing(Store.open(f"sqlite:///{laboratory / 'runs.db'}")) as opened:
        yield opened


def asked(store: Store, *, paradigm: str = "", **values: object) -> ReportAsked:
    """A report on all finished runs, or on those of a paradigm."""
    runs = [run for run in store.runs(states={RunState.SUCCEEDED}) if paradigm in run.config.paradigm]
    return ReportAsked(store.url, tuple(run.id for run in runs), **values)  # type: ignore[arg-type]


@pytest.fixture(scope="module")
def whole(filled_home: Path) -> Report:
    """A report with all parts."""
    with contextlib.closing(Store.open(f"sqlite:///{filled_home / 'runs.db'}")) as store:
        return build(store, asked(store))


class _Elements(HTMLParser):
    """The elements of a page with their attributes, outside of scripts."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.found: list[tuple[str, dict[str, str | None]]] = []
        self.feed(text)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.found.append((tag, dict(attrs)))


def test_keys_have_the_colours_of_lines_and_no_other_style() -> None:
    assert 'style="background:light-dark(#56616B,#C3CBD1)"' in key("MTL", of_theme(*PARADIGM_COLOURS["mtl"]))
    for unsafe in ("red;position:fixed", "url(x)", "var(--st-text-color)"):
        assert 'style="background:currentColor"' in key("MTL", unsafe)


def test_a_report_has_all_parts_and_is_small(whole: Report) -> None:
    assert whole.missing == {}
    ids = [given.get("id") for tag, given in _Elements(whole.html).found if tag == "section"]
    assert ids == list(PARTS)
    assert len(whole.html.encode()) < _MOST_OF_A_SMALL_ONE < MOST_BYTES
    assert "Does MRN" in whole.html
    assert "mrnlab launch --corpus demo" in whole.html


def test_the_file_loads_nothing_and_only_its_own_scripts_run(whole: Report) -> None:
    elements = _Elements(whole.html).found
    policy = next(given["content"] for tag, given in elements if "Content-Security-Policy" in given.values())
    assert policy is not None
    assert policy.startswith("default-src 'none'; script-src 'sha256-")
    assert "unsafe-eval" not in policy
    assert "connect-src" not in policy, "what is not named is not allowed"
    assert not [given for _, given in elements if given.keys() & {"src", "srcset", "action", "data"}]
    assert not [tag for tag, _ in elements if tag in ("link", "iframe", "object", "embed", "img", "base")]
    assert whole.html.count("function loadPlotly(") == 1, "charts are drawn with the library in the file"


def test_what_these_runs_cannot_have_says_why(store: Store) -> None:
    report = build(store, asked(store, paradigm="stl"))
    assert set(report.missing) >= {"forest", "relations", "sentences", "where", "errors", "against"}
    for why in report.missing.values():
        assert why.endswith(".")
        assert f"Not in this report: {why}" in report.html
    assert 'data-table="scores of demo"' in report.html


def test_parts_are_chosen_and_the_text_stands_where_it_says(store: Store) -> None:
    text = "First *words*.\n\n@relations\nOf relations."
    report = build(store, asked(store, parts=("answer", "table"), text=text, title="A <title>"))
    ids = [given.get("id") for tag, given in _Elements(report.html).found if tag == "section"]
    assert ids == ["answer", "table"]
    answer, first, table, second = (
        report.html.index(mark)
        for mark in ('id="answer"', "First <em>words</em>", 'id="table"', "Of relations.")
    )
    assert answer < first < table < second
    assert "<h1>A &lt;title&gt;</h1>" in report.html
    assert "Plotly" not in report.html, "what draws nothing is not in the file"


@pytest.mark.parametrize(
    ("values", "message"),
    [
        ({"runs": ()}, "needs the numbers of finished runs"),
        ({"parts": ("tables",)}, "parts: 'tables' is no part of a report; parts are answer, table"),
        ({"parts": ()}, "name at least one of"),
        ({"text": "a\n@nowhere\nb"}, "text: '@nowhere' is no part of a report"),
        ({"text": "x" * 300_000}, "300,000 characters are more than 200,000"),
        ({"split": "train"}, "split: 'train' is not one of dev, test"),
    ],
)
def test_a_wrong_wish_is_refused(values: dict[str, object], message: str) -> None:
    with pytest.raises(ConfigError, match=re.escape(message)):
        ReportAsked(**{"url": "sqlite://", "runs": (1,)} | values)  # type: ignore[arg-type]


def test_runs_without_an_end_have_no_report(store: Store) -> None:
    unfinished = [run.id for run in store.runs() if run.state is not RunState.SUCCEEDED]
    with pytest.raises(MRNLabError, match="None of these runs has finished"):
        build(store, ReportAsked(store.url, tuple(unfinished)))


def test_markdown_of_a_researcher_has_no_html_and_no_pictures() -> None:
    text = "<b>x</b> <script>y</script> ![p](https://evil.example/p) [l](javascript:alert(1))\n\n# Title"
    made = markdown_html(text)
    assert {tag for tag, _ in _Elements(made).found} <= {"div", "p", "h3", "a"}
    assert "javascript:" not in re.sub(r">[^<]*<", "><", made)
    assert "&lt;script&gt;" in made


@pytest.fixture
def of_study(laboratory: Path) -> Iterator[tuple[Store, ReportAsked]]:
    """A store with the recorded runs of a study, and what is asked of three of its settings."""
    with contextlib.closing(Store.open(f"sqlite:///{laboratory / 'runs.db'}")) as store:
        RunTable(records_of("priors")[0].path).restore(store)
        corpora = {STUDIES["priors"].settings[place].base["corpus"] for place in (4, 6, 7)}
        runs = [run.id for run in store.runs() if run.config.corpus in corpora]
        yield store, ReportAsked(store.url, tuple(runs), parts=("answer", "table", "relations"))


def test_a_report_of_a_study_names_its_data_in_words_and_counts_verdicts(
    of_study: tuple[Store, ReportAsked],
) -> None:
    store, asked = of_study
    report = build(store, asked)
    assert "<h1>MRN against MTL on 3 data sets</h1>" in report.html
    (counts,) = re.findall(
        r'<p class="answer">(MRN against MTL, \d+ differences on 3 data sets: .*?)</p>', report.html
    )
    verdicts = re.findall(r'<span class="task">(?!mean of)[^<]*</span> (\w+),', report.html)
    numbers = {
        word: int(number) for number, word in re.findall(r"(\d+) (higher|lower|equivalent|undecided)", counts)
    }
    assert numbers == {word: verdicts.count(word) for word in numbers}
    titles = {setting.title for setting in STUDIES["priors"].settings}
    headings = re.findall(r"<h3>([^<]*)</h3>", report.html)
    assert len(headings) == 6, "of answers and of tables"
    assert set(headings) <= titles
    assert verify(store, report.html).problems == ()
    (problem,) = verify(store, report.html.replace(counts, "MRN wins.")).problems
    assert problem == f"The report does not say, as the runs do: {counts}"


def test_verify_finds_no_difference_in_a_report_as_it_was_made(store: Store, whole: Report) -> None:
    found = verify(store, whole.html)
    assert found.problems == ()
    assert found.figures > 20


def test_verify_finds_a_changed_figure_in_what_is_shown_and_in_what_is_kept(
    store: Store, whole: Report
) -> None:
    shown = re.search(r'<td class=right>(\d\d\.\d\d) <span class="spread">± ', whole.html)
    assert shown is not None
    spoiled = whole.html.replace(shown[0], shown[0].replace(shown[1], "99.99"), 1)
    (problem,) = verify(store, spoiled).problems
    assert "'99.99" in problem
    assert shown[1] in problem
    kept = re.search(r'"mean":(0\.\d+)', whole.html)
    assert kept is not None
    (problem,) = verify(store, whole.html.replace(kept[0], '"mean":0.5', 1)).problems
    assert f"mean is {kept[1]} here, 0.5 in the report" in problem
    answer = re.search(r'<p class="answer">([^<]*)', whole.html)
    assert answer is not None
    (problem,) = verify(store, whole.html.replace(answer[1], "MRN is best.")).problems
    assert "The answer on demo is not in the report" in problem


def test_verify_finds_runs_that_are_gone_and_files_that_are_no_report(store: Store, whole: Report) -> None:
    gone = next(run for run in store.runs(states={RunState.SUCCEEDED}) if run.config.paradigm == "mtl")
    store.delete_runs([gone.id])
    problems = verify(store, whole.html).problems
    assert f"1 run of the report, by its numbers run {gone.id}, is not in this store" in problems[0]
    assert len(problems) > 1
    for text in ("", "<p>x</p>", '<script id="mrnlab-report">{"format": 9}</script>'):
        with pytest.raises(MRNLabError, match="This file is no report"):
            verify(store, text)


def test_the_command_line_writes_and_verifies_a_report(store: Store, tmp_path: Path) -> None:
    """The one test that starts the process."""
    file, notes = tmp_path / "r.html", tmp_path / "notes.md"
    notes.write_text("Words.", encoding="utf-8")
    ids = [str(run_id) for run_id in asked(store).runs]
    options = ["-o", str(file), "--text", str(notes), "--parts", "answer,table,forest", "--json"]
    runner = CliRunner()
    done = runner.invoke(app, ["report", *ids, *options])
    assert done.exit_code == 0, done.output
    assert json.loads(done.stdout) == {"file": str(file), "bytes": file.stat().st_size, "missing": {}}
    assert "<p>Words.</p>" in file.read_text(encoding="utf-8")
    verified = runner.invoke(app, ["verify", str(file)])
    assert verified.exit_code == 0, verified.output
    assert "are as the runs give them" in verified.output
    file.write_text(
        file.read_text(encoding="utf-8").replace('"spread">± 0.', '"spread">± 9.', 1), encoding="utf-8"
    )
    assert runner.invoke(app, ["verify", str(file)]).exit_code == 1
    refused = runner.invoke(app, ["report", *ids, "--parts", "everything"])
    assert refused.exit_code == 2
    assert "'everything' is no part of a report" in refused.output
