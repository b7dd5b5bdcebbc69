"""The ways to train that `training` compares: MRN Lab, Hugging Face Trainer and the published program.

All train on the sentences of one `Job`, with the same encoder and batch size. `assert_equal_losses` gives all
of them the same weights and compares their losses.
"""

from __future__ import annotations

import copy
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
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
from core.encoding.tokenizer import SubwordTokenizer, load_tokenizer
from core.errors import CorpusError
from core.events import Event, RunFacts
from core.models.device import choose_device, computes_in_half
from core.models.encoders.fast_bert import packs
from core.models.sources import locate
from core.training import trainer
from core.training.setup import TrainingRun, set_up
from tests.benchmarks._harness import laboratory, minilm
from tests.benchmarks._turns import Loop, Turns

_HELD_OUT = 16
_NEVER_S = 1e9
_LAMBDA, _UPDATE_EVERY = 0.05, 10  # as published


@dataclass(frozen=True)
class Job:
    """An MTL run, its corpus, and the sentences of its first steps, batch by batch, which all ways train on.

    The corpus is whole, because a step's cost depends on it: batches have sentences of similar length, and
    only rows of the vocabulary that occur are trained.
    """

    config: RunConfig
    corpus: Corpus
    batches: tuple[tuple[Sentence, ...], ...]
    quick: bool = False

    @property
    def sentences(self) -> list[Sentence]:
        return [sentence for batch in self.batches for sentence in batch]

    @property
    def labels(self) -> list[int]:
        """The number of labels of each task."""
        return [len(task.labels) for task in self.corpus.tasks]

    @property
    def device(self) -> torch.device:
        return choose_device(self.config.device)

    @property
    def half(self) -> bool:
        """Whether the encoder computes in bfloat16."""
        return computes_in_half(self.config.precision, self.device)


def make_job(config: RunConfig, steps: int, *, quick: bool = False) -> Job:
    """Read the corpus. Raises MRNLabError if it cannot be read, or if an epoch has too few steps."""
    corpus = prepare(config)
    corpus = replace(corpus, dev=corpus.dev[:_HELD_OUT], test=corpus.test[:_HELD_OUT])
    with laboratory():  # encoded text is cached there
        run = set_up(config, corpus)
        epoch = run.facts.steps_per_epoch
        if steps >= epoch:
            raise CorpusError(f"An epoch of {corpus.name} has {epoch} steps: measure fewer than {steps}.")
        starts = run.splits["train"].text.sentences
        numbers = [
            np.unique(np.searchsorted(starts, batch.words.numpy(), side="right") - 1)
            for batch in islice(run.epoch(skip=0), steps)
        ]
    batches = tuple(tuple(corpus.train[number] for number in batch) for batch in numbers)
    return Job(config, corpus, batches, quick)


_CACHING_S: list[float] = []
"""Seconds that the trainings of this process took to have cached states ready; the first computes them."""


def train_ours(paradigm: str, job: Job, turns: Turns) -> None:
    """`core.training.trainer.train`, as a worker calls it; like Trainer here, it saves no training state."""

    def sink(event: Event) -> None:
        if isinstance(event, RunFacts):
            turns.describe(precision=event.precision, threads=event.threads)

    train_step, compute_features = trainer.train_step, TrainingRun.compute_features

    def timed_features(run: TrainingRun, sink: Any, _should_stop: object) -> bool:
        began = time.perf_counter()
        done = compute_features(run, sink, lambda: False)  # in no turn
        _CACHING_S.append(time.perf_counter() - began)
        if run.features is not None:
            turns.describe(caching_s=round(_CACHING_S[0], 2))
        return done

    def count_and_step(run: Any, batch: Any) -> Any:
        if turns.warming_up:  # also on the longest sentences, so that memory peaks as in a whole epoch
            train_step(run, next(run.splits["train"].batches.by_length()))
        below = getattr(run.model.encoder, "below", run.model.encoder)
        packed = run.config.top_layer_count or (hasattr(below, "inner") and packs(below.inner))
        turns.count(len(batch.words), len(batch.real), len(batch.real) if packed else batch.ids.numel())
        return train_step(run, batch)

    with (
        TemporaryDirectory() as folder,
        patch.object(trainer, "train_step", count_and_step),
        patch.object(TrainingRun, "compute_features", timed_features),
    ):
        trainer.train(
            job.config.with_(paradigm=paradigm),
            job.corpus,
            sink=sink,
            checkpoint=Checkpoint(Path(folder) / "run", every_s=_NEVER_S),
            should_stop=turns.wait,
        )


def _train_best(job: Job, turns: Turns) -> None:
    """Trainer with the stock options that made it fastest (docs/performance.md)."""
    cuda = job.device.type == "cuda"
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
    """Trainer with only batch size, epochs and learning rate set."""
    _train_with_trainer(job, turns, {})


def _train_with_trainer(
    job: Job, turns: Turns, options: Mapping[str, Any], multiple_of: int | None = None
) -> None:
    from tests.benchmarks import _trainer  # not above: MRN Lab's process must not hold Trainer's memory

    disable_logging()
    sentences = job.sentences
    if turns.warming_up:  # the longest, so that memory peaks as in a whole epoch
        longest = sorted(job.corpus.train, key=lambda sentence: -len(sentence.tokens))
        sentences = longest[: 4 * job.config.batch_size]
    lengths = [sum(len(sentence.tokens) for sentence in batch) for batch in job.batches]
    precision = "bf16" if options.get("bf16") else "fp32"
    turns.describe(precision=precision, threads=torch.get_num_threads(), options=dict(options))
    options = {**options, "use_cpu": job.device.type == "cpu"}
    _trainer.train(job.config, sentences, job.corpus.tasks, lengths, turns, options, multiple_of)


def _train_published(job: Job, turns: Turns) -> None:
    """The published loop, in float32. A tenth of a covariance update is charged to each step."""
    from torch.utils.data import DataLoader
    from transformers import get_scheduler

    from tests.benchmarks import _published as published
    from tests.benchmarks._trainer import encode

    config, tasks = job.config, [task.name for task in job.corpus.tasks]
    source = locate(config.encoder)
    disable_logging()
    torch.manual_seed(config.seed)
    assert config.lr_encoder is not None
    model = published.Model(source, job.labels, config.max_length).to(job.device)
    rows = encode(job.sentences, job.corpus.tasks, load_tokenizer(source).inner, config.max_length).to_list()
    padded = published.Padded(rows, tasks, config.max_length)
    optimiser = torch.optim.AdamW(model.parameters(), lr=config.lr_encoder, weight_decay=config.weight_decay)
    total = config.epochs * len(job.corpus.train) // config.batch_size
    schedule = get_scheduler("linear", optimiser, num_warmup_steps=0, num_training_steps=total)
    alignment = published.align_tasks("disjoint", job.labels)
    algebra = published.Algebra(alignment, model.features, _LAMBDA, job.device)
    turns.describe(precision="fp32", threads=torch.get_num_threads())
    model.train()
    for _ in range(config.epochs):
        for batch in DataLoader(padded, batch_size=config.batch_size, shuffle=True):
            if turns.wait():
                return
            words = (batch[tasks[0]] != published.IGNORED).sum()
            turns.count(words, int(batch["attention_mask"].sum()), batch["input_ids"].numel())
            optimiser.zero_grad()
            loss, heads = published.total_loss(model, batch, tasks, algebra)
            loss.backward()
            optimiser.step()
            schedule.step()
            loss.item()
            began = time.perf_counter()
            algebra.update(heads)
            turns.exclude((1 - 1 / _UPDATE_EVERY) * (time.perf_counter() - began))


LOOPS: dict[str, Loop] = {
    "mtl": partial(train_ours, "mtl"),
    "mrn": partial(train_ours, "mrn"),
    "trainer": _train_best,
    "trainer_fp32": _train_fp32,
    "published": _train_published,
}


def ways(job: Job) -> dict[str, tuple[Loop, Job]]:
    """All ways to train, each with its job. Where this one does not train the whole encoder, the others do,
    and MRN Lab too as `full`.
    """
    if job.config.encoder_training == "full":
        return {name: (loop, job) for name, loop in LOOPS.items()}
    config = job.config.with_(encoder_training="full", lr_encoder=None, lr_heads=None)
    whole = replace(job, config=config)
    by_name = {name: (loop, job if name in ("mtl", "mrn") else whole) for name, loop in LOOPS.items()}
    return by_name | {"full": (LOOPS["mtl"], whole)}


BASE_ENCODERS: dict[str, dict[str, Any]] = {
    "bert-base": {"model_type": "bert"},
    "roberta-base": {
        **{"model_type": "roberta", "vocab_size": 50265, "max_position_embeddings": 514},
        **{"type_vocab_size": 1, "layer_norm_eps": 1e-5, "pad_token_id": 0},  # the subwords are MiniLM's
    },
}


def random_encoder(folder: Path, name: str = "bert-base", /, **config: int) -> str:
    """Write an encoder with random weights and MiniLM's subwords, of that one's size unless `config` changes
    it. The encoder's own vocabulary sets the number of its embeddings.
    """
    from transformers import AutoConfig, AutoModel

    load_tokenizer(locate(minilm())).inner.save_pretrained(folder)
    torch.manual_seed(0)
    AutoModel.from_config(AutoConfig.for_model(**BASE_ENCODERS[name] | config)).save_pretrained(folder)
    return str(folder)


def disable_logging() -> None:
    """Silence Transformers: standard output is JSON here."""
    from transformers.utils import logging

    logging.set_verbosity_error()
    logging.disable_progress_bar()


def assert_equal_losses(job: Job) -> None:
    """Compare losses to five digits, with the same weights, on the sentences of one batch, without dropout:
    Trainer's model with MTL, and the published program with MRN under the `paper` prior.
    """
    from tests.benchmarks import _published, _trainer

    disable_logging()
    corpus = replace(job.corpus, train=job.batches[0])
    names = [task.name for task in corpus.tasks]
    settings = {"dropout": 0.0, "batch_size": len(corpus.train), "device": "cpu", "precision": "fp32"}
    paper = {"paradigm": "mrn", "prior": "paper", "alignment": "disjoint", "lambda": _LAMBDA}
    for conditions in ({"paradigm": "mtl"}, paper):
        config = job.config.with_(**settings, **conditions)
        with laboratory():
            run = set_up(config, corpus)
        run.model.eval()
        torch.manual_seed(1)
        nn.init.normal_(run.model.heads.weight, std=0.1)
        nn.init.normal_(run.model.heads.bias)
        assert isinstance(run.tokenizer, SubwordTokenizer)
        # Transformers leaves truncation switched on in the tokenizer, which later trainings share.
        tokenizer, source = copy.deepcopy(run.tokenizer.inner), locate(config.encoder)
        rows = _trainer.encode(corpus.train, corpus.tasks, tokenizer, config.max_length).to_list()
        if config.paradigm == "mtl":
            model: Any = _trainer.Model(source, job.labels, dropout=0.0).eval()
            _copy_heads(run.model.heads, model.heads)
            theirs = model(**_trainer.Collator(tokenizer)(rows))["loss"]
        else:
            model = _published.Model(source, job.labels, config.max_length).eval()
            _copy_heads(run.model.heads, model.heads)
            padded = _published.Padded(rows, names, config.max_length)
            batch = torch.utils.data.default_collate([padded[number] for number in range(len(rows))])
            alignment = _published.align_tasks("disjoint", job.labels)
            algebra = _published.Algebra(alignment, model.features, _LAMBDA)
            theirs, _heads = _published.total_loss(model, batch, names, algebra)
        (batch,) = run.epoch(skip=0)
        torch.testing.assert_close(trainer.train_step(run, batch)[-1].float(), theirs, rtol=1e-5, atol=0)


@torch.no_grad()
def _copy_heads(heads: Any, linears: Sequence[Any]) -> None:
    for linear, rows in zip(linears, heads.slices, strict=True):
        linear.weight.copy_(heads.weight[rows])
        linear.bias.copy_(heads.bias[rows])
