"""Where a difference comes from: a forest of its buckets with their sentences, and the kinds of errors.

It is computed when the view is open, once for all sessions.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import streamlit as st

from core.corpora.loading import Files, files_of
from core.errors import CorpusError, MRNLabError
from core.evaluation.where import BucketDifference
from core.results.comparisons import Difference, run_pairs
from core.results.figures import forest_chart, where_forest, where_rows
from core.results.table import ResultRow, ResultTable
from core.results.where import ERRORS, SCHEME, WHERE_COLUMNS, BucketSentence, Where, where_of
from core.store.types import Run
from core.tasks import TaskKind
from core.wording import capitalised, p_sentence, plural
from dashboard.compare.compared_runs import ComparedRuns, labels, task_kind
from dashboard.compare.labelled import block_of, draw_blocks, outlined, read_examples
from dashboard.components.charts import chart
from dashboard.shared import resources
from dashboard.shared.downloads import copy_table, show_table
from dashboard.shared.selection import choice, segments
from dashboard.shared.states import show_note
from dashboard.text import escape, option
from jobs.reports.parts import Sheet, number_text
from jobs.reports.where import where_sheets

_TALL = 15
"""So many rows at most are drawn without scrolling."""
_TALL_FOREST = 24
_BUCKETS = "buckets"
_BUCKET = "bucket"
_MOST_SENTENCES = 5


def where_view(
    compared: ComparedRuns,
    table: ResultTable,
    task: str,
    rows: tuple[ResultRow, ResultRow],
    deltas: Sequence[Difference],
) -> None:
    """Draws where the first row scores higher than the second on a task, or why that is not known.

    `deltas` are differences from the second.
    """
    a, b = rows
    delta = next((each for each in deltas if each.row.key == a.key and each.task == task), None)
    if delta is None:
        st.caption(f"{escape(a.name)} and {escape(b.name)} do not both have a score on {escape(task)}.")
        return
    runs = {run.id: run for run in compared.runs}
    pairs = tuple((runs[run], runs[base]) for run, base in run_pairs(delta))
    setting = (compared.name, table.split, task, table.scored_by[task], a.name, b.name)
    try:
        apart = _taken_apart(pairs, setting, _files(pairs), delta)
    except MRNLabError as error:
        st.caption(escape(str(error)))
        return
    gains, others = map(escape, apart.headlines)
    st.markdown(f"**{gains}** {others}".rstrip())
    for note in apart.notes:
        show_note(escape(note))
    if apart.buckets:
        _forest(apart)
        _sentences(apart, task_kind(table, task), runs)
    sheets = _sheets(apart)
    if ERRORS in sheets:
        st.markdown("**Kinds of errors**")
        _in_numbers(apart, ERRORS, sheets.pop(ERRORS), alt="Kinds of errors of both, and their difference")
    if sheets:
        with st.expander("In numbers"):
            for name, sheet in sheets.items():
                _in_numbers(apart, name, sheet, alt=f"Scores of both by {name}, and their difference")


@st.cache_resource(max_entries=48, show_spinner="Comparing by bucket", hash_funcs=resources.BY_RUN)
def _taken_apart(
    pairs: tuple[tuple[Run, Run], ...],
    setting: tuple[str, str, str, str, str, str],
    files: Files | None,
    _delta: Difference,
) -> Where:
    """Where that difference of these runs comes from.

    `setting` is the data, split, task, score, and the names of both; `files`, those of the corpus, are part
    of the cache's key. Raises as `where_of`.
    """
    data, split, _, score_name, *_ = setting
    runs = {run.id: run for pair in pairs for run in pair}
    return where_of(resources.store(), _delta, score_name, runs, data, split)


def _files(pairs: Sequence[tuple[Run, Run]]) -> Files | None:
    """The files that the text of these runs is read from; None where there are none."""
    try:
        return files_of(pairs[0][0].config.corpus) if pairs else None
    except CorpusError:
        return None  # `where_of` says what is missing


def _forest(apart: Where) -> None:
    """Draws the difference in each bucket under heads, with a key of what their filling says."""
    task, base = apart.delta.task, apart.delta.base.name
    rows, view = where_rows(apart), where_forest(apart, lambda each: _hover(apart, each))
    with st.container(height=640 if len(view.rows) > _TALL_FOREST else "content", border=False):
        clicked = chart(
            forest_chart(view, {task: resources.task_colour(task)}),
            key="where_forest",
            revision=" ".join([task, apart.delta.row.name, base, apart.split, *view.rows]),
            still=True,
            alt=f"Difference from {base} on {task} by bucket, with 95% intervals",
        )
    if clicked is not None and not isinstance(each := rows[round(clicked.y)], str):
        st.session_state[_BUCKET] = each.bucket.phrase
    st.caption(
        "Click a mark to read its sentences. Verdicts are corrected for all buckets, intervals are not.",
        help="Points, paired by seed, with the 95% interval over seeds. "
        f"A bucket holds {apart.items} that have something in common; buckets overlap. "
        "Decided: more than chance over seeds and over sentences, after Holm's correction. Explained by "
        f"another bucket: decided, but no longer without the {apart.items} of that one.",
    )


def _sentences(apart: Where, kind: TaskKind, runs: Mapping[int, Run]) -> None:
    """Draws the choice of a bucket, and sentences in which the two make unlike numbers of errors with it."""
    buckets = {each.bucket.phrase: each.bucket for each in apart.buckets}
    titles = {"": f"{capitalised(kind.examples)} of a bucket"} | {name: option(name) for name in buckets}
    with st.container(horizontal=True, vertical_alignment="bottom"):
        picked = choice("Bucket", titles, key=_BUCKET, width=340, label_visibility="collapsed")
        if not picked or apart.errors is None:
            return
        whose = segments("Fewer errors", {"all": "All", "a": "A", "b": "B"}, key="fewer")
    a, b = escape(apart.delta.row.name), escape(apart.delta.base.name)
    every = apart.errors.sentences_in(buckets[picked])
    of_a = [each for each in every if each.fewer > each.more]
    of_b = [each for each in every if each.more > each.fewer]
    shown = {"all": every, "a": of_a, "b": of_b}[whose][:_MOST_SENTENCES]
    st.markdown(
        f"With {escape(picked)}, in most seeds **A** {a} makes fewer errors in "
        f"{plural(len(of_a), kind.examples[:-1])}, **B** {b} in {len(of_b):,}."
    )
    if not shown:
        return
    task, split = apart.delta.task, apart.split
    stored = {run: labels(runs[run], split, task) for each in shown for run in each.run_ids}
    gold, _ = stored[shown[0].run_ids[0]] or ((), ())
    sentences = read_examples(runs[shown[0].run_ids[0]], split, task, gold, kind)
    if sentences is None:
        return
    blocks = []
    for each in shown:
        lanes: dict[str, Sequence[str]] = {"gold": gold[each.sentence]}
        for letter, run in zip("AB", each.run_ids, strict=True):
            if (of_run := stored[run]) is not None:
                lanes[letter] = of_run[1][each.sentence]
        blocks.append(block_of(sentences[each.sentence], task, kind, lanes, _fewer_text(each, runs)))
    draw_blocks(blocks, key="where_sentences")
    st.caption(
        f"The first {plural(len(shown), kind.examples[:-1])}, those in which most seeds agree first. "
        f"{outlined(kind)}: not as annotated."
    )


def _fewer_text(each: BucketSentence, runs: Mapping[int, Run]) -> str:
    """`Fewer errors: A with 4 seeds, B with 1. Shown: seed 1.`"""
    counts = [f"A with {plural(each.fewer, 'seed')}"] * (each.fewer > 0)
    counts += [f"B with {plural(each.more, 'seed')}"] * (each.more > 0)
    return f"Fewer errors: {', '.join(counts)}. Shown: seed {runs[each.run_ids[0]].config.seed}."


def _hover(apart: Where, each: BucketDifference) -> str:
    """What is under the pointer at the mark of a bucket."""
    scores = (
        f"{name} {number_text(100 * score, 'z.2f')}"
        for name, score in ((apart.delta.row.name, each.a), (apart.delta.base.name, each.b))
    )
    p = "" if each.p is None or each.joint is None else f", {p_sentence(max(each.p, each.joint))}"
    return (
        f"{each.bucket.phrase}: {each.verdict_text}, {each.in_points}{p}; {', '.join(scores)}; "
        f"{number_text(each.items, ',.0f')} {apart.items}, {plural(each.paired.n, 'seed')}"
    )


def _sheets(apart: Where) -> dict[str, Sheet]:
    """The tables that there are, by what their rows are."""
    parts = ((_BUCKETS, apart.buckets), (ERRORS, apart.kinds), (SCHEME, apart.schemes))
    return dict(zip([name for name, lines in parts if lines], where_sheets(apart), strict=True))


def _in_numbers(apart: Where, name: str, sheet: Sheet, *, alt: str) -> None:
    """Draws a table with what it says, and the button that copies it."""
    with st.container(height=420 if len(sheet.blocks[0].rows) > _TALL else "content", border=False):
        show_table(sheet, alt=alt)
    records = [
        record
        for record in apart.records
        if (record["feature"] if record["feature"] in (ERRORS, SCHEME) else _BUCKETS) == name
    ]
    copy_table(sheet, WHERE_COLUMNS, records, key=f"where-{name.replace(' ', '-')}")
    st.caption(escape(sheet.caption))
