"""The comparison of two rows as the reader asks it: the answer with its forest, all differences."""

from __future__ import annotations

from collections.abc import Sequence

import streamlit as st

from core.config import OTHER, field_label, shares_nothing
from core.evaluation.statistics import CONFIDENCE, MATTERS
from core.registry import BILSTM_SUFFIX, ONE_STACK
from core.results.comparisons import (
    Difference,
    answers,
    headline,
    mean_answer,
    run_pairs,
    with_sentences,
)
from core.results.cuts import cut_losses
from core.results.figures import Forest, forest, forest_chart
from core.results.naming import confounds
from core.results.pairs import default_pair
from core.results.records import DIFFERENCE_COLUMNS, difference_records
from core.results.stored import PLANNED_SPLIT
from core.results.table import MEAN_OF_TASKS, ResultRow, ResultTable
from core.wording import all_of, plural
from dashboard.compare import compared_runs, seeds, until_decided, views
from dashboard.compare.compared_runs import ComparedRuns
from dashboard.compare.views import Step
from dashboard.components.charts import chart
from dashboard.shared.downloads import copy_table, show_table
from dashboard.shared.resources import task_colour, task_colours
from dashboard.shared.selection import choice, segments, switch
from dashboard.shared.states import show_note, show_reason
from dashboard.text import coloured, escape, unbroken
from dashboard.theme import ramp
from jobs.reports.render import difference_sheet

_MANY = 180
"""Predictions (a run's, of one task) beyond which testing takes more than some seconds, and is asked for."""
_TALL = 12
_OPEN = 6
"""So many differences at most are listed in numbers from the start."""
_MOST_LINES = 6
"""Up to so many tasks have their differences in lines."""
_MOST_NUMBERS = 18
"""Marks of the answer's forest up to which each has its numbers beside it."""
_PAIR = 2
_FAMILIES = {"pairs": "All pairs", "baseline": "Against the baseline"}
_STEP = 0.05
"""Between the differences that may matter, in points."""
_UNTESTED = {
    "no predictions stored": "Without stored predictions of both there is no test over sentences.",
    "different sentences": "Runs tested on different sentences have no test over sentences.",
    "no common seed": "Where two configurations have no seed in common, nothing is tested.",
}
_OTHER_ENCODER = (
    "STL has the same encoder, or if there is none, one that reads the same words. MTL − MTL: the gain over "
    f"{ONE_STACK}, one stack for all tasks."
)
_SHARES_NOTHING = "Frozen without a BiLSTM, MTL shares nothing."


def answer(
    table: ResultTable, compared: ComparedRuns
) -> tuple[ResultTable, tuple[str, str] | None, list[Step]]:
    """Draws the comparison of two rows.

    Returns the table with the family and the difference that matters that the reader chose, the keys of the
    rows (None if there is one row only), and the steps that stand in their answer, theirs first.
    """
    pair = default_pair(table)
    if pair is None:
        show_reason(_nothing_to_compare(table))
        return table, None, []
    with st.container(border=True):
        table, a, b = _asked(table, *pair)
        if a == b:
            st.markdown("Choose two different configurations.")
            return table, None, []
        steps = views.sharing(table, (a, b))
        drawn = [step for step in steps if not step.asks_transformer]
        row_a, row_b, shown = table.row(a), table.row(b), answers(table, a, b)
        mean = mean_answer(table, a, b)
        with_mean = shown if mean is None else [*shown, mean]
        offered = seeds.offers(table, compared, a, b, with_mean)
        _sentences(table, row_a, row_b, shown)
        if drawn:
            view = views.sharing_forest(drawn, table.tasks)
            _forest_chart(view, table, "compare_answer", numbers=len(view.marks) <= _MOST_NUMBERS)
        _answer_notes(table, row_a, row_b, drawn)
        is_trained = OTHER not in (row_a.config.paradigm, row_b.config.paradigm)
        with st.container(horizontal=True, vertical_alignment="center"):
            seeds.missing_seeds_button(offered, compared)
            if is_trained and shown and table.split == PLANNED_SPLIT and not offered.is_on_older_text:
                until_decided.add_until_decided(row_a, row_b, table.matters, with_mean)
            seeds.deciding_seeds(offered, with_mean, compared)
        seeds.runs_on_their_way(compared)
        seeds.launch_problem()
        for cut in cut_losses(table):
            st.markdown(f":material/content_cut: {escape(cut.sentence)}")
        for step in steps:
            if step.asks_transformer:
                _transformer(step)
        _sharing_notes([step for step in drawn if step.is_of_sharing], compared)
    return table, (a, b), steps


def _nothing_to_compare(table: ResultTable) -> str:
    (row,) = table.rows
    if not row.choice:
        return "One configuration only. Choose more runs, or launch another on the same data."
    return (
        f"One method: dev chose {escape(row.chosen)}, {escape(row.choice)}. *Every row* compares the "
        "candidates; to compare methods, choose more runs, or launch another on the same data."
    )


def _asked(table: ResultTable, first: str, second: str) -> tuple[ResultTable, str, str]:
    """Draws what is compared and how; returns the table for it with the keys of both rows."""
    keys = {row.name: row.key for row in table.rows}

    def pick(label: str, key: str, default: str) -> str:
        return keys[choice(label, keys.keys(), key=key, default=table.row(default).name)]

    with st.container(horizontal=True, vertical_alignment="bottom"):
        a, b = pick("Compare", "of", first), pick("with the baseline", "to", second)
        rule = st.popover("How verdicts are made", icon=":material/tune:", key="verdicts")
    linked = st.query_params.get("matters", "")
    with rule:
        points = st.number_input(
            "What matters, points",
            min_value=0.0,
            max_value=100.0,
            value=100 * MATTERS,
            step=_STEP,
            format="%g",
            key="matters",
            bind="query-params",
            width=160,
            help="The smallest difference that matters. One that is surely smaller is equivalent.",
        )
        family = "pairs"
        if len(table.rows) > _PAIR:
            text = "Which differences are tested together. Fewer tests leave more of them decided."
            family = segments("Corrected for", _FAMILIES, key="family", labelled=True, help=text)
    matters = MATTERS if points is None else points / 100
    if linked and not _fits(linked):
        st.caption(
            f":material/warning: What matters is a number of points from 0 to 100, not '{escape(linked)}'; "
            f"{100 * matters:g} is used."
        )
    table = table.asking(matters=matters, baseline=b if family == "baseline" else None)
    with rule:
        st.markdown(_verdicts(table, table.row(a)))
    return table, a, b


def _fits(matters: str) -> bool:
    """Whether the difference that matters in an address is one."""
    try:
        return 0 <= float(matters) <= 100
    except ValueError:
        return False


def _verdicts(table: ResultTable, row: ResultRow) -> str:
    mean = (
        f"Mean of tasks: {table.mean_scores(row)}, over the seeds that all have."
        if len(row.cells) > 1
        else ""
    )
    return f"""\
- **Higher, lower**: a significant difference (paired t-test over seeds, p < 0.05).
- **Equivalent**: smaller than {100 * table.matters:g} points (two one-sided tests, p < 0.05).
- **Undecided**: neither. More seeds may decide it.

Filled marks are decided, hollow ones undecided. Differences are points, paired by seed, of unrounded scores;
in brackets is the 95% interval of this difference alone (Student's t). Verdicts and p are
corrected for {escape(views.family_text(table))} (Holm); those of the mean of tasks for its own pairs. After
correction a difference can be undecided although its interval excludes zero. {escape(mean)}

*Differences* has a second p, over sentences: would these models differ on other text (approximate
randomisation, 10,000 rounds, Holm over the differences shown)?
"""


def _sentences(table: ResultTable, row_a: ResultRow, row_b: ResultRow, shown: Sequence[Difference]) -> None:
    several = len(table.blocks) > 1
    over = f"Over {escape(row_a.block)}: " if row_a.block == row_b.block and several else ""
    names = (row_a.label, row_b.label) if row_a.block == row_b.block else (row_a.name, row_b.name)
    with st.container(key="answer_compare"):
        st.markdown(f"**{over}{headline(*names, shown, unbroken)}**")
    if others := _labels(confounds(row_a.config, row_b.config)):
        st.caption(
            f":material/warning: They also differ in {others}: the difference is not the paradigm's alone."
            if row_a.config.paradigm != row_b.config.paradigm
            else f"They differ in {others}."
        )


def _labels(fields: Sequence[str]) -> str:
    """The labels of these fields, as on Launch: `Training and λ`."""
    return escape(all_of(list(map(field_label, fields))))


def _answer_notes(table: ResultTable, row_a: ResultRow, row_b: ResultRow, drawn: Sequence[Step]) -> None:
    """When a difference counts, which candidates dev chose, and in what else the other steps' rows differ."""
    notes = [f"{row.name}: {row.chosen}, {row.choice}." for row in (row_a, row_b) if row.choice]
    if table.tests:
        of = f"the {table.tests} {'pairs' if table.baseline is None else 'differences'}, within each task"
        correcting = f" after correcting for {of}" * (table.tests > 1)
        notes.append(f"A difference counts when p < {1 - CONFIDENCE:g}{correcting}.")
    others = [step for step in drawn if {step.a.key, step.b.key} != {row_a.key, row_b.key} and step.confounds]
    notes += [
        f"{step.title} also differs in {all_of(list(map(field_label, step.confounds)))}." for step in others
    ]
    st.caption(escape(" ".join(notes)))


def _difference_line(delta: Difference) -> None:
    st.markdown(f"{coloured(delta.task, task_colour(delta.task))}: {escape(delta.sentence)}")


def _sharing_notes(steps: Sequence[Step], compared: ComparedRuns) -> None:
    """Draws the notes on the steps of sharing, with a way to MTL that shares."""
    if any(step.other_encoder for step in steps):
        st.caption(_OTHER_ENCODER)
    if any(step.shares_nothing for step in steps):
        alone = [run for run in compared.runs if shares_nothing(run.config)]
        encoders = dict.fromkeys(f"{run.config.encoder}{BILSTM_SUFFIX}" for run in alone)
        link = {"clone": ",".join(str(run.id) for run in alone), "encoder": ",".join(encoders)}
        with st.container(horizontal=True, vertical_alignment="center", gap="small"):
            show_note(_SHARES_NOTHING, width="content")
            st.page_link(
                "launch/page.py",
                label="Add a BiLSTM",
                icon=":material/rocket_launch:",
                query_params=link,
                help="MTL − STL comes from other batches and steps. Launch opens with these runs.",
            )


def _forest_chart(view: Forest, table: ResultTable, key: str, *, numbers: bool = False) -> None:
    """Draws differences in the colours of the tasks, or of configurations if each row is a task."""
    of_tasks = set(view.targets) <= {*table.tasks, MEAN_OF_TASKS}
    colours = task_colours() if of_tasks else {name: ramp(place) for place, name in enumerate(view.targets)}
    chart(
        forest_chart(view, {} if len(view.targets) == 1 and not of_tasks else colours, numbers=numbers),
        key=key,
        revision=" ".join([view.reference, *view.targets, *view.rows]),
        still=True,
        alt=f"Differences from {view.reference} on each task with their 95% intervals",
    )


def _transformer(step: Step) -> None:
    """Whether a transformer is worth it: the best row over one against the best over words."""
    st.markdown("**Do I need a transformer?**")
    with st.container(gap="xsmall"):
        st.markdown(headline(step.a.name, step.b.name, step.deltas, unbroken))
        for delta in step.deltas if len(step.deltas) <= _MOST_LINES else ():
            _difference_line(delta)
    others = f" They also differ in {_labels(step.confounds)}." if step.confounds else ""
    st.caption(
        "The best on dev over a transformer against the best over word vectors, each with its encoder's own "
        f"settings.{others} *Show cost* has their size, memory and time."
    )


def difference_view(
    table: ResultTable,
    compared: ComparedRuns,
    shown: list[Difference],
    steps: Sequence[Step],
    baseline: str,
) -> None:
    """Every row's difference from the baseline, also in the mean of tasks: a table of tests, and a forest.

    Differences of the answer have the sign that they have there, and those without the baseline come last;
    the forest is of what is not drawn there.
    """
    if not shown:
        st.caption(f"No other configuration shares a task with {escape(table.row(baseline).name)}.")
        return
    of_answer = [step for step in steps if not step.asks_transformer]
    drawn = {frozenset((step.a.key, step.b.key)) for step in of_answer}
    shown = [
        *shown,
        *(
            delta
            for step in of_answer
            if baseline not in (step.a.key, step.b.key)
            for delta in step.with_mean
        ),
    ]
    of_tasks = [delta for delta in shown if delta.task != MEAN_OF_TASKS]
    numbers = st.container()
    unturned = [delta for delta in views.signed_as(steps, shown) if delta.base.key == baseline]
    if not {frozenset((delta.row.key, baseline)) for delta in unturned} <= drawn:
        view = forest(unturned, table, baseline)
        with numbers.container(height=640 if len(view.rows) > _TALL else "content", border=False):
            _forest_chart(view, table, "compare_forest")
        numbers = numbers.expander("In numbers, with both tests", expanded=len(of_tasks) <= _OPEN)
    with numbers:
        means = [delta for delta in shown if delta.task == MEAN_OF_TASKS]
        places = [row.key for row in table.rows]
        tested = [*_tested(of_tasks, table, compared), *means]
        tested.sort(key=lambda delta: (delta.base.key != baseline, places.index(delta.row.key)))
        shown = views.signed_as(steps, tested)
        sheet, with_remarks = (
            difference_sheet(shown, table, baseline, compared.name, on_page=on_page)
            for on_page in (False, True)
        )
        with st.container(height=420 if len(shown) > _TALL else "content", border=False):
            alt = "Differences with verdicts, intervals and corrected p-values"
            show_table(with_remarks, alt=alt)
        copy_table(sheet, DIFFERENCE_COLUMNS, difference_records(shown, table), key="differences")
        _notes(shown)


def _tested(shown: list[Difference], table: ResultTable, compared: ComparedRuns) -> list[Difference]:
    needed = ((run, delta.task) for delta in shown for pair in run_pairs(delta) for run in pair)
    count = len(set(needed))
    if count > _MANY and not switch(
        f"Test over sentences ({plural(count, 'prediction')} to read)",
        key="sentences",
        help="Takes some seconds the first time.",
    ):
        return shown
    with st.spinner("Testing over sentences"):
        return with_sentences(shown, compared_runs.sentence_tests(shown, table, compared.runs))


def _notes(shown: Sequence[Difference]) -> None:
    st.caption(
        "p seeds decides: would another training differ the same way? p sentences: would these models differ "
        "on other text? *How verdicts are made* names the tests."
    )
    for reason in dict.fromkeys(delta.untested for delta in shown if delta.untested):
        show_note(_UNTESTED[reason])
