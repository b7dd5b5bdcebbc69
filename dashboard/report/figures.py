"""The parts of a report on scores: answer, table, forest, score against a setting, where, errors."""

from __future__ import annotations

from collections.abc import Sequence

from core.evaluation.comparison import UNDECIDED
from core.evaluation.statistics import CONFIDENCE
from core.results.comparisons import Difference
from core.results.figures import Forest, Mark, against_chart, forest, forest_chart
from core.results.series import baselines, number_series, scores_against
from core.results.table import MEAN_OF_TASKS
from core.results.where import ERRORS, SCHEME, Where, where_of
from core.store import Store
from dashboard.launch.paradigms import WORDS
from dashboard.report.placed import NotThere, Placed, caption
from dashboard.shared import resources
from dashboard.theme import PARADIGM_NAMES, ramp
from jobs.reports.answered import Answered
from jobs.reports.html import html, html_text
from jobs.reports.where import where_sheets

_MOST_AGAINST = 2
_MARKED = "Filled marks are decided, hollow ones undecided."


def answer(of_data: Sequence[Answered]) -> str:
    """The question and the answer on each data."""
    pieces = []
    for each in of_data:
        lines = "".join(
            f'<li><span class="task">{html_text(task)}</span> {html_text(sentence)}</li>'
            for task, sentence in each.lines
        )
        pieces.append(
            f'<p class="question">{html_text(each.question)}</p>'
            f'<p class="answer">{html_text(each.sentence)}</p><ul class="verdicts">{lines}</ul>'
        )
    matters = 100 * of_data[0].table.matters
    explained = (
        f"Differences are points (score times 100), paired by seed, with their {CONFIDENCE:.0%} interval. "
        f"Higher, lower: a significant difference. Equivalent: surely smaller than {matters:g} points. "
        "Undecided: neither; more seeds may decide it. Dev chooses among candidates, test reports."
    )
    return "".join(pieces) + caption(explained) + _paradigms(of_data)


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
        pieces.append(html(sheet, name=name))
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
        pieces.append(placed.chart(forest_chart(view, colours), alt))
        pieces.append(caption(_MARKED))
        name, sheet = list(each.sheets.items())[1]
        pieces.append(f"<details><summary>In numbers</summary>{html(sheet, name=name)}</details>")
    if not pieces:
        raise NotThere("There are no two rows with scores on the same data to compare.")
    return "".join(pieces)


def against(of_data: Sequence[Answered], store: Store, placed: Placed) -> str:
    """Scores against the numbers in which configurations differ."""
    pieces: list[str] = []
    for each in of_data:
        conditions = store.conditions(each.runs)
        for series in number_series(each.runs, conditions)[:_MOST_AGAINST]:
            base = next(iter(baselines(series, each.runs, conditions)), None)
            ids = [*series.run_ids, *(base.run_ids if base else ())]
            view = scores_against(series, store.scores(ids, with_reports=False), base)
            figure = against_chart(view, resources.task_colours(), of_tasks=len(view.tasks) == 1)
            alt = f"Dev and test scores against {series.title} with their 95% intervals"
            best = view.dev_choice
            chosen = "" if best is None else f" Dev is highest at {series.value_text(best)} (dashed)."
            pieces += [placed.chart(figure, alt), caption(f"{each.data}, against {series.title}.{chosen}")]
    if not pieces:
        raise NotThere("No two configurations of these runs differ in one number alone, such as λ.")
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
    marks = []
    for row, each in enumerate(apart.buckets):
        low, high = (100 * end for end in each.interval) if each.interval else (None, None)
        hover = f"{each.bucket.phrase}: {each.verdict_text}, {each.in_points}"
        verdict = each.verdict if each.is_named else UNDECIDED
        marks.append(Mark(row, task, 100 * each.paired.mean, low, high, hover, verdict))
    view = Forest(tuple(each.bucket.phrase for each in apart.buckets), (task,), base, tuple(marks))
    figure = forest_chart(view, {task: resources.task_colour(task)})
    alt = f"Difference from {base} on {task} by bucket, with 95% intervals"
    about = (
        f"{apart.data}, {task}: {apart.delta.row.name} less {base}. Buckets hold {apart.items}, and overlap. "
        "Filled: decided over seeds and over sentences, corrected for all buckets (Holm)."
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
