"""Gold suspects: places where nearly all runs contradict the annotation, with their sentences and files."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import pandas as pd
import streamlit as st

from core.corpora.loading import Files, files_of
from core.errors import CorpusError, MRNLabError
from core.results.suspects import (
    AGREE,
    SUSPECT_COLUMNS,
    Suspect,
    Suspects,
    suspects_conll,
    suspects_of,
    words_of,
)
from core.results.table import ResultTable
from core.store.types import Run
from core.wording import plural
from dashboard.compare.compared_runs import ComparedRuns
from dashboard.compare.labelled import block_of, draw_blocks, outlined
from dashboard.components.sentence import SentenceBlock, TextBlock
from dashboard.shared import resources
from dashboard.shared.downloads import csv_button, data_table
from dashboard.shared.selection import segments, set_parameter
from dashboard.text import escape
from jobs.reports.render import csv_text

_AGREE = {f"{AGREE:g}": "At least 90% agree", "1": "All agree", "0.75": "At least 75% agree"}
_MOST_SENTENCES, _MOST_LISTED = 5, 200
_PICKED = "suspect"


def suspects_view(compared: ComparedRuns, table: ResultTable, task: str) -> None:
    """Draws the suspects of a task by the runs of all rows, or why there are none."""
    agree = segments("Agreement", _AGREE, key="agree")
    runs = {run.id: run for run in compared.runs}
    counted = [  # of a seed that was trained twice the newest run
        dict.fromkeys(run for cell in row.cells.values() for run in cell.run_ids.values())
        for row in table.rows
    ]
    methods = tuple(tuple(runs[run] for run in of_row) for of_row in counted)
    try:
        of_task = _suspects(methods, compared.name, table.split, task, float(agree), _files(compared.runs))
    except MRNLabError as error:
        st.caption(escape(str(error)))
        return
    count, places = len(of_task.places), plural(len(of_task.places), "place")
    if not count:
        st.caption(f"No {table.split} place on {escape(task)} is contradicted by so many of these runs.")
        return
    name = f"mrnlab-{task}-{table.split}-suspects"
    with st.container(horizontal=True, vertical_alignment="center"):
        st.markdown(
            f"**{places}** where these runs predict the same and not the annotated label. Gold is never "
            "changed.",
            width="stretch",
        )
        csv_button(csv_text(SUSPECT_COLUMNS, of_task.records), name)
        if of_task.kind.reads == "words":
            st.download_button(
                "CoNLL", suspects_conll([of_task]), f"{name}.conll", "text/plain",
                icon=":material/download:", on_click="ignore",
            )  # fmt: skip
    shown = of_task.places[:_MOST_LISTED]
    picked = _table(shown, count)
    of_sentences = shown[:_MOST_SENTENCES] if picked is None else [picked]
    draw_blocks([_block(each, of_task) for each in of_sentences], key="suspect_sentences")
    st.caption(
        f"{outlined(of_task.kind)}: not as annotated. First what looks most like a wrong annotation: by "
        "agreement, by the labels that training shows these words with, and by how rarely models make the "
        "same mistake elsewhere. Systematic mistakes of weak models look like wrong gold. The files have all "
        "places, for an annotator."
    )


@st.cache_resource(max_entries=24, show_spinner="Looking for suspects", hash_funcs=resources.BY_RUN)
def _suspects(
    methods: tuple[tuple[Run, ...], ...], data: str, split: str, task: str, agree: float, files: Files | None
) -> Suspects:
    """The suspects; `files`, those of the corpus, are part of the cache's key. Raises as `suspects_of`."""
    return suspects_of(resources.store(), data, methods, split, task, agree)


def _files(runs: Sequence[Run]) -> Files | None:
    """The files that the text of these runs is read from; None where there are none."""
    try:
        return files_of(runs[0].config.corpus)
    except CorpusError:
        return None  # `suspects_of` says what is missing


def _table(shown: Sequence[Suspect], total: int) -> Suspect | None:
    """Draws these places of `total` in a table; returns the one in the address, which a selection sets."""
    places = [f"{each.sentence}.{each.start}" for each in shown]
    frame = pd.DataFrame(
        {
            "Agree": [100 * each.agree for each in shown],
            "Words": [" ".join(words_of(each.words)[each.start : each.end]) for each in shown],
            "Annotated": [" ".join(each.gold) for each in shown],
            "Predicted": [" ".join(each.predicted) for each in shown],
            "Other tasks": [each.related_text for each in shown],
        }
    )

    def selected() -> None:
        rows = st.session_state["suspects"]["selection"]["rows"]
        set_parameter(_PICKED, places[rows[0]] if rows and rows[0] < len(places) else "")

    data_table(
        frame,
        forms={"Agree": ".0f"},
        key="suspects",
        most=11,
        tall=420,
        on_select=selected,
        selection_mode="single-row",
        column_config={"Agree": st.column_config.NumberColumn("Agree, %", width=70)},
        alt="Places that runs contradict, with annotated and predicted labels",
    )
    first = f" The first {_MOST_LISTED} of {total:,}." * (total > _MOST_LISTED)
    st.caption(f"Select a row to read its sentence.{first}")
    place = st.query_params.get(_PICKED, "")
    return shown[places.index(place)] if place in places else None


def _block(each: Suspect, of_task: Suspects) -> SentenceBlock | TextBlock:
    """The sentence with its annotation, what the runs agree on at the place, and other tasks there."""
    gold = list(each.words.labels[of_task.task])
    guess = list(each.predicted)
    if of_task.kind.reads == "words":
        guess = [*gold[: each.start], *each.predicted, *gold[each.end :]]
    about = f"{100 * each.agree:.0f}% of {plural(each.runs, 'run')}"
    about += f". Other tasks: {each.related_text}" if each.related else ""
    lanes = {"gold": gold, "runs": guess}
    return replace(block_of(each.words, of_task.task, of_task.kind, lanes), about=about)
