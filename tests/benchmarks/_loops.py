"""The ways to train that `training` compares: ours, Hugging Face Trainer's, and the published program's.

All train on the sentences of one `Job`, with the same encoder, batch size and precision. `equal_losses` gives
all of them the same weights, and compares what they minimise.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import islice
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any
from unittest.mock import patch

import numpy as np
import torch
from torch import nn

from core.checkpoints import Checkpoint
from core.config import RunConfig
from core.corpora import prepare
from core.corpora.types import Corpus, Sentence
from core.encoding.tokenizer import load_tokenizer
from core.errors import CorpusError
from core.models.device import choose_device, computes_in_half
from core.models.encoders.fast_bert import packs
from core.models.sources import locate
from core.records import Event, RunFacts
from core.training import trainer
from core.training.setup import TrainingRun, set_up
from tests.benchmarks._harness import laboratory
from tests.benchmarks._turns import Loop, Turns

__all__ = ["LOOPS", "Job", "assert_equal_losses", "make_job", "quiet", "random_bert"]

_HELD_OUT = 16
_NEVER_S = 1e9
_LAMBDA, _UPDATE_EVERY = 0.05, 10  # as published


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
    quick: bool = False

    @property
    def steps(self) -> int:
        """How many are measured."""
        return len(self.sentences)

    @property
    def flat(self) -> list[Sentence]:
        """The sentences of the measured steps."""
        return [sentence for batch in self.sentences for sentence in batch]

    @property
    def labels(self) -> list[int]:
        """How many labels each task has."""
        return [len(task.labels) for task in self.corpus.tasks]

    @property
    def device(self) -> str:
        """The device's name as torch has it."""
        return str(choose_device(self.config.device))

    @property
    def longest(self) -> list[Sentence]:
        """The longest sentences, enough for a few batches: memory peaks there."""
        by_length = sorted(self.corpus.train, key=lambda sentence: -len(sentence.tokens))
        return by_length[: 4 * self.config.batch_size]


def make_job(config: RunConfig, steps: int, *, quick: bool = False) -> Job:
    """Reads the corpus. Raises MRNLabError where it cannot be read, or an epoch has not so many steps."""
    corpus = prepare(config)
    corpus = replace(corpus, dev=corpus.dev[:_HELD_OUT], test=corpus.test[:_HELD_OUT])
    with laboratory():  # encoded text is cached there
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
    half = computes_in_half(config.precision, choose_device(config.device))
    return Job(config, corpus, sentences, half, quick)


def _train_mtl(job: Job, turns: Turns) -> None:
    """`core.training.trainer.train`, as a worker calls it, with all that it logs."""
    _train_ours(job, turns, paradigm="mtl")


def _train_mrn(job: Job, turns: Turns) -> None:
    """The same with the default prior, its covariances updated every ten steps and stored now and then."""
    _train_ours(job, turns, paradigm="mrn")


def _train_ours(job: Job, turns: Turns, **changes: Any) -> None:
    """No training state is saved meanwhile: Trainer saves none either."""

    def sink(event: Event) -> None:
        if isinstance(event, RunFacts):
            turns.tell(precision=event.precision, threads=event.threads)

    with TemporaryDirectory() as folder, patch.object(trainer, "train_step", _counted(turns)):
        trainer.train(
            job.config.with_(**changes),
            job.corpus,
            sink=sink,
            checkpoint=Checkpoint(Path(folder) / "run", every_s=_NEVER_S),
            should_stop=turns.between,
        )


def _counted(turns: Turns) -> Callable[[TrainingRun, Any], Any]:
    """The loop's own step, its batch counted. While it warms up it also trains on the longest sentences, so
    that memory peaks as in a whole epoch.
    """
    train_step = trainer.train_step

    def step(run: TrainingRun, batch: Any) -> Any:
        if turns.warming:
            train_step(run, next(run.splits["train"].batches.by_length()))
        encoder: Any = run.model.encoder
        packed = packs(getattr(encoder, "below", encoder).inner)
        turns.saw(len(batch.words), len(batch.real), len(batch.real) if packed else batch.ids.numel())
        return train_step(run, batch)

    return step


def random_bert(folder: Path, **config: int) -> str:
    """A BERT with random weights, base (12 layers, 768 features) unless `config` says otherwise, that has the
    vocabulary of MiniLM.
    """
    from transformers import BertConfig, BertModel

    load_tokenizer(locate("minilm")).inner.save_pretrained(folder)
    torch.manual_seed(0)
    BertModel(BertConfig(**config)).save_pretrained(folder)
    return str(folder)


def quiet() -> None:
    """Nothing of what Transformers prints while it loads: standard output is JSON here."""
    from transformers.utils import logging

    logging.set_verbosity_error()
    logging.disable_progress_bar()


def _train_best(job: Job, turns: Turns) -> None:
    """Trainer with the stock options that made it fastest on such a machine (docs/performance.md tells of
    others): sentences of like length together, bfloat16 where the hardware has it, no gradient clipping and
    no look at each step's loss, which the other loops do without; on a GPU processes that read, and widths
    of 8.
    """
    cuda = job.device.startswith("cuda")
    options: dict[str, Any] = {
        "train_sampling_strategy": "group_by_length",
        "bf16": job.half,
        "weight_decay": job.config.weight_decay,
        "max_grad_norm": 0.0,
        "logging_nan_inf_filter": False,
    }
    if cuda:
        options |= {"dataloader_num_workers": 2, "dataloader_persistent_workers": True}
    _train_with_trainer(job, turns, options, multiple_of=8 if cuda and job.half else None)


def _train_fp32(job: Job, turns: Turns) -> None:
    """Trainer with nothing set but batch size, epochs and learning rate."""
    _train_with_trainer(job, turns, {})


def _train_with_trainer(
    job: Job, turns: Turns, options: Mapping[str, Any], multiple_of: int | None = None
) -> None:
    # Imported here: our loop's process is to hold no more than it needs.
    from tests.benchmarks import _trainer

    quiet()
    sentences = job.longest if turns.warming else job.flat
    lengths = [sum(len(sentence.tokens) for sentence in batch) for batch in job.sentences]
    precision = "bf16" if options.get("bf16") else "fp32"
    turns.tell(precision=precision, threads=torch.get_num_threads(), options=dict(options))
    _trainer.train(
        job.config, sentences, job.corpus.tasks, lengths, turns, options, multiple_of, cpu=job.device == "cpu"
    )


def _train_published(job: Job, turns: Turns) -> None:
    """In float32, as published. A tenth of one update is counted for each step, whenever it comes."""
    from torch.utils.data import DataLoader
    from transformers import get_scheduler

    from tests.benchmarks._published import IGNORED, Model, Padded, Published, aligned, loss_of
    from tests.benchmarks._trainer import dataset_of

    config, tasks = job.config, [task.name for task in job.corpus.tasks]
    source = locate(config.encoder)
    quiet()
    torch.manual_seed(config.seed)
    model = Model(source, job.labels, config.max_length).to(job.device)
    rows = dataset_of(job.flat, job.corpus.tasks, load_tokenizer(source).inner, config.max_length).to_list()
    loader = DataLoader(Padded(rows, tasks, config.max_length), batch_size=config.batch_size, shuffle=True)
    optimiser = torch.optim.AdamW(model.parameters(), lr=config.lr_encoder, weight_decay=config.weight_decay)
    total = config.epochs * len(job.corpus.train) // config.batch_size
    schedule = get_scheduler("linear", optimiser, num_warmup_steps=0, num_training_steps=total)
    features = model.encoder.config.hidden_size
    prior = Published(aligned("disjoint", job.labels), features, _LAMBDA, job.device)
    turns.tell(precision="fp32", threads=torch.get_num_threads())
    model.train()
    for _ in range(config.epochs):
        for batch in loader:
            if turns.between():
                return
            words = (batch[tasks[0]] != IGNORED).sum()
            turns.saw(words, int(batch["attention_mask"].sum()), batch["input_ids"].numel())
            optimiser.zero_grad()
            loss, heads = loss_of(model, batch, tasks, prior)
            loss.backward()
            optimiser.step()
            schedule.step()
            loss.item()
            began = time.perf_counter()
            prior.update(heads)
            turns.discount((1 - 1 / _UPDATE_EVERY) * (time.perf_counter() - began))


LOOPS: dict[str, Loop] = {
    "mtl": _train_mtl,
    "mrn": _train_mrn,
    "trainer": _train_best,
    "trainer_fp32": _train_fp32,
    "published": _train_published,
}


def assert_equal_losses(job: Job) -> None:
    """All ways minimise the same: with the same weights, on the sentences of one batch, without dropout, the
    loss of Trainer's model is that of our MTL run, and the published program's that of our MRN run with the
    `paper` prior, to five digits. Raises AssertionError where it is not.
    """
    from tests.benchmarks import _published, _trainer

    quiet()
    corpus = replace(job.corpus, train=job.sentences[0])
    names = [task.name for task in corpus.tasks]
    settings = {"dropout": 0.0, "batch_size": len(corpus.train), "device": "cpu", "precision": "fp32"}
    paper = {"paradigm": "mrn", "prior": "paper", "alignment": "disjoint", "lambda": _LAMBDA}
    for kind in ({"paradigm": "mtl"}, paper):
        config = job.config.with_(**settings, **kind)
        with laboratory():
            run = set_up(config, corpus)
        run.model.eval()
        torch.manual_seed(1)
        nn.init.normal_(run.model.heads.weight, std=0.1)
        nn.init.normal_(run.model.heads.bias)
        tokenizer = run.tokenizer.inner
        rows = _trainer.dataset_of(corpus.train, corpus.tasks, tokenizer, config.max_length).to_list()
        source = locate(config.encoder)
        if config.paradigm == "mtl":
            model: Any = _trainer.Model(source, job.labels, dropout=0.0).eval()
            _give_heads(run, model.heads)
            theirs = model(**_trainer.Collator(tokenizer)(rows))["loss"]
        else:
            model = _published.Model(source, job.labels, config.max_length).eval()
            _give_heads(run, model.heads)
            padded = _published.Padded(rows, names, config.max_length)
            batch = torch.utils.data.default_collate([padded[place] for place in range(len(padded))])
            alignment = _published.aligned("disjoint", job.labels)
            prior = _published.Published(alignment, model.encoder.config.hidden_size, _LAMBDA)
            theirs, _heads = _published.loss_of(model, batch, names, prior)
        (batch,) = run.epoch(skip=0)
        torch.testing.assert_close(trainer.train_step(run, batch)[-1].float(), theirs, rtol=1e-5, atol=0)


def _give_heads(run: TrainingRun, linears: Sequence[Any]) -> None:
    """Each task's rows of the run's heads to a linear layer."""
    with torch.no_grad():
        for linear, rows in zip(linears, run.model.heads.slices, strict=True):
            linear.weight.copy_(run.model.heads.weight[rows])
            linear.bias.copy_(run.model.heads.bias[rows])
