"""The parts of a report on scores: answer, table, forest, score against a setting, where, errors."""

from __future__ import annotations

from collections.abc import Sequence

from core.evaluation.comparison import UNDECIDED
from core.evaluation.statistics import CONFIDENCE
from core.results.comparisons import Difference
from core.results.figures import against_chart, forest, forest_chart, where_forest
from core.results.series import baselines, number_series, scores_against
from core.results.table import MEAN_OF_TASKS
from core.results.where import ERRORS, SCHEME, Where, where_of
from core.store import Store
from core.studies.study import ALPHA
from dashboard.launch.paradigms import WORDS
from dashboard.report.placed import NotThere, Placed, caption
from dashboard.shared import resources
from dashboard.theme import PARADIGM_NAMES, ramp
from jobs.reports.answered import Answered, overview
from jobs.reports.html import html, html_text
from jobs.reports.where import where_sheets

_MOST_AGAINST, _MOST_DATA = 2, 3
_MARKED = "Filled marks are decided, hollow ones undecided."


def answer(of_data: Sequence[Answered]) -> str:
    """The question and the answer; of several data what they give together, then the answer on each."""
    if len(of_data) == 1:
        return _answer(of_data[0], question=of_data[0].question) + _explained(of_data)
    together = "".join(f'<p class="answer">{html_text(sentence)}</p>' for sentence in overview(of_data))
    apart = "".join(f"<h3>{html_text(each.about)}</h3>{_answer(each)}" for each in of_data)
    return together + _explained(of_data) + f'<div class="each">{apart}</div>'


def _answer(each: Answered, *, question: str = "") -> str:
    asked = f'<p class="question">{html_text(question)}</p>' if question else ""
    lines = "".join(
        f'<li><span class="task">{html_text(task)}</span> {html_text(sentence)}</li>'
        for task, sentence in each.lines
    )
    return f'{asked}<p class="answer">{html_text(each.sentence)}</p><ul class="verdicts">{lines}</ul>'


def _explained(of_data: Sequence[Answered]) -> str:
    """What differences, verdicts and paradigms are."""
    matters = 100 * of_data[0].table.matters
    explained = (
        "Each method is trained once for each seed, a random start. Differences are points (score times 100) "
        f"between runs of one seed, with their {CONFIDENCE:.0%} interval. "
        f"Higher, lower: a significant difference. Equivalent: surely smaller than {matters:g} points. "
        "Undecided: neither; more seeds may decide it. Settings are chosen on dev data."
    )
    if any(row.config.paradigm == "mrn" for each in of_data for row in each.table.rows):
        explained += (
            " The number after MRN is λ, the strength of its prior; further words are settings that differ "
            "between rows."
        )
    if any("α" in each.about for each in of_data):
        explained += f" {ALPHA}"
    return caption(explained) + _paradigms(of_data)


def _named(of_data: Sequence[Answered], each: Answered) -> str:
    """A heading that says which of several data follows."""
    return f"<h3>{html_text(each.about)}</h3>" if len(of_data) > 1 else ""


def _paradigms(of_data: Sequence[Answered]) -> str:
    """What the paradigms compared are, in a sentence each."""
    used = {row.config.paradigm for each in of_data for row in each.table.rows}
    words = (
        f"<dt>{PARADIGM_NAMES[name]}</dt><dd>{html_text(f'{title}. {text}')}</dd>"
        for name, (title, text) in WORDS.items()
        if name in used
    )
    return f'<dl class="quiet">{"".join(words)}</dl>'


def table(of_data: Sequence[Answered]) -> str:
    """The table of scores of each data with its signature, and the notes on its rows."""
    pieces = []
    for each in of_data:
        name, sheet = next(iter(each.sheets.items()))
        pieces += [_named(of_data, each), html(sheet, name=name)]
        pieces += [caption(note) for note in each.table.notes]
    return "".join(pieces)


def forests(of_data: Sequence[Answered], placed: Placed) -> str:
    """The differences of each data from the baseline: the forest and the numbers."""
    pieces = []
    for each in of_data:
        if each.pair is None or not each.from_baseline:
            continue
        baseline = each.pair[1]
        view = forest(each.from_baseline, each.table, baseline.key)
        of_tasks = set(view.targets) <= {*each.table.tasks, MEAN_OF_TASKS}
        colours = resources.task_colours()
        if not of_tasks:
            colours = {name: ramp(place) for place, name in enumerate(view.targets)}
        alt = f"Differences from {baseline.name} on {each.data} with their 95% intervals"
        pieces += [_named(of_data, each), placed.chart(forest_chart(view, colours), alt)]
        name, sheet = list(each.sheets.items())[1]
        pieces.append(f"<details><summary>In numbers</summary>{html(sheet, name=name)}</details>")
    if not pieces:
        raise NotThere("There are no two rows with scores on the same data to compare.")
    return caption(_MARKED) + "".join(pieces)


def against(of_data: Sequence[Answered], store: Store, placed: Placed) -> str:
    """Scores against the numbers in which configurations differ, on the data with the most runs."""
    pieces: list[str] = []
    having = [
        (each, conditions, numbered)
        for each in of_data
        if (numbered := number_series(each.runs, conditions := store.conditions(each.runs)))
    ]
    for each, conditions, all_series in having[:_MOST_DATA]:
        for series in all_series[:_MOST_AGAINST]:
            base = next(iter(baselines(series, each.runs, conditions)), None)
            ids = [*series.run_ids, *(base.run_ids if base else ())]
            view = scores_against(series, store.scores(ids, with_reports=False), base)
            figure = against_chart(view, resources.task_colours(), of_tasks=len(view.tasks) == 1)
            alt = f"Dev and test scores against {series.title} with their 95% intervals"
            best = view.dev_choice
            chosen = "" if best is None else f" Dev is highest at {series.value_text(best)} (dashed)."
            pieces += [placed.chart(figure, alt), caption(f"{each.about}, against {series.title}.{chosen}")]
    if not pieces:
        raise NotThere("No two configurations of these runs differ in one number alone, such as λ.")
    if len(having) > _MOST_DATA:
        pieces.append(caption(f"These are the {_MOST_DATA} of {len(having)} data sets with the most runs."))
    return "".join(pieces)


def taken_apart(first: Answered, store: Store) -> Where:
    """The largest difference of the pair by bucket and kind of error. Raises MRNLabError."""
    if not first.of_pair:
        raise NotThere("There are no two rows with scores on the same data to compare.")
    delta = max(first.of_pair, key=_size)
    runs = {run.id: run for run in first.runs}
    score_name = first.table.scored_by[delta.task]
    return where_of(store, delta, score_name, runs, first.data, first.table.split)


def _size(delta: Difference) -> tuple[bool, float]:
    return delta.verdict != UNDECIDED, abs(delta.mean)


def where(apart: Where, placed: Placed) -> str:
    """A forest of buckets, and the buckets in numbers."""
    if not apart.buckets:
        raise NotThere(" ".join(apart.notes) or apart.headline)
    task, base = apart.delta.task, apart.delta.base.name
    view = where_forest(apart, lambda each: f"{each.bucket.phrase}: {each.verdict_text}, {each.in_points}")
    figure = forest_chart(view, {task: resources.task_colour(task)})
    alt = f"Difference from {base} on {task} by bucket, with 95% intervals"
    about = (
        f"{apart.data}, {task}: {apart.delta.row.name} less {base}. Buckets hold {apart.items}, and overlap. "
        "Decided: over seeds and over sentences, corrected for all buckets (Holm)."
    )
    return (
        f"<p><b>{html_text(apart.headline)}</b></p>{''.join(map(caption, apart.notes))}"
        f"{placed.chart(figure, alt)}{caption(about)}"
        f"<details><summary>In numbers</summary>{html(where_sheets(apart)[0])}</details>"
    )


def errors(apart: Where) -> str:
    """The kinds of errors of both, and their difference."""
    kinds = [
        sheet for sheet in where_sheets(apart) if sheet.head[0].casefold() in (ERRORS, SCHEME.casefold())
    ]
    if not kinds:
        raise NotThere(f"Kinds of errors are those of spans; {apart.delta.task} has none.")
    return "".join(map(html, kinds))
