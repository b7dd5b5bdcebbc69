"""What all trainings of the benchmark train on: the same sentences, encoder, batch size and precision."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace
from itertools import islice
from tempfile import TemporaryDirectory

import numpy as np
import torch
from transformers import BertConfig, BertModel

from core.config import RunConfig
from core.corpora import prepare
from core.corpora.types import Corpus, Sentence
from core.encoding.tokenizer import load_tokenizer
from core.errors import CorpusError
from core.models.sources import locate
from core.training.device import choose_device, computes_in_half
from core.training.setup import set_up

__all__ = ["Job", "encoder_named", "make_job"]

_HELD_OUT = 16


@dataclass(frozen=True)
class Job:
    """An MTL run, its corpus, and how many steps of it are measured: a random part of its first epoch.

    All of the training sentences are there, since what a step costs depends on them: batches are made of
    sentences of like length, and trained rows of the vocabulary are those that occur. `sentences` are those
    of the measured steps, batch by batch (steps, batch_size): others train on the same. `half` says whether
    the encoder computes in bfloat16.
    """

    config: RunConfig
    corpus: Corpus
    sentences: tuple[tuple[Sentence, ...], ...]
    half: bool

    @property
    def steps(self) -> int:
        """How many are measured."""
        return len(self.sentences)

    @property
    def device(self) -> str:
        """The device's name as torch has it."""
        return str(choose_device(self.config.device))

    @property
    def longest(self) -> tuple[Sentence, ...]:
        """The longest sentences, enough for a few batches: memory peaks there."""
        return tuple(
            sorted(self.corpus.train, key=lambda one: -len(one.tokens))[: 4 * self.config.batch_size]
        )


def make_job(config: RunConfig, steps: int) -> Job:
    """Reads the corpus. Raises MRNLabError where it cannot be read, or an epoch has not so many steps."""
    corpus = prepare(config)
    corpus = replace(corpus, dev=corpus.dev[:_HELD_OUT], test=corpus.test[:_HELD_OUT])
    with TemporaryDirectory() as home:
        os.environ["MRNLAB_HOME"] = home  # encoded text is cached there
        run = set_up(config, corpus)
        if steps >= run.facts.steps_per_epoch:
            raise CorpusError(
                f"An epoch of {corpus.name} has {run.facts.steps_per_epoch} steps: fewer can be measured, "
                f"not {steps}."
            )
        starts = run.splits["train"].text.sentences
        numbers = [
            np.unique(np.searchsorted(starts, batch.words.numpy(), side="right") - 1)
            for batch in islice(run.epoch(skip=0), steps)
        ]
    sentences = tuple(tuple(corpus.train[number] for number in batch) for batch in numbers)
    return Job(config, corpus, sentences, computes_in_half(config.precision, choose_device(config.device)))


@contextmanager
def encoder_named(encoder: str) -> Iterator[str]:
    """The encoder's name as a run's description has it; `bert-base` is written to a folder on the spot."""
    if encoder != "bert-base":
        yield encoder
        return
    with TemporaryDirectory() as folder:
        # BERT base (12 layers, 768 features) with random weights. MiniLM has its vocabulary.
        load_tokenizer(locate("minilm")).inner.save_pretrained(folder)
        torch.manual_seed(0)
        BertModel(BertConfig()).save_pretrained(folder)
        yield folder
