"""What all trainings of the benchmark train on: the same sentences, encoder, batch size and precision."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace
from tempfile import TemporaryDirectory

import torch
from transformers import BertConfig, BertModel

from core.config import RunConfig
from core.corpora import prepare
from core.corpora.types import Corpus
from core.encoding.tokenizer import load_tokenizer
from core.errors import CorpusError
from core.models.sources import locate
from core.training.device import choose_device, computes_in_half

__all__ = ["Job", "encoder_named", "make_job"]

_HELD_OUT = 16


@dataclass(frozen=True)
class Job:
    """An MTL run, its corpus, and how many steps of it are measured: a random part of its first epoch.

    All of the training sentences are there, since what a step costs depends on them: batches are made of
    sentences of like length, and trained rows of the vocabulary are those that occur. `half` says whether the
    encoder computes in bfloat16.
    """

    config: RunConfig
    corpus: Corpus
    steps: int
    half: bool

    @property
    def device(self) -> str:
        """The device's name as torch has it."""
        return str(choose_device(self.config.device))


def make_job(config: RunConfig, steps: int) -> Job:
    """Reads the corpus. Raises MRNLabError where it cannot be read, or an epoch has not so many steps."""
    corpus = prepare(config)
    most = len(corpus.train) // config.batch_size - 1
    if steps > most:
        raise CorpusError(
            f"{corpus.name} has {len(corpus.train):,} training sentences, enough for {most} steps of "
            f"{config.batch_size}, not for {steps}."
        )
    corpus = replace(corpus, dev=corpus.dev[:_HELD_OUT], test=corpus.test[:_HELD_OUT])
    return Job(config, corpus, steps, computes_in_half(config.precision, choose_device(config.device)))


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
