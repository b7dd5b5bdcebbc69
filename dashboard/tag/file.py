"""A whole file, tagged by one run in the background of the page, as CoNLL columns to take away."""

from __future__ import annotations

import hashlib
import threading
import time
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path

import pandas as pd
import streamlit as st

from core.corpora.free_text import ENDINGS, GivenText, has_columns, propose_columns, read_given
from core.errors import CorpusError
from core.evaluation.scores import PlainScore
from core.records import TaskScore
from core.tagging import TaggedSentence, Tagger, column_names, conll_text, given_scores, tag_in_parts
from core.wording import duration, percent, plural
from dashboard.shared.states import empty, problem
from dashboard.tag.cache import answers, desk
from dashboard.tag.views import System, given_tasks
from dashboard.text import escape
from jobs.results import SCORE_NAMES

# A file that is tagged in the background of the page, so that one can watch it and stop it.


@dataclass(frozen=True)
class Tagged:
    """A tagged file: the columns and the text without and with probabilities, and scores against its gold
    labels.
    """

    columns: tuple[tuple[str, ...], tuple[str, ...]]
    texts: tuple[bytes, bytes]
    scores: tuple[TaskScore, ...]


class Batch:
    """Tags sentences in a thread of its own, which begins at once. `taggers` may wait for them to load."""

    def __init__(
        self,
        given: GivenText,
        taggers: Callable[[], Sequence[Tagger]],
        plain_score: PlainScore,
    ) -> None:
        self.total = len(given.sentences)
        self.done = 0
        self._given = given
        self._plain_score = plain_score
        self._taggers = taggers
        self._stop = threading.Event()
        self._began = time.monotonic()
        pool = ThreadPoolExecutor(1, thread_name_prefix="tag-file")
        self._result = pool.submit(self._tag)
        pool.shutdown(wait=False)

    @property
    def running(self) -> bool:
        """Whether it still works."""
        return not self._result.done()

    @property
    def seconds_left(self) -> float | None:
        """By its pace so far; None before there is one."""
        if not self.done:
            return None
        return (time.monotonic() - self._began) / self.done * (self.total - self.done)

    def stop(self) -> None:
        """Ends after the part that it is at; what was tagged is dropped."""
        self._stop.set()

    def result(self) -> Tagged | None:
        """What came of it, waiting for its end; None where it was stopped. Raises what went wrong."""
        return self._result.result()

    def _tag(self) -> Tagged | None:
        taggers = self._taggers()
        sentences = self._given.sentences
        answers: list[TaggedSentence] = []
        for part in tag_in_parts(taggers, [one.tokens for one in sentences]):
            answers += part
            self.done = len(answers)
            if self._stop.is_set():
                return None
        schemes = {task: scheme for tagger in taggers for task, scheme in tagger.schemes.items()}
        gold = self._given.gold
        return Tagged(
            (
                column_names(list(schemes), gold, confidence=False),
                column_names(list(schemes), gold, confidence=True),
            ),
            (
                conll_text(sentences, answers).encode(),
                conll_text(sentences, answers, confidence=True).encode(),
            ),
            tuple(given_scores(sentences, answers, schemes, self._plain_score)),
        )


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
        f"up to {MOST_MEGABYTES} MB and {MOST_WORDS:,} words",
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
            f"{name} holds {words:,} words and the most here is {MOST_WORDS:,}; split it, or use "
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
    told = f"{batch.done:,} of {plural(batch.total, 'sentence')}"
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
