"""A whole file, tagged by one run in the background of the page, as CoNLL columns to take away."""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from pathlib import Path

import pandas as pd
import streamlit as st

from core.corpora.given import ENDINGS, GivenText, has_columns, propose_columns, read_given
from core.errors import CorpusError
from dashboard.batch import Batch, Tagged
from dashboard.caches.tag import answers, desk
from dashboard.queries.compare import SCORE_NAMES
from dashboard.queries.tag_systems import System, given_tasks
from dashboard.states import empty, problem
from dashboard.text import count, duration, escape, percent, plural

__all__ = ["tag_file"]

MOST_MEGABYTES = 20
MOST_WORDS = 300_000

_KEPT = "tag_batch"
_PACE = 0.5
_PREVIEW = 12


def tag_file(asked: Sequence[System]) -> None:
    """The upload, what is in it, progress, and the result."""
    if not asked:
        return
    with st.container(horizontal=True, vertical_alignment="bottom"):
        system = st.selectbox(
            "Tagged by", asked, format_func=lambda one: one.name, key="tag_file_system", width=460
        )
        split = st.toggle(
            "Lines of .txt are already split into words", key="tag_file_split", persist_state="session"
        )
    uploaded = st.file_uploader(
        "A sentence a line (.txt), CoNLL columns (.conll, .tsv, or a .txt with labels) or CoNLL-U (.conllu), "
        f"up to {MOST_MEGABYTES} MB and {count(MOST_WORDS)} words",
        type=list(ENDINGS),
        max_upload_size=MOST_MEGABYTES,
        key="tag_file",
    )
    if uploaded is None:
        empty(
            "A file, please",
            "Every task of the run is written beside each word. Where the file has labels of its tasks, they "
            "are taken for gold and the run is scored.",
        )
        return
    content = uploaded.getvalue()
    try:
        given, columns = _read(content, uploaded.name, system, split)
    except CorpusError as error:
        problem(str(error))
        return
    key = hashlib.sha256(content).hexdigest() + repr((uploaded.name, columns, split, system.checkpoints))
    _run(given, system, key, Path(uploaded.name).stem)


def _read(content: bytes, name: str, system: System, split: bool) -> tuple[GivenText, tuple[str, ...] | None]:
    """What is in the file, and how its columns are named. Raises CorpusError."""
    tasks = given_tasks(answers([system], ())[0])
    columns = None
    if not (split and Path(name).suffix.lower() == ".txt") and has_columns(content, name, tasks):
        proposed = propose_columns(content, name, tasks)
        told = st.text_input(
            "Columns, from left to right",
            value=", ".join(proposed),
            key=f"tag_file_columns_{'.'.join(proposed)}",
            help="Proposed from the labels that the run knows. A name that begins with \\_ is read over.",
        )
        columns = tuple(part.strip() for part in told.split(",") if part.strip())
    given = read_given(content, name, tasks, columns=columns, split=split)
    words = sum(len(one.tokens) for one in given.sentences)
    if words > MOST_WORDS:
        raise CorpusError(
            f"{name} holds {count(words)} words and the most here is {count(MOST_WORDS)}; split it, or use "
            f"mrnlab tag {system.runs[0].id} --file, which has no limit."
        )
    gold = f"; gold labels of {', '.join(given.gold)}" if given.gold else "; no gold labels"
    st.caption(escape(f"{plural(len(given.sentences), 'sentence')}, {plural(words, 'word')}{gold}."))
    for note in given.notes:
        st.caption(f":material/info: {escape(note)}")
    return given, columns


def _run(given: GivenText, system: System, key: str, name: str) -> None:
    """The button, then progress, then the result of the file as it is now."""
    known: tuple[str, Batch] | None = st.session_state.get(_KEPT)
    batch = known[1] if known is not None and known[0] == key else None
    if batch is not None and batch.running:
        _progress(batch)
        return
    tagged = batch.result() if batch is not None else None
    if tagged is not None:
        _result(tagged, f"{name}-run-{system.runs[0].id}")
    else:
        if known is not None:
            known[1].stop()
        if batch is not None:
            st.caption("Stopped; nothing was kept.")
        if st.button("Tag the file", type="primary", icon=":material/sell:"):
            loads = [desk().load(checkpoint) for checkpoint in system.checkpoints]
            batch = Batch(given, lambda: [load.result() for load in loads], system.runs[0].config.pos_score)
            st.session_state[_KEPT] = key, batch
            st.rerun()


@st.fragment(run_every=_PACE)
def _progress(batch: Batch) -> None:
    if not batch.running:
        st.rerun()
    left = batch.seconds_left
    told = f"{count(batch.done)} of {plural(batch.total, 'sentence')}"
    told += f", about {duration(left)} left" if left is not None else ", loading the model"
    with st.container(horizontal=True, vertical_alignment="center"):
        st.progress(batch.done / batch.total, text=told)
        if st.button("Cancel", icon=":material/stop_circle:"):
            batch.stop()


def _result(tagged: Tagged, name: str) -> None:
    if tagged.scores:
        st.dataframe(
            pd.DataFrame(
                {
                    "Task": score.task,
                    "Score": percent(score.score),
                    "of": SCORE_NAMES.get(score.score_name, score.score_name),
                    "Precision": percent(score.precision),
                    "Recall": percent(score.recall),
                    "Words": score.tokens,
                }
                for score in tagged.scores
            ),
            hide_index=True,
            height="content",
            alt="Scores against the gold labels of the file, a line per task",
        )
        st.caption("By the scorer of training, on the sentences that have gold labels of the task.")
    sure = st.toggle("With probabilities", key="tag_file_sure", persist_state="session")
    columns, text = tagged.columns[sure], tagged.texts[sure]
    st.download_button(
        "Download CoNLL",
        text,
        file_name=f"{name}.conll",
        mime="text/plain",
        icon=":material/download:",
        type="primary",
        on_click="ignore",
    )
    st.caption(escape(f"Columns, set apart by tabs: {', '.join(columns)}."))
    lines = text.decode().splitlines()[:_PREVIEW]
    st.code("\n".join(lines), language=None)
