"""The parts of the Compare page: which runs, the answer, the table like the paper's, the table per seed."""

from __future__ import annotations

import pandas as pd
import streamlit as st

from core.store import Store
from core.store.records import Run
from core.store.states import RunState
from dashboard import resources
from dashboard.published import CITATION, Published, matching
from dashboard.queries.compare import Cell, CompareView, answers, default_pair, per_seed
from dashboard.queries.naming import confounds, corpus_name, run_name
from dashboard.selection import choose, choose_runs, chosen
from dashboard.text import escape, percent, plural
from dashboard.theme import PARADIGM_NAMES, colours

_NARROW = "\u202f"  # a narrow space that does not break, so that a cell stays on one line

__all__ = ["answer", "scope", "seeds_table", "summary_table"]


def scope(store: Store) -> list[Run]:
    """The chosen runs, or, where none is chosen, all finished runs of the newest one's corpus and share of
    data.
    """
    finished = store.runs(states={RunState.SUCCEEDED}, limit=2000)
    known = {run.id for run in finished}
    if not any(run_id in known for run_id in chosen()):
        newest = finished[0].config
        like = [
            r for r in finished if (r.config.corpus, r.config.fraction) == (newest.corpus, newest.fraction)
        ]
        words = f"All {plural(len(like), 'finished run')} on {escape(corpus_name(newest))}"
        with st.popover(words, icon=":material/filter_list:"):
            choose_runs(finished, {run.id: run_name(run) for run in finished}, key="compare_runs")
        return like
    with st.popover(f"{plural(len(known & set(chosen())), 'chosen run')}", icon=":material/filter_list:"):
        picked = choose_runs(finished, {run.id: run_name(run) for run in finished}, key="compare_runs")
        st.button("All runs of the newest corpus", on_click=choose, args=((),))
    return picked


def answer(view: CompareView) -> None:
    """The answer in a sentence per task, and the two rows it is about."""
    pair = default_pair(view)
    if pair is None:
        st.info(
            "One configuration only. Launch another on the same data to compare it with.",
            icon=":material/info:",
        )
        return
    names = {row.key: row.name for row in view.rows}
    with st.container(border=True):
        said, asked = st.columns([3, 2], gap="large")
        with asked:
            keys = list(names)
            a = st.selectbox(
                "Difference of",
                keys,
                index=keys.index(pair[0]),
                format_func=names.__getitem__,
                key="compare_a",
            )
            b = st.selectbox(
                "to", keys, index=keys.index(pair[1]), format_func=names.__getitem__, key="compare_b"
            )
        with said, st.container(gap="xsmall"):
            if a == b:
                st.markdown("Choose two different configurations.")
                return
            _sentences(view, names, a, b)


def _sentences(view: CompareView, names: dict[str, str], a: str, b: str) -> None:
    colour = colours(resources.task_order())
    found = answers(view, a, b)
    st.markdown(f"**{escape(names[a])} − {escape(names[b])}** in points on the {view.split} sentences")
    for one in found:
        weight = "**" if one.holds else ""
        dot = f':color[●]{{foreground="{colour.get(one.task, "#8A939B")}"}}'
        st.markdown(f"{dot} {escape(one.task)}: {weight}{escape(one.sentence)}{weight}")
    configs = {row.key: row.config for row in view.rows}
    if others := confounds(configs[a], configs[b]):
        st.caption(
            f":material/warning: They also differ in {escape(', '.join(others))}: the difference is not the "
            "paradigm's alone."
            if configs[a].paradigm != configs[b].paradigm
            else f"They differ in {escape(', '.join(others))}."
        )
    if not found:
        st.markdown("They share no task.")
    elif any(one.holds for one in found):
        st.caption("± is half of the paired 95% interval over seeds. Bold: the interval leaves zero out.")
    elif all(one.difference is None or one.difference.n < 2 for one in found):
        st.caption("One seed cannot tell a difference from chance. Launch the same with more seeds, 5 say.")
    else:
        st.caption(
            "± is half of the paired 95% interval over seeds. No difference holds: each interval includes "
            "zero."
        )


def summary_table(view: CompareView, *, published: bool) -> None:
    """Configurations × tasks like the paper's: mean ± SD, n small beside, the best in bold where it holds."""
    others = _published(view) if published else []
    head = {task: f"{escape(task)}, {escape(view.score_names[task])}" for task in view.tasks}
    lines = {
        escape(row.name): {head[task]: _cell(row.cells.get(task)) for task in view.tasks} for row in view.rows
    }
    for name, cells in _published_lines(others).items():
        lines[f":gray[{escape(name)}]"] = {
            head[task]: f":gray[{cells[task].mean:.2f} ± {cells[task].sd:.2f}]" if task in cells else ""
            for task in view.tasks
        }
    st.table(
        pd.DataFrame.from_dict(lines, orient="index"),
        border="horizontal",
        alt="Mean and standard deviation over seeds, by configuration and task",
    )
    st.caption(
        "Mean ± standard deviation over seeds, in percent; n is how many seeds. "
        "Bold only where the paired 95% interval to the next best leaves zero out."
    )
    if published and others:
        st.caption(f"Grey: {escape(CITATION)}. POS there is seqeval F1.")
    elif published:
        st.caption("The dissertation has no figure for this corpus, encoder and share of data.")


def _cell(cell: Cell | None) -> str:
    if cell is None:
        return ""
    text, weight = percent(cell.summary.mean), "**" if cell.best else ""
    sd = cell.summary.sd
    spread = f" ± {100 * sd:.2f}" if sd is not None else ""
    return f"{weight}{text}{weight}{spread} :small[:gray[n {cell.summary.n}]]".replace(" ", _NARROW)


def _published(view: CompareView) -> list[Published]:
    corpora = {corpus_name(row.config) for row in view.rows}
    return [cell for corpus in corpora for cell in matching(corpus, [row.config for row in view.rows])]


def _published_lines(cells: list[Published]) -> dict[str, dict[str, Published]]:
    lines: dict[str, dict[str, Published]] = {}
    for cell in cells:
        share = f", {100 * cell.fraction:g}% of the data" if cell.fraction < 1 else ""
        name = f"Table {cell.table}: {PARADIGM_NAMES[cell.paradigm]} {cell.encoder}{share}"
        lines.setdefault(name, {})[cell.task] = cell
    return lines


def seeds_table(view: CompareView) -> None:
    """Every seed's scores, and the same as CSV."""
    frame = pd.DataFrame(per_seed(view))
    with st.container(horizontal=True, vertical_alignment="center", horizontal_alignment="distribute"):
        st.subheader("Per seed", anchor=False, width="content")
        st.download_button(
            "CSV",
            frame.to_csv(index=False),
            file_name=f"mrnlab-{view.split}.csv",
            mime="text/csv",
            icon=":material/download:",
            on_click="ignore",
        )
    st.dataframe(
        frame,
        hide_index=True,
        height="content" if len(frame) <= 12 else 480,
        placeholder="",
        column_config={
            "configuration": st.column_config.TextColumn("Configuration"),
            "seed": st.column_config.NumberColumn("Seed", width=60),
            **{
                task: st.column_config.NumberColumn(f"{task}, {view.score_names[task]}", format="%.2f")
                for task in view.tasks
            },
        },
        alt="Scores of each seed in percent",
    )
