"""Under the scores: the differences, and two rows on one task by bucket, label, mistake and seed."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from itertools import islice
from typing import Any

import numpy as np
import pandas as pd
import streamlit as st

from core.evaluation.mistakes import errors, mistake_text, mistakes, sentences_with
from core.results.comparisons import Difference
from core.results.table import ResultRow, ResultTable
from core.store.types import Run
from core.tasks import TaskKind
from core.tasks.confusion import NOTHING
from core.tasks.scores import percent_sign
from core.wording import p_text, plural
from dashboard.compare import mistake_views
from dashboard.compare.charts import confusion_chart, deviation_chart, seeds_chart
from dashboard.compare.compared_runs import ComparedRuns, labels, task_kind
from dashboard.compare.comparison import difference_view
from dashboard.compare.labelled import block_of, draw_blocks, outlined, read_examples
from dashboard.compare.mistake_views import DETAIL, Matrix
from dashboard.compare.suspects import suspects_view
from dashboard.compare.views import Step, per_seed
from dashboard.compare.where import where_view
from dashboard.components import sentence
from dashboard.components.charts import chart
from dashboard.components.sentence import Said, TextBlock
from dashboard.shared import resources
from dashboard.shared.downloads import csv_button, csv_file, data_table
from dashboard.shared.selection import segments, switch
from dashboard.text import escape, option
from jobs.reports.parts import SIGNED, Form, number_text

_MOST_SENTENCES = 5
_LONG_LABEL = 20
_MOST_MISTAKES, _FEW_MISTAKES = 60, 11
_MOST_LINES = 12
"""Configurations side by side up to which their names can be read."""
_LOOKS = {
    "where": "Where",
    "differences": "Differences",
    "per class": "Per class",
    "mistakes": "Mistakes",
    "per seed": "Per seed",
    "suspects": "Suspects",
}
_LOOKS_WITHOUT_SCORES = {"differences": "Differences"}


def closer_look(
    table: ResultTable,
    compared: ComparedRuns,
    deltas: list[Difference],
    steps: Sequence[Step],
    a: str,
    b: str,
) -> None:
    """Draws the choice of view and task, and the view.

    `deltas` are differences from the baseline `b`, `steps` those beside the answer.
    """
    row_a, row_b = table.row(a), table.row(b)
    with st.container(horizontal=True, vertical_alignment="center"):
        st.subheader("Look closer", anchor=False, width="content")
        look = segments("View", _LOOKS if table.scored_tasks else _LOOKS_WITHOUT_SCORES, key="closer")
        if look != "differences":
            # By default the last shared task: spans are most telling, and stand last in most corpora.
            shared = [task for task in table.scored_tasks if task in row_a.cells and task in row_b.cells]
            names = {task: option(task) for task in table.scored_tasks}
            task = segments("Task", names, key="task", default=(shared or table.scored_tasks)[-1])
    if look == "differences":
        difference_view(table, compared, deltas, steps, b)
    elif look == "where":
        where_view(compared, table, task, (row_a, row_b), deltas)
    elif look == "per class":
        _per_class(table, task, row_a, row_b)
    elif look == "suspects":
        suspects_view(compared, table, task)
    elif look == "mistakes":
        _mistakes(table, {run.id: run for run in compared.runs}, task, row_a, row_b)
    else:
        _per_seed(table, task)


def _per_class(table: ResultTable, task: str, a: ResultRow, b: ResultRow) -> None:
    if task not in a.cells or task not in b.cells:
        st.caption(f"Only one of the two has a score on {escape(task)}.")
        return
    ids = [*a.cells[task].run_ids.values(), *b.cells[task].run_ids.values()]
    scores = resources.store().scores(ids, table.split)
    frame = mistake_views.classes(*(mistake_views.reports(row.cells[task], task, scores) for row in (a, b)))
    if frame.empty:
        numbers = task_kind(table, task).is_number
        st.caption(
            "A task of numbers has no classes. *Mistakes* shows predicted against annotated numbers."
            if numbers
            else "No report by label is stored for these runs."
        )
        return
    with st.container(horizontal=True, vertical_alignment="center"):
        _sides({"A": a.name, "B": b.name}, width="stretch")
        detail = switch("Precision, recall and spread", key="detail")
        names = {"A": a.name, "B": b.name}
        titles = {name: " ".join(names.get(word, word) for word in name.split()) for name in frame.columns}
        csv_button(csv_file(frame.rename(columns=titles)), f"mrnlab-{task}-classes")
    shown = frame if detail else frame.drop(columns=[name for name in frame.columns if name in DETAIL])
    number, longest = st.column_config.NumberColumn, int(frame["Label"].str.len().max())
    config: dict[str, Any] = {name: number(format="%.2f", width=65) for name in shown.columns[2:-1]}
    config |= {
        "Label": st.column_config.TextColumn(pinned=True, width=40 + 8 * min(longest, _LONG_LABEL)),
        "Annotated": st.column_config.ProgressColumn(
            format="%d", min_value=0, max_value=int(frame["Annotated"].max()), width=80
        ),
        "Difference": number("A − B", width=65, help="Of F1, paired by seed."),
        "Low": number(width=70, help="95% interval of this label's difference alone."),
        "High": number(width=70, help="95% interval of this label's difference alone."),
        "p": number("p, corrected", width=90, help="Corrected for all labels (Holm)."),
    }
    data_table(
        shown,
        forms={"Difference": SIGNED, "Low": SIGNED, "High": SIGNED, "p": p_text},
        most=14,
        tall=520,
        column_config=config,
        alt="F1 by label of both configurations, and their difference",
    )
    st.caption(
        "Percent, means over seeds. A − B: of F1, with its 95% interval; p is corrected for all labels "
        "(Holm), the interval is not. Click *Annotated* to sort rare labels to the top."
    )


def _sides(names: Mapping[str, str], **look: Any) -> None:
    """Draws which configurations A and B are."""
    st.markdown(", ".join(f"**{letter}** {escape(name)}" for letter, name in names.items()), **look)


def _newest_pick(key: str, task: str, clicked: Any, selected: Any) -> Any:
    """The last pick of this task, clicked in the chart or selected in the table; None without one.

    A click is reported once, a selected row as long as it stands.
    """
    if clicked is not None:
        st.session_state[key] = task, clicked
    elif selected is not None and selected != st.session_state.get(f"{key}_selected"):
        st.session_state[key] = task, selected
    st.session_state[f"{key}_selected"] = selected
    of_task, pick = st.session_state.get(key, ("", None))
    return pick if of_task == task else None


def _pick_error(frame: pd.DataFrame, forms: Mapping[str, Form], *, key: str, what: str) -> int | None:
    """Draw a table of errors of A and B, of which a line can be selected; returns the place of that line.

    `forms` are those of its numbers, `what` is a title in the plural.
    """
    number = st.column_config.NumberColumn
    event = data_table(
        frame,
        forms=forms,
        key=key,
        most=_FEW_MISTAKES,
        tall=440,
        on_select="rerun",
        selection_mode="single-row",
        column_config={name: number(width=65) for name in forms},
        alt=what,
    )
    st.caption(f"{what}. Select a row to read it.")
    rows = event.selection.rows
    return rows[0] if rows else None


# Mistakes: the matrix left, the most frequent ones right, sentences in which they happen below


def _mistakes(table: ResultTable, runs: Mapping[int, Run], task: str, a: ResultRow, b: ResultRow) -> None:
    kind = task_kind(table, task)
    if kind.is_number:
        _numbers(table, runs, task, kind, {"A": a, "B": b})
        return
    errors_a, errors_b = (
        errors(resources.confusions(_runs_of(row, task, runs), table.split, task, kind)) for row in (a, b)
    )
    if errors_a is None:
        st.caption(
            f"No predictions of {escape(a.name)} on {escape(task)} are stored: its mistakes are unknown."
        )
        return
    choices = {row.name: option(row.name) for row, known in ((a, errors_a), (b, errors_b)) if known}
    with st.container(horizontal=True, vertical_alignment="center"):
        shown = segments("Of", choices, key="of_whom")
        _sides({"A": a.name} | ({"B": b.name} if errors_b else {}), width="content")
    left, right = st.columns([5, 4], gap="medium")
    with left:
        of_side = errors_b if errors_b is not None and shown == b.name else errors_a
        clicked = _matrix(mistake_views.matrix(of_side), task, kind)
    with right:
        listed = mistakes(errors_a, errors_b).head(_MOST_MISTAKES)
        pairs = list(zip(listed["gold"], listed["predicted"], strict=True))
        frame = pd.DataFrame({"Mistake": [mistake_text(*pair) for pair in pairs], "A": listed["A"]})
        if errors_b is not None:
            frame = frame.assign(**{"B": listed["B"], "A − B": listed["A"] - listed["B"]})
        forms = {"A": "z.1f", "B": "z.1f", "A − B": "+z.1f"}
        place = _pick_error(
            frame,
            forms,
            key="mistakes",
            what="The most frequent mistakes, per seed",
        )
    selected = None if place is None else pairs[place]
    mistake = _newest_pick("shown_mistake", task, clicked, selected)
    if mistake is not None and mistake[0] != mistake[1]:
        _examples(table, runs, task, kind, (a, b), mistake)


def _runs_of(row: ResultRow, task: str, runs: Mapping[int, Run]) -> list[Run]:
    return [runs[run_id] for run_id in row.cells[task].run_ids.values()] if task in row.cells else []


def _matrix(view: Matrix, task: str, kind: TaskKind) -> tuple[str, str] | None:
    """Returns the mistake that was clicked."""
    clicked = chart(
        confusion_chart(view),
        key="confusion",
        revision=" ".join([task, *view.gold, *view.predicted]),
        still=True,
        alt=f"Predicted against gold labels of {task}",
    )
    invented = "; *nothing there*: in percent of the column's gold labels" * (NOTHING in view.gold)
    st.caption(
        "Rows: gold labels, with the share predicted correctly. Columns: predicted labels, in percent of the "
        f"row{invented}. Correct predictions are grey. Click a cell for {kind.examples}."
    )
    return None if clicked is None else (view.gold[round(clicked.y)], view.predicted[round(clicked.x)])


def _examples(
    table: ResultTable,
    runs: Mapping[int, Run],
    task: str,
    kind: TaskKind,
    rows: tuple[ResultRow, ResultRow],
    mistake: tuple[str, str],
) -> None:
    """The first sentences in which A, or else B, makes the mistake; of the first seed that both have."""
    cells = {letter: row.cells[task] for letter, row in zip("AB", rows, strict=True) if task in row.cells}
    seeds = set.intersection(*(set(cell.run_ids) for cell in cells.values()))
    seed = min(seeds or cells["A"].run_ids)
    predictions = {
        letter: stored
        for letter, cell in cells.items()
        if seed in cell.run_ids
        and (stored := labels(runs[cell.run_ids[seed]], table.split, task)) is not None
    }
    st.markdown(f"**{escape(mistake_text(*mistake))}**")
    where = {
        letter: list(islice(sentences_with(kind, *stored, mistake), _MOST_SENTENCES))
        for letter, stored in predictions.items()
    }
    letter = next((letter for letter, of_side in where.items() if of_side), None)
    if letter is None:
        whose = "Neither model makes this mistake" if len(predictions) > 1 else "No such mistake"
        st.caption(f"{whose} with seed {seed}{', their first common seed' * bool(seeds)}.")
        return
    gold = predictions[letter][0]
    sentences = read_examples(runs[cells[letter].run_ids[seed]], table.split, task, gold, kind)
    if sentences is None:
        return
    of_gold = {"gold": gold} | {who: of[1] for who, of in predictions.items()}
    draw_blocks(
        [
            block_of(sentences[place], task, kind, {who: of[place] for who, of in of_gold.items()})
            for place in where[letter]
        ],
        key="mistake_sentences",
    )
    first = plural(len(where[letter]), kind.examples[:-1])
    st.caption(
        f"The first {first} in which {letter} makes this mistake (seed {seed}). {outlined(kind)}: not as "
        "annotated."
    )


# Numbers: predicted against annotated left, the largest errors right, the chosen text below


def _numbers(
    table: ResultTable, runs: Mapping[int, Run], task: str, kind: TaskKind, rows: Mapping[str, ResultRow]
) -> None:
    """The scatter of one of A and B left, the largest errors of both right, the chosen text below."""
    stored = {
        letter: [
            (run, of_run)
            for run in _runs_of(row, task, runs)
            if (of_run := labels(run, table.split, task)) is not None
        ]
        for letter, row in rows.items()
    }
    known = {
        letter: mistake_views.guesses([of_run for _, of_run in of]) for letter, of in stored.items() if of
    }
    names = {letter: row.name for letter, row in rows.items()}
    if "A" not in known:
        st.caption(f"No predictions of {escape(names['A'])} on {escape(task)} are stored.")
        return
    if "B" in known and known["B"].gold != known["A"].gold:
        del known["B"]
        st.caption(f"{escape(names['B'])} was tested on other text, so it is left out here.")
    with st.container(horizontal=True, vertical_alignment="center"):
        shown = segments("Of", {letter: option(names[letter]) for letter in known}, key="of_number")
        _sides({letter: names[letter] for letter in known}, width="content")
    side, colour = known[shown], resources.task_colour(task)
    run, (gold, _) = stored["A"][0]
    sentences = read_examples(run, table.split, task, gold, kind)
    left, right = st.columns([5, 4], gap="medium")
    with left:
        clicked = chart(
            deviation_chart(side, names[shown], colour),
            key="numbers_chart",
            revision=f"{task} {shown} {len(side.gold)}",
            still=True,
            alt=f"Predicted against annotated numbers of {task}, a point per {kind.item}",
        )
        others = f" ({side.elsewhere} more had other text)" if side.elsewhere else ""
        st.caption(
            f"{escape(names[shown])}: {mistake_views.misses(side)} A point per {kind.item}, its prediction "
            f"the mean over {plural(side.seeds, 'seed')}{others}. Dotted line: no error. Click a point to "
            "read it."
        )
    with right:
        listed = mistake_views.furthest(known).head(_MOST_MISTAKES)
        frame = listed.drop(columns="place")
        if sentences is not None:
            frame.insert(0, "Text", [" ".join(sentences[place].tokens) for place in listed["place"]])
        forms = {"Annotated": "g", "A": "z.2f", "B": "z.2f"}
        place = _pick_error(frame, forms, key="number_misses", what="The largest errors of predicted numbers")
        selected = None if place is None else int(listed["place"].iloc[place])
    nearest = clicked and int(
        np.argmin(np.abs(np.array(side.gold) - clicked.x) + np.abs(side.mean - clicked.y))
    )
    index = _newest_pick("read_number", task, nearest, selected)
    if sentences is not None and len(listed):
        index = index if index is not None and index < len(sentences) else int(listed["place"].iloc[0])
        numbers = [Said(f"{task}, annotated", number_text(side.gold[index], "g"), colour)]
        numbers += [
            Said(letter, number_text(of_side.mean[index], "z.2f")) for letter, of_side in known.items()
        ]
        sentence.texts([TextBlock(sentences[index].tokens, sentences[index].second, numbers)])


def _per_seed(table: ResultTable, task: str) -> None:
    scores = per_seed(table)
    shown = scores.pivot(index="seed", columns="configuration", values=task).dropna(axis=1, how="all")
    names = [row.name for row in table.rows if row.name in shown]
    percent = ", in percent" * bool(percent_sign([table.scored_by[task]]))
    with st.container(horizontal=True, vertical_alignment="center"):
        st.caption(
            f"{escape(task)}, {escape(table.score_names[task])}{percent}. A thin line is a seed, the thick "
            "one their mean. If all thin lines slope the same way, every seed agrees.",
            width="stretch",
        )
        csv_button(csv_file(scores), f"mrnlab-{table.split}-seeds")
    if len(names) <= _MOST_LINES:
        chart(
            seeds_chart(table, task, resources.task_colour(task)),
            key="seeds_chart",
            revision=" ".join([task, *names]),
            still=True,
            alt=f"Scores on {task} of each seed by configuration",
        )
    data_table(
        shown[names].reset_index(),
        forms=dict.fromkeys(names, "z.2f"),
        most=12,
        column_config={"seed": st.column_config.NumberColumn("Seed", width=60, pinned=True)},
        alt=f"Scores on {task} in percent, a line per seed, a column per configuration",
    )
