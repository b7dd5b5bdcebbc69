"""What the Tag page keeps between two sentences: loaded models, the last answers, the test sentences."""

from __future__ import annotations

import gc
import os
import threading
import time
from collections import OrderedDict
from collections.abc import Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import replace
from pathlib import Path

import streamlit as st

from core.config import RunConfig
from core.corpora import prepare
from core.corpora.catalogue import is_local
from core.corpora.loading import bases_of
from core.corpora.types import Sentence
from core.paths import database_url, own_checkpoint
from core.store.records import Run
from core.tagging import TaggedSentence, Tagger, joined, load_tagger
from dashboard.shared.resources import store
from dashboard.tag.views import Answer, CheckedSentence, System, checked

_MOST_BYTES = 4_000_000_000
"""Checkpoints kept loaded, by size: nine of BERT base. Those over a frozen encoder hold their heads only."""

_TOP = 5
_EXAMPLE_WORDS = range(5, 16)
_EXAMPLES = 4

Words = tuple[tuple[str, ...], ...]


class Desk:
    """Models that stay loaded: one after another, in the background. They are asked side by side."""

    def __init__(self) -> None:
        self._loads: OrderedDict[tuple[str, float, int], Future[Tagger]] = OrderedDict()
        self._lock = threading.Lock()
        self._loader = ThreadPoolExecutor(1, thread_name_prefix="load-model")
        self._askers = ThreadPoolExecutor(min(4, os.cpu_count() or 1), thread_name_prefix="tag")

    def load(self, checkpoint: str) -> Future[Tagger]:
        """The model of that checkpoint, now or soon. Its result raises MRNLabError where it is damaged."""
        files = [path.stat() for path in (Path(checkpoint), *Path(checkpoint).rglob("*")) if path.exists()]
        changed = max((file.st_mtime for file in files), default=0.0)
        key = (checkpoint, changed, sum(file.st_size for file in files))
        with self._lock:
            known = self._loads.get(key)
            if known is None or (known.done() and known.exception() is not None):
                self._loads[key] = self._loader.submit(_loaded, checkpoint)
            self._loads.move_to_end(key)
            while len(self._loads) > 1 and sum(size for _, _, size in self._loads) > _MOST_BYTES:
                self._loads.popitem(last=False)
            return self._loads[key]

    def ask(self, checkpoints: Sequence[str], sentences: Words) -> list[list[TaggedSentence]]:
        """What each model says of the sentences. Raises MRNLabError where one cannot be read."""
        taggers = [self.load(checkpoint).result() for checkpoint in checkpoints]
        return list(self._askers.map(lambda tagger: tagger.tag(sentences, top=_TOP), taggers))


def _loaded(checkpoint: str) -> Tagger:
    tagger = load_tagger(own_checkpoint(checkpoint))
    tagger.tag([["."]])  # what is slow the first time is over before the first sentence
    # The million objects of torch and transformers would cost every page a third of a second.
    gc.collect()
    gc.freeze()
    return tagger


@st.cache_resource(max_entries=1, show_spinner=False)
def desk() -> Desk:
    """The one desk of this process."""
    return Desk()


def answers(asked: Sequence[System], sentences: Words) -> tuple[list[Answer], float]:
    """What these systems say, and the seconds that took when it was asked first.

    Raises MRNLabError where a checkpoint cannot be read.
    """
    made, seconds = _answers(tuple(system.checkpoints for system in asked), sentences)
    return [replace(answer, who=system.who) for system, answer in zip(asked, made, strict=True)], seconds


@st.cache_resource(max_entries=32, show_spinner=False)
def _answers(checkpoints: tuple[tuple[str, ...], ...], sentences: Words) -> tuple[list[Answer], float]:
    flat = [checkpoint for own in checkpoints for checkpoint in own]
    taggers = [desk().load(checkpoint).result() for checkpoint in flat]
    began = time.perf_counter()
    told = desk().ask(flat, sentences) if sentences else [[] for _ in flat]
    seconds = time.perf_counter() - began
    made, place = [], 0
    for own in checkpoints:
        part = slice(place, place + len(own))
        place += len(own)
        made.append(
            Answer(
                who="",
                schemes={task: scheme for one in taggers[part] for task, scheme in one.schemes.items()},
                sentences=tuple(joined(of_one) for of_one in zip(*told[part], strict=True)),
                labels={task: labels for one in taggers[part] for task, labels in one.labels.items()},
            )
        )
    return made, seconds


def is_here(config: RunConfig) -> bool:
    """Whether the run's corpus can be read without the network. Raises CorpusError where its name means
    nothing.
    """
    return all(map(is_local, bases_of(config.corpus)))


def examples(config: RunConfig) -> tuple[Sentence, ...]:
    """A few short test sentences of the run's corpus. Raises CorpusError where it cannot be read."""
    return _examples(_uncased(config))


@st.cache_resource(max_entries=16, show_spinner=False)
def _examples(config: str) -> tuple[Sentence, ...]:
    test = prepare(RunConfig.from_json(config)).test
    readable = [one for one in test if len(one.tokens) in _EXAMPLE_WORDS] or list(test)
    number = min(_EXAMPLES, len(readable))
    return tuple(readable[place * len(readable) // number] for place in range(number))


def test_split(system: System) -> list[CheckedSentence]:
    """The test sentences of a system's corpus with the mistakes it made on them when it was trained.

    Raises CorpusError where the corpus cannot be read or has changed since.
    """
    return _test_split(
        database_url(), tuple((run.id, run.attempt) for run in system.runs), [*map(_of, system.runs)]
    )


def _of(run: Run) -> str:
    return _uncased(run.config)


@st.cache_resource(max_entries=4, show_spinner=False)
def _test_split(url: str, runs: tuple[tuple[int, int], ...], configs: list[str]) -> list[CheckedSentence]:
    del url  # part of the cache's key only
    sentences: list[Sentence] = []
    stored, schemes = {}, {}
    for (run_id, _), text in zip(runs, configs, strict=True):
        corpus = prepare(RunConfig.from_json(text))
        schemes |= {task.name: str(task.scheme) for task in corpus.tasks}
        stored |= store().predictions(run_id, "test")
        sentences = _merged(sentences, corpus.test)
    return checked(sentences, stored, schemes)


def _merged(known: list[Sentence], more: Sequence[Sentence]) -> list[Sentence]:
    """The same sentences with the labels of both; of tasks that stand apart, one after another."""
    if not known or [one.tokens for one in known] != [one.tokens for one in more]:
        return [*known, *more]
    return [
        replace(one, labels={**one.labels, **other.labels}) for one, other in zip(known, more, strict=True)
    ]


def _uncased(config: RunConfig) -> str:
    """The description of the same run without truecasing: the model restores case by itself."""
    return config.model_copy(update={"truecase": False}).to_json()
