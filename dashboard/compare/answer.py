"""The upper half of Compare: the answer, what sharing did, the table like the paper's, the forest."""

from __future__ import annotations

from collections.abc import Sequence

import pandas as pd
import streamlit as st

from core.evaluation.costs import COST_NOTE
from core.studies.published import CITATION
from core.wording import p_text, plural, points
from dashboard.compare.charts import forest_chart
from dashboard.compare.scope import Scope, predictions_needed, sentence_tests
from dashboard.compare.views import (
    ALONE,
    DIFFERENCE_COLUMNS,
    FIXED,
    OPEN,
    Difference,
    answers,
    default_pair,
    difference_records,
    difference_sheet,
    differences,
    forest,
    headline,
    published_text,
    score_text,
    sharing,
    sharing_forest,
    sharing_sentence,
    with_sentences,
)
from dashboard.components.charts import chart
from dashboard.shared import resources
from dashboard.shared.downloads import copy_table
from dashboard.text import escape
from dashboard.theme import TASK_COLOURS, colours
from jobs.naming import COST_HEAD, confounds, cost_cells
from jobs.results import ResultTable
from jobs.sheets import (
    BEST,
    COST_COLUMNS,
    SCORE_COLUMNS,
    published_rows,
    score_records,
    score_sheet,
    with_published,
)

_MANY = 180
"""Predictions (a run's, of one task) beyond which testing takes more than some seconds, and is asked for."""
_TALL = 12
_INTERVAL = "{} end of the 95% interval of this difference by itself."
_UNTESTED = {
    "no predictions stored": "Of some runs no predictions are stored, so nothing can be tested over "
    "sentences there.",
    "different sentences": "Some runs were tested on different sentences, so these cannot be exchanged "
    "between them: there is no test over sentences.",
    "no common seed": "Where two configurations have no seed in common, nothing is tested.",
}


def answer(table: ResultTable) -> tuple[str, str] | None:
    """The answer in a sentence, the difference per task, and what sharing did. Returns the keys of the two
    rows that it is about; None where there is but one.
    """
    pair = default_pair(table)
    if pair is None:
        st.info(
            "One configuration only. Choose more runs, or launch another on the same data.",
            icon=":material/info:",
        )
        return None
    with st.container(border=True):
        left, right = st.columns([11, 9], gap="large")
        with left:
            a, b = _pick_pair(table, *pair)
            if a == b:
                st.markdown("Choose two different configurations.")
                return None
            _sentences(table, a, b)
        with right:
            _sharing(table, table.row(a).block, b)
    return a, b


def _pick_pair(table: ResultTable, first: str, second: str) -> tuple[str, str]:
    keys = {row.name: row.key for row in table.rows}

    def pick(label: str, key: str, default: str) -> str:
        if st.session_state.get(key) not in keys:
            st.session_state.pop(key, None)  # a row that is no longer among them
        place = list(keys.values()).index(default)
        return keys[st.selectbox(label, list(keys), index=place, key=key, bind="query-params")]

    with st.container(horizontal=True):
        return pick("Difference of", "of", first), pick("to the baseline", "to", second)


def _sentences(table: ResultTable, a: str, b: str) -> None:
    row_a, row_b = table.row(a), table.row(b)
    shown = answers(table, a, b)
    if row_a.block == row_b.block:
        over = f"Over {escape(row_a.block)}: " if len(table.blocks) > 1 else ""
        st.markdown(f"**{over}{headline(row_a.label, row_b.label, shown, escape)}**")
    else:
        st.markdown(f"**{headline(row_a.name, row_b.name, shown, escape)}**")
    colour = colours(resources.task_order())
    with st.container(gap="xsmall"):
        for delta in shown:
            dot = f':color[●]{{foreground="{colour.get(delta.task, TASK_COLOURS[-1])}"}}'
            st.markdown(f"{dot} {escape(delta.task)}: {escape(delta.sentence)}")
    if others := escape(", ".join(confounds(row_a.config, row_b.config))):
        st.caption(
            f":material/warning: They also differ in {others}: the difference is not the paradigm's alone."
            if row_a.config.paradigm != row_b.config.paradigm
            else f"They differ in {others}."
        )
    st.caption(_note([delta.seeds for delta in shown if delta.seeds]))


def _note(seeds: Sequence[int]) -> str:
    """How the lines above are to be read, and what the number of seeds allows."""
    if not seeds:
        return "Only runs of the same seed can be paired."
    if max(seeds) < 2:
        return "One seed cannot tell a difference from chance. Launch the same with more seeds, 5 say."
    few = f" With {min(seeds)} seeds the interval is wide: Student's t counts how few they are."
    return (
        "Points; ± is half of the 95% interval of a difference by itself, paired by seed. p is corrected for "
        "all differences on this page (Holm), and the sentence above follows it."
        + (few if min(seeds) in (2, 3) else "")
    )


def _sharing(table: ResultTable, block: str, baseline: str) -> None:
    """In a sentence for the encoder that is asked for, in the chart for all."""
    steps = sharing(table, baseline)
    if not steps:
        st.caption("What sharing did is shown here once there are runs of two paradigms with a common seed.")
        return
    st.markdown("**What sharing did**")
    if of_block := [step for step in steps if step.a.block == block]:
        name = f"{escape(block)}: " if len({step.a.block for step in steps}) > 1 else ""
        st.markdown(name + sharing_sentence(of_block, escape))
    view = sharing_forest(steps, table.tasks)
    chart(
        forest_chart(view, colours(resources.task_order())),
        key="sharing",
        revision=" ".join([*view.targets, *view.families]),
        still=True,
        alt="Differences MTL − STL and MRN − MTL per task with their 95% intervals",
    )
    notes = []
    verdicts = {delta.verdict for step in steps for delta in step.deltas}
    if OPEN in verdicts:
        notes.append("Hollow: no change is shown, by p corrected for all differences here (Holm).")
    if ALONE in verdicts:
        notes.append("One seed in common has no interval and tells no change from chance.")
    notes += [
        f"{step.title} also differs in {escape(', '.join(others))}."
        for step in steps
        if (others := confounds(step.a.config, step.b.config))
    ]
    if any(step.shares_nothing for step in steps):
        notes.append(
            "Over a frozen encoder MTL and STL share no trained weights: MTL − STL comes from other batches, "
            "steps and gradients, not from sharing."
        )
    st.caption(" ".join(notes))


def summary_table(table: ResultTable, compared: Scope, *, published: bool, cost: bool = False) -> None:
    """Configurations × tasks like the paper's: mean ± SD, n small beside, the best in bold.

    Published figures and what a configuration costs stand beside on demand.
    """
    others = published_rows(table) if published else {}
    sheet = score_sheet(table, compared.name, cost=cost)
    with st.container(horizontal=True, vertical_alignment="center", horizontal_alignment="distribute"):
        st.subheader("Scores", anchor=False, width="content")
        copy_table(
            with_published(sheet, table) if published else sheet,
            SCORE_COLUMNS + COST_COLUMNS * cost,
            score_records(table, cost=cost),
            key="scores",
        )
    head = [f"{escape(task)}, {escape(table.score_names[task])}" for task in table.tasks]
    head += [name.capitalize() for name in COST_HEAD if cost]
    lines: list[tuple[str, list[str]]] = []
    for block, rows in table.blocks.items():
        if len(table.blocks) > 1:
            lines.append((f"**{escape(block)}**", []))
        for row in rows:
            task_cells = [row.cells.get(task) for task in table.tasks]
            scores = [score_text(cell.summary, bold=cell.best) if cell else "" for cell in task_cells]
            costs = [text.replace(" ", FIXED) for text in cost_cells(row.cost)] if cost else []
            lines.append((escape(row.label), scores + costs))
        for name, cells in others.get(block, {}).items():
            lines.append(
                (f":gray[{escape(name)}]", [published_text(cells.get(task)) for task in table.tasks])
            )
    padded = [cells + [""] * (len(head) - len(cells)) for _, cells in lines]
    st.table(
        pd.DataFrame(padded, index=[name for name, _ in lines], columns=head),
        border="horizontal",
        alt="Mean and standard deviation over seeds, by configuration and task",
    )
    st.caption(f"Mean ± standard deviation over seeds, in percent; n is how many seeds. Bold: {BEST}")
    if cost:
        st.caption(f"{COST_NOTE} Dashes: trained before this was measured.")
    for note in table.notes:
        st.caption(f":material/info: {escape(note)}")
    if others:
        st.caption(f"Grey: {escape(CITATION)}. POS there is seqeval F1.")
    elif published:
        st.caption(
            "No figure of the dissertation stands beside these rows: corpus, share of data, encoder "
            "(fine-tuned), paradigm, tasks, alignment and the score of POS must be the paper's."
        )


def difference_view(table: ResultTable, compared: Scope, baseline: str) -> None:
    """Every configuration's difference to the baseline: a forest, and a table with both tests."""
    shown = _tested(differences(table, baseline), table, compared)
    name = escape(table.row(baseline).name)
    with st.container(horizontal=True, vertical_alignment="center", horizontal_alignment="distribute"):
        st.subheader(f"Differences to {name}", anchor=False, width="content")
        copy_table(
            difference_sheet(shown, table, baseline, compared.name),
            DIFFERENCE_COLUMNS,
            difference_records(shown, table),
            key="differences",
        )
    if not shown:
        st.caption(f"No other configuration shares a task with {name}.")
        return
    view = forest(shown, table, baseline)
    with st.container(height=640 if len(view.families) > _TALL else "content", border=False):
        chart(
            forest_chart(view, colours(resources.task_order())),
            key="compare_forest",
            revision=" ".join([view.reference, *view.families]),
            still=True,
            alt=f"Differences to {view.reference} with their 95% intervals",
        )
    _table(shown)
    _notes(shown)


def _tested(shown: list[Difference], table: ResultTable, compared: Scope) -> list[Difference]:
    count = predictions_needed(shown)
    if count > _MANY and not st.toggle(
        f"Test over sentences ({plural(count, 'prediction')} to read)",
        key="sentences",
        bind="query-params",
        help="Takes some seconds the first time.",
    ):
        return shown
    with st.spinner("Testing over sentences"):
        return with_sentences(shown, sentence_tests(shown, table, compared.runs))


def _table(shown: Sequence[Difference]) -> None:
    frame = pd.DataFrame(
        {
            "Configuration": delta.row.name,
            "Task": delta.task,
            "Difference": points(delta.mean),
            "from": None if delta.paired is None or delta.paired.low is None else points(delta.paired.low),
            "to": None if delta.paired is None or delta.paired.high is None else points(delta.paired.high),
            "Seeds": delta.seeds,
            "p seeds": p_text(delta.p_seeds),
            "p sentences": p_text(delta.p_sentences),
            "Over seeds": delta.verdict,
        }
        for delta in shown
    )
    text, number = st.column_config.TextColumn, st.column_config.NumberColumn
    st.dataframe(
        frame,
        hide_index=True,
        height="content" if len(frame) <= _TALL else 420,
        placeholder="–",
        column_config={
            "Configuration": text(width=250),
            "Difference": number(format="%+.2f", help="Points, paired by seed."),
            "from": number(format="%+.2f", help=_INTERVAL.format("Lower")),
            "to": number(format="%+.2f", help=_INTERVAL.format("Upper")),
            "p seeds": text(help="Paired t-test over seeds, corrected for all differences here (Holm)."),
            "p sentences": text(
                help="Approximate randomisation over sentences, 10,000 rounds, corrected for all differences "
                "here (Holm).",
            ),
            "Over seeds": text(
                help="above, below: p over seeds is under 0.05, corrected for all differences on this page. "
                "Tiny: so it is, but by less than 0.05 points."
            ),
        },
        alt="Differences to the baseline with intervals and corrected p-values",
    )


def _notes(shown: Sequence[Difference]) -> None:
    marks = (
        "Filled marks: the corrected p over seeds is under 0.05; intervals are of one difference each."
        if any(delta.interval for delta in shown)
        else "No interval over seeds is drawn, for none of these differences has a spread over seeds."
    )
    st.caption(
        "Two questions. Over seeds: would another training differ the same way? Over sentences: would these "
        "trained models differ the same way on other text? Both p are corrected for the differences on this "
        f"page, {len(shown):,} to the baseline among them (Holm). {marks}"
    )
    for reason in dict.fromkeys(delta.untested for delta in shown if delta.untested):
        st.caption(f":material/info: {_UNTESTED[reason]}")
    if any(0 < delta.seeds < 3 for delta in shown):
        st.caption(
            ":material/info: Some differences rest on one or two seeds. That is too few to say anything but "
            "their direction; five are usual."
        )
