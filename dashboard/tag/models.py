"""The models of the Tag page, their last answers, and the sentences of their corpora."""

from __future__ import annotations

import gc
import os
import threading
from collections import OrderedDict
from collections.abc import Iterable, Sequence
from concurrent.futures import Future, ThreadPoolExecutor, wait
from dataclasses import dataclass, replace
from itertools import accumulate, chain, zip_longest
from pathlib import Path

import streamlit as st

from core.config import RunConfig
from core.corpora import prepare
from core.corpora.loading import is_here as corpus_is_here
from core.corpora.types import Sentence
from core.errors import MRNLabError
from core.paths import own_checkpoint
from core.recording.owner import hostname
from core.store.types import Run, RunState
from core.tagging import Tagger, load_tagger
from core.tasks import KINDS
from core.tasks.kinds import Reads
from dashboard.shared.resources import BY_RUN, store
from dashboard.tag.seeds import Answer, Configuration, System, merged, voted
from dashboard.tag.views import CheckedSentence, Labels, checked, waiting_sentence

MOST_BYTES = 4_000_000_000
"""Checkpoints kept loaded, by size: nine of BERT base. Those over a frozen encoder hold their heads only."""

_MOST_ANSWERS = 256
_PATIENCE_S = 2.0
"""So long the page waits for all answers before it shows those that there are."""
_TOP = 5
_ASKED = "tag_asked"
_ALL = 1_000_000  # more labels of texts than a task has

Words = tuple[tuple[str, ...], ...]
Texts = tuple[tuple[str, str | None], ...]
_Version = tuple[str, float, int]


class Models:
    """Models that stay loaded: one after another, in the background. They are asked in parallel."""

    def __init__(self) -> None:
        self._loads: OrderedDict[_Version, Future[Tagger]] = OrderedDict()
        self._kept: set[_Version] = set()
        self._answers: OrderedDict[tuple[_Version, Words, Texts], Future[Answer]] = OrderedDict()
        self._lock = threading.Lock()
        self._loader = ThreadPoolExecutor(1, thread_name_prefix="load-model")
        self._askers = ThreadPoolExecutor(min(4, os.cpu_count() or 1), thread_name_prefix="tag")

    def load(self, checkpoint: str) -> Future[Tagger]:
        """Future of the loaded model. Its result raises MRNLabError if the checkpoint is damaged."""
        key = _version(checkpoint)
        with self._lock:
            known = self._loads.get(key)
            if known is None or (known.done() and known.exception() is not None):
                self._loads[key] = self._loader.submit(_load, checkpoint)
            self._loads.move_to_end(key)
            load = self._loads[key]
            while len(self._loads) > 1 and sum(size for _, _, size in self._loads) > MOST_BYTES:
                # Of more models than there is room for, asked in turn, the oldest is the one asked next:
                # those of the view that fit stay.
                names = [*(other for other in self._loads if other != key), key]
                del self._loads[next((name for name in names if name not in self._kept), names[0])]
            return load

    def prepare(self, checkpoints: Iterable[str]) -> int:
        """Loads the first of these models in the background, and returns how many stay loaded."""
        versions = list(dict.fromkeys(map(_version, checkpoints)))
        sizes = accumulate(size for _, _, size in versions)
        kept = [version for version, size in zip(versions, sizes, strict=True) if size <= MOST_BYTES]
        kept = kept or versions[:1]
        with self._lock:
            self._kept = set(kept)
        for checkpoint, _, _ in kept:
            self.load(checkpoint)
        return len(kept)

    def ask(self, checkpoint: str, sentences: Words, texts: Texts) -> Future[Answer]:
        """Future of a model's answers on the sentences and the texts.

        Its result raises MRNLabError if the checkpoint is damaged. The last ones are kept.
        """
        key = (_version(checkpoint), sentences, texts)
        with self._lock:
            known = self._answers.get(key)
            if known is None or known.cancelled() or (known.done() and known.exception() is not None):
                self._answers[key] = self._askers.submit(self._answer, checkpoint, sentences, texts)
            self._answers.move_to_end(key)
            if len(self._answers) > _MOST_ANSWERS:
                self._answers.popitem(last=False)
            return self._answers[key]

    def _answer(self, checkpoint: str, sentences: Words, texts: Texts) -> Answer:
        tagger = self.load(checkpoint).result()
        return Answer(
            "",
            tagger.schemes,
            tuple(tagger.tag(sentences, top=_TOP) if sentences else ()),
            tagger.labels,
            tuple(tagger.notes),
            tagger.scales,
            tuple(tagger.answer(texts, top=_ALL) if texts else ()),
        )


def _version(checkpoint: str) -> _Version:
    """The checkpoint's folder, when it was last changed, and its size in bytes."""
    files = [path.stat() for path in (Path(checkpoint), *Path(checkpoint).rglob("*")) if path.exists()]
    return (
        checkpoint,
        max((file.st_mtime for file in files), default=0.0),
        sum(file.st_size for file in files),
    )


def _load(checkpoint: str) -> Tagger:
    tagger = load_tagger(own_checkpoint(checkpoint))
    tagger.tag([["."]])  # what is slow the first time is over before the first sentence
    # The million objects of torch and transformers would cost every page a third of a second.
    gc.collect()
    gc.freeze()
    return tagger


@st.cache_resource(max_entries=1, show_spinner=False)
def models() -> Models:
    """The models of this process."""
    return Models()


@dataclass(frozen=True)
class Given:
    """The answers of the configurations so far, and why some of the `asked` models cannot answer.

    `encoders` are those of the models that have not answered.
    """

    answers: Sequence[Answer]
    problems: Sequence[str]
    done: int
    asked: int
    encoders: Sequence[str]


def answers(chosen: Sequence[Configuration], sentences: Words, texts: Texts, *, patient: bool) -> Given:
    """The answers of these configurations on sentences, texts and pairs, from the seeds that are done.

    The first seed of each is asked first. `patient` waits for a moment until all have answered.
    """
    rounds = chain.from_iterable(zip_longest(*(configuration.asked for configuration in chosen)))
    runs = [run for system in rounds if system for run in system.runs]
    asked = {run.id: models().ask(run.checkpoint or "", sentences, texts) for run in runs}
    stale = st.session_state.get(_ASKED, [])
    for future in stale:
        if future not in asked.values():
            future.cancel()
    st.session_state[_ASKED] = list(asked.values())
    if patient:
        with st.spinner("Loading the models", show_time=True):
            wait(asked.values(), _PATIENCE_S)
    problems: list[str] = []
    given: dict[int, Answer] = {}
    encoders: list[str] = []
    for run in runs:
        if not asked[run.id].done():
            encoders.append(run.config.encoder)
            continue
        try:
            given[run.id] = asked[run.id].result()
        except MRNLabError as error:
            problems.append(f"Run {run.id}: {error}")
    of_configurations = []
    for configuration in chosen:
        of_seeds = [
            merged(system.who, parts)
            for system in configuration.asked
            if (parts := [given[run.id] for run in system.runs if run.id in given])
        ]
        of_configurations += [voted(configuration.who, of_seeds)] if of_seeds else []
    return Given(of_configurations, problems, len(given) + len(problems), len(asked), encoders)


def pending() -> bool:
    """Whether models that this reader asked last have not answered yet."""
    return any(not future.done() for future in st.session_state.get(_ASKED, ()))


def what_is_awaited(given: Given) -> str:
    """The models that have not answered, and the runs in training that they share this machine with."""
    training = store().runs(states={RunState.RUNNING})
    here = sum(run.owner is not None and run.owner.host == hostname() for run in training)
    return waiting_sentence(given.done, given.asked, given.encoders, here)


def reads_of(chosen: Sequence[Configuration]) -> list[Reads]:
    """The inputs of these configurations' tasks, by their stored facts: words, sentences, texts, pairs."""
    runs = store().runs_with_facts([run.id for of in chosen for system in of.seeds for run in system.runs])
    known = {KINDS[task.scheme].reads for run in runs for task in run.task_facts}
    every: list[Reads] = ["words", "sentence", "text", "pair"]
    return [reads for reads in every if reads in known] or every[:1]


def is_here(config: RunConfig) -> bool:
    """Whether the run's corpus can be read without the network. Raises CorpusError if it is unknown."""
    return corpus_is_here(config.corpus)


def test_split(system: System) -> list[CheckedSentence]:
    """The test sentences of a system's corpus with the mistakes it made on them when it was trained.

    Raises CorpusError where the corpus cannot be read or has changed since.
    """
    return _test_split(system.runs)


@st.cache_resource(max_entries=4, show_spinner=False, hash_funcs=BY_RUN)
def _test_split(runs: tuple[Run, ...]) -> list[CheckedSentence]:
    sentences: list[Sentence] = []
    stored: dict[str, tuple[Labels, Labels]] = {}
    schemes: dict[str, str] = {}
    for run in runs:
        # Without truecasing: the model restores case by itself.
        corpus = prepare(run.config.model_copy(update={"truecase": False}))
        schemes |= {task.name: str(task.scheme) for task in corpus.tasks}
        stored |= store().predictions(run.id, "test")
        # The same sentences get the labels of both; other sentences follow.
        if list(map(_read, sentences)) == list(map(_read, corpus.test)):
            pairs = zip(sentences, corpus.test, strict=True)
            sentences = [
                replace(sentence, labels={**sentence.labels, **other.labels}) for sentence, other in pairs
            ]
        else:
            sentences += corpus.test
    return checked(sentences, stored, schemes)


def _read(sentence: Sentence) -> tuple[object, ...]:
    """The part of a sentence, text or pair that a model reads."""
    return sentence.tokens, sentence.second, sentence.whole
