"""The models of the Tag page, their last answers, and the sentences of their corpora."""

from __future__ import annotations

import gc
import os
import threading
import time
from collections import OrderedDict
from collections.abc import Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import replace
from itertools import chain
from pathlib import Path

import streamlit as st

from core.config import RunConfig
from core.corpora import prepare
from core.corpora.loading import is_here as corpus_is_here
from core.corpora.types import Sentence
from core.paths import own_checkpoint
from core.records import TextAnswer
from core.store.records import Run
from core.tagging import (
    TaggedSentence,
    Tagger,
    joined,
    load_tagger,
)
from core.tasks import KINDS
from core.tasks.kinds import Reads
from dashboard.shared.resources import BY_RUN, store
from dashboard.tag.views import Answer, CheckedSentence, Labels, System, checked

_MOST_BYTES = 4_000_000_000
"""Checkpoints kept loaded, by size: nine of BERT base. Those over a frozen encoder hold their heads only."""

_TOP = 5
_ALL = 1_000_000  # more labels of texts than a task has

Words = tuple[tuple[str, ...], ...]
Texts = tuple[tuple[str, str | None], ...]


class Models:
    """Models that stay loaded: one after another, in the background. They are asked in parallel."""

    def __init__(self) -> None:
        self._loads: OrderedDict[tuple[str, float, int], Future[Tagger]] = OrderedDict()
        self._lock = threading.Lock()
        self._loader = ThreadPoolExecutor(1, thread_name_prefix="load-model")
        self._askers = ThreadPoolExecutor(min(4, os.cpu_count() or 1), thread_name_prefix="tag")

    def load(self, checkpoint: str) -> Future[Tagger]:
        """Future of the loaded model. Its result raises MRNLabError if the checkpoint is damaged."""
        files = [path.stat() for path in (Path(checkpoint), *Path(checkpoint).rglob("*")) if path.exists()]
        changed = max((file.st_mtime for file in files), default=0.0)
        key = (checkpoint, changed, sum(file.st_size for file in files))
        with self._lock:
            known = self._loads.get(key)
            if known is None or (known.done() and known.exception() is not None):
                self._loads[key] = self._loader.submit(_load, checkpoint)
            self._loads.move_to_end(key)
            while len(self._loads) > 1 and sum(size for _, _, size in self._loads) > _MOST_BYTES:
                self._loads.popitem(last=False)
            return self._loads[key]

    def ask(
        self, taggers: Sequence[Tagger], sentences: Words, texts: Texts
    ) -> list[tuple[list[TaggedSentence], list[dict[str, TextAnswer]]]]:
        """The answers of each model on the sentences and the texts."""

        def of(tagger: Tagger) -> tuple[list[TaggedSentence], list[dict[str, TextAnswer]]]:
            return tagger.tag(sentences, top=_TOP), tagger.answer(texts, top=_ALL)

        return list(self._askers.map(of, taggers))


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


def answers(
    chosen_systems: Sequence[System], sentences: Words, texts: Texts = ()
) -> tuple[list[Answer], float]:
    """The answers of these systems on sentences, texts and pairs, and the seconds of the first request.

    Raises MRNLabError where a checkpoint cannot be read.
    """
    merged, seconds = _answers(tuple(system.checkpoints for system in chosen_systems), sentences, texts)
    return [
        replace(answer, who=system.who) for system, answer in zip(chosen_systems, merged, strict=True)
    ], seconds


@st.cache_resource(max_entries=32, show_spinner=False)
def _answers(
    checkpoints: tuple[tuple[str, ...], ...], sentences: Words, texts: Texts
) -> tuple[list[Answer], float]:
    taggers = [models().load(checkpoint).result() for paths in checkpoints for checkpoint in paths]
    began = time.perf_counter()
    given = models().ask(taggers, sentences, texts) if sentences or texts else [([], []) for _ in taggers]
    seconds = time.perf_counter() - began
    merged, pairs = [], iter(zip(taggers, given, strict=True))
    for paths in checkpoints:
        system_taggers, system_said = zip(*(next(pairs) for _ in paths), strict=True)
        tagged, answered = zip(*system_said, strict=True)
        merged.append(
            Answer(
                who="",
                schemes={
                    task: scheme for tagger in system_taggers for task, scheme in tagger.schemes.items()
                },
                sentences=tuple(joined(parts) for parts in zip(*tagged, strict=True)),
                labels={task: labels for tagger in system_taggers for task, labels in tagger.labels.items()},
                notes=tuple(note for tagger in system_taggers for note in tagger.notes),
                scales={task: scale for tagger in system_taggers for task, scale in tagger.scales.items()},
                texts=tuple(dict(chain(*map(dict.items, parts))) for parts in zip(*answered, strict=True)),
            )
        )
    return merged, seconds


def reads_of(chosen_systems: Sequence[System]) -> list[Reads]:
    """The inputs of these systems' tasks, by their stored facts: words, sentences, texts, pairs."""
    runs = store().runs([run.id for system in chosen_systems for run in system.runs])
    known = {KINDS[task["scheme"]].reads for run in runs for task in run.facts.get("tasks", ())}
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
