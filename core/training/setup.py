"""Everything a training needs, built from its description: data, model, prior, optimiser."""

from __future__ import annotations

import math
import platform
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import lru_cache
from importlib.metadata import PackageNotFoundError, version
from itertools import chain, repeat
from typing import Any, cast

import numpy as np
import torch
from numpy.typing import NDArray
from torch import nn

from core import __version__
from core.config import RunConfig, remarks, trains_heads_alone
from core.corpora.loading import overlaps
from core.corpora.types import Corpus, Sentence, Split
from core.encoding.batches import IGNORED, Batch, Batches, EpochOrder
from core.encoding.encoded import EncodedText, encode_cached
from core.encoding.tokenizer import SubwordTokenizer, load_tokenizer
from core.errors import TrainingError
from core.evaluation.scores import score_name
from core.models.device import ALL_THREADS, choose_device, computes_in_half, make_deterministic
from core.models.encoders import (
    BiLSTM,
    Encoder,
    FrozenFeatures,
    LazyTransformer,
    TrainedRows,
    load_transformer,
    train_rows,
    weight_count,
)
from core.models.encoders.frozen import FeatureTables
from core.models.sources import check_max_length, local_copy, locate, signature
from core.models.tagger import Heads, MultiTaskTagger
from core.mrn.alignments import Alignment, LabelCounts, align
from core.mrn.priors import NoPrior, Prior, PriorSettings, make_prior
from core.paths import cache_dir
from core.records import Note, RunFacts, Sink, TaskFacts
from core.registry import base_name

# A corpus as a run's numbers: encoded splits, label numbers, and what there is to say about each task.


SPLITS: tuple[Split, ...] = ("train", "dev", "test")


@dataclass(frozen=True)
class SplitData:
    """One split, ready to be trained on or predicted.

    `labels` (N, T): label numbers of its N words, IGNORED where a task has none or training never saw it.
    """

    sentences: tuple[Sentence, ...]
    text: EncodedText
    key: str
    labels: NDArray[np.int64]
    batches: Batches


def label_numbers(
    sentences: Sequence[Sentence], tasks: Sequence[str], labels: Sequence[Sequence[str]]
) -> NDArray[np.int64]:
    """(N, T) label numbers of all words, sentence after sentence."""
    words = sum(len(sentence.tokens) for sentence in sentences)
    numbers = np.empty((len(tasks), words), dtype=np.int64)
    for row, task, own in zip(numbers, tasks, labels, strict=True):
        number: dict[str | None, int] = {label: index for index, label in enumerate(own)}
        given = chain.from_iterable(
            sentence.labels.get(task) or repeat(None, len(sentence.tokens)) for sentence in sentences
        )
        row[:] = np.fromiter((number.get(label, IGNORED) for label in given), np.int64, words)
    return numbers.T


def encode_corpus(config: RunConfig, corpus: Corpus, tokenizer: SubwordTokenizer) -> Mapping[str, SplitData]:
    """Every split that has sentences, encoded (from the cache where it was before)."""
    tasks = [task.name for task in corpus.tasks]
    labels = [task.labels for task in corpus.tasks]
    splits = {}
    for name in SPLITS:
        sentences = corpus.split(name)
        if not sentences:
            continue
        words = [sentence.tokens for sentence in sentences]
        text, key = encode_cached(words, tokenizer, config.max_length, cache_dir("encoded"))
        numbers = label_numbers(sentences, tasks, labels)
        order = _epoch_order(config, sentences, text) if name == "train" else EpochOrder()
        batches = Batches(text, numbers, config.batch_size, tokenizer.pad, config.batch_tokens, order)
        splits[cast(str, name)] = SplitData(sentences, text, key, numbers, batches)
    return splits


def _epoch_order(config: RunConfig, sentences: Sequence[Sentence], text: EncodedText) -> EpochOrder:
    """How the training sentences make an epoch."""
    parts = None
    if config.corpus_order == "in_turn":
        number = {part: place for place, part in enumerate(dict.fromkeys(one.part for one in sentences))}
        of_sentence = np.array([number[sentence.part] for sentence in sentences])
        of_window = np.searchsorted(text.sentences, text.words[:-1], side="right") - 1
        parts = of_sentence[of_window]
    share = config.fraction if config.fraction_draw == "each_epoch" else None
    return EpochOrder(config.batching == "by_length", parts, share)


def label_counts(corpus: Corpus, train: SplitData) -> LabelCounts:
    """How often labels of different tasks stand on the same training words."""
    return LabelCounts.from_words(
        [task.name for task in corpus.tasks], [task.labels for task in corpus.tasks], train.labels
    )


def task_facts(config: RunConfig, corpus: Corpus, train: SplitData) -> tuple[TaskFacts, ...]:
    """What this run knows of each task before it trains."""
    return tuple(
        TaskFacts(
            name=task.name,
            scheme=task.scheme,
            labels=task.labels,
            score_name=score_name(task.scheme, config.pos_score),
            train_sentences=sum(task.name in sentence.labels for sentence in train.sentences),
            train_tokens=int((train.labels[:, index] != IGNORED).sum()),
            unseen=dict(task.unseen),
            illegal=dict(task.illegal),
            auxiliary=task.auxiliary,
        )
        for index, task in enumerate(corpus.tasks)
    )


# AdamW with a rate for each part of the model, all falling linearly to zero (dissertation, section 6.1).


_BETAS = (0.9, 0.999)
_EPSILON = 1e-8


def part_of(parameter_name: str) -> str:
    """Which part a parameter of the tagger belongs to: `heads`, `bilstm` or `encoder`."""
    if parameter_name.startswith("heads."):
        return "heads"
    return "bilstm" if ".lstm." in parameter_name else "encoder"


def make_optimiser(
    model: nn.Module, config: RunConfig, total_steps: int
) -> tuple[torch.optim.AdamW, torch.optim.lr_scheduler.LambdaLR]:
    """The optimiser and its schedule over `total_steps` steps, without warm-up."""
    rates = {"encoder": config.lr_encoder, "bilstm": config.lr_bilstm, "heads": config.lr_heads}
    groups: list[dict[str, Any]] = []
    for part, rate in rates.items():
        own = [value for name, value in model.named_parameters() if part_of(name) == part]
        if own and rate is not None:
            groups.append({"params": own, "lr": rate, "name": part})
    optimiser = torch.optim.AdamW(
        groups, betas=_BETAS, eps=_EPSILON, weight_decay=config.weight_decay, fused=True
    )
    for module in model.modules():
        if isinstance(module, TrainedRows):
            module.decay_with(optimiser)
    schedule = torch.optim.lr_scheduler.LambdaLR(optimiser, lambda step: max(0.0, 1 - step / total_steps))
    return optimiser, schedule


_ORDER_STREAM = 1  # the data order draws from its own stream of the seed, apart from torch's generator


@dataclass
class TrainingRun:
    """A training, ready to begin."""

    config: RunConfig
    facts: RunFacts
    device: torch.device
    tokenizer: SubwordTokenizer
    splits: Mapping[str, SplitData]
    model: MultiTaskTagger
    prior: Prior
    optimiser: torch.optim.AdamW
    schedule: torch.optim.lr_scheduler.LambdaLR
    order: np.random.Generator
    features: FeatureTables | None = None
    order_before: dict[str, Any] = field(default_factory=dict)
    """The state of `order` when the current epoch began."""

    @property
    def tasks(self) -> tuple[TaskFacts, ...]:
        """The run's tasks, in the order of the heads."""
        return self.facts.tasks

    def compute_features(self, sink: Sink, should_stop: Callable[[], bool]) -> bool:
        """Have a frozen encoder's features of every split ready; those an earlier run left are not computed.

        A note says what is being computed, for it may take minutes. False where it was told to stop. From
        here on torch uses the run's own number of threads.
        """
        for name, split in self.splits.items():
            if self.features is None or self.features.has(split.text, split.key):
                continue
            sink(
                Note(f"Computing the frozen encoder's features of {len(split.sentences):,} {name} sentences.")
            )
            if not self.features.compute(split.text, split.key, should_stop):
                return False
        torch.set_num_threads(self.facts.threads)
        return True

    def epoch(self, skip: int) -> Iterator[Batch]:
        """The training batches of the next epoch, without the first `skip` of them, made before."""
        self.order_before = dict(self.order.bit_generator.state)
        return self.enter("train").batches.shuffled(self.order, skip)

    def enter(self, split: str) -> SplitData:
        """That split, with a frozen encoder's features of it looked up from now on."""
        data = self.splits[split]
        if self.features is not None:
            self.features.look_up(data.text, data.key)
        return data


def set_up(config: RunConfig, corpus: Corpus) -> TrainingRun:
    """Build the training that `config` describes on `corpus`, as `core.corpora.prepare` returned it.

    Raises MRNLabError where encoder, device or data do not allow it.
    """
    torch.set_num_threads(ALL_THREADS)  # a run before this one in the same worker may have trained with one
    device = choose_device(config.device)
    make_deterministic(config.seed, device)
    half = computes_in_half(config.precision, device)
    tokenizer = _tokenizer(locate(config.encoder))
    check_max_length(config)
    splits = encode_corpus(config, corpus, tokenizer)
    tasks = task_facts(config, corpus, splits["train"])
    if empty := [task.name for task in tasks if not task.train_tokens]:
        raise TrainingError(
            f"Task {empty[0]} has no labelled training words in this run. Use a larger fraction or "
            "other data."
        )

    encoder, features, frozen_weights = _encoder(config, half, device, splits["train"], tokenizer)
    sizes = [len(task.labels) for task in tasks]
    heads = Heads(
        encoder.features,
        sizes,
        init=config.head_init,
        dropout=config.dropout,
        dropout_on=config.dropout_on,
    ).to(device)
    model = MultiTaskTagger(encoder, heads)
    trained_weights = weight_count(model)

    steps_per_epoch = len(splits["train"].batches)
    total_steps = steps_per_epoch * config.epochs
    optimiser, schedule = make_optimiser(model, config, total_steps)
    prior, alignment, counts = _prior(config, corpus, splits["train"], tasks, encoder.features, device)
    return TrainingRun(
        config=config,
        facts=RunFacts(
            device=str(device),
            precision="bf16" if half else "fp32",
            threads=_training_threads(config),
            versions=_versions(),
            tasks=tasks,
            total_steps=total_steps,
            steps_per_epoch=steps_per_epoch,
            features=encoder.features,
            dev_from_train=corpus.dev_from_train,
            selected_by=config.select_by if "dev" in splits else "last",
            planted=corpus.planted,
            text_hash=corpus.text_hash,
            parameters=frozen_weights + trained_weights,
            trained_parameters=trained_weights,
            notes=(
                *corpus.notes,
                *_encoder_notes(config),
                *remarks(config),
                *(alignment.notes if alignment else ()),
            ),
            **_alignment_facts(alignment, counts),
        ),
        device=device,
        tokenizer=tokenizer,
        splits=splits,
        model=model,
        prior=prior,
        optimiser=optimiser,
        schedule=schedule,
        order=np.random.default_rng([config.seed, _ORDER_STREAM]),
        features=features,
    )


@lru_cache(maxsize=2)
def _kept_tokenizer(source: str, files: str) -> SubwordTokenizer:
    """That of the last runs of this process, for as long as its files are as they were."""
    del files  # part of the cache's key only
    return load_tokenizer(source)


def _tokenizer(source: str) -> SubwordTokenizer:
    files = signature(source)
    return load_tokenizer(source) if files is None else _kept_tokenizer(source, files)


def _encoder(
    config: RunConfig, half: bool, device: torch.device, train: SplitData, tokenizer: SubwordTokenizer
) -> tuple[Encoder, FeatureTables | None, int]:
    """The shared layers on the device; of a frozen encoder also the features that stand for it, and how many
    weights it has, which are none of the layers' own.
    """
    encoder: Encoder
    features, frozen_weights = None, 0
    if config.encoder_training == "frozen":
        source = LazyTransformer(config.encoder, half=half, device=device, cache=cache_dir("encoders"))
        encoder = frozen = FrozenFeatures(source.features).to(device)
        frozen_weights = source.parameters
        features = FeatureTables(source, frozen, tokenizer.pad, cache_dir("features"))
    else:
        transformer = load_transformer(config.encoder, half=half)
        train_rows(transformer.inner, np.append(train.text.ids, tokenizer.pad))
        encoder = transformer.to(device)
    if config.bilstm_hidden is not None:
        encoder = BiLSTM(encoder, config.bilstm_hidden).to(device)
    return encoder, features, frozen_weights


def _encoder_notes(config: RunConfig) -> tuple[str, ...]:
    """Says where an encoder of the Hub was read from a folder."""
    folder = local_copy(config.encoder)
    return () if folder is None else (f"The encoder {base_name(config.encoder)} was read from {folder}.",)


def _training_threads(config: RunConfig) -> int:
    """One for heads alone: their matrices are too small to share, and a second thread that waits on a busy
    machine made such a run forty times slower (on an idle one a single thread costs a sixth)."""
    return 1 if trains_heads_alone(config) else ALL_THREADS


def update_steps(config: RunConfig, per_part: Sequence[int]) -> tuple[int, ...]:
    """The steps at which covariances are updated, the last step always.

    `per_part` has the batches of an epoch, corpus by corpus, as `Batches.per_part`.
    """
    total_steps = sum(per_part) * config.epochs
    every = config.update_every or total_steps
    if config.update_timing != "epoch_start":
        return (*range(every, total_steps, every), total_steps)
    steps = {total_steps}
    start = 0
    for batches in (*per_part,) * config.epochs:  # the program counts the batches of each corpus from 0
        steps.update(range(start + 1, start + batches + 1, every))
        start += batches
    return tuple(sorted(steps))


def snapshot_steps(updates: Sequence[int], snapshots: int) -> frozenset[int]:
    """The steps at which covariances are stored: evenly spaced among their updates, the last always.

    Between two updates nothing changes, so there are never more snapshots than updates.
    """
    kept = min(snapshots, len(updates))
    return frozenset(updates[math.ceil(len(updates) * index / kept) - 1] for index in range(1, kept + 1))


def _prior(
    config: RunConfig,
    corpus: Corpus,
    train: SplitData,
    tasks: Sequence[TaskFacts],
    features: int,
    device: torch.device,
) -> tuple[Prior, Alignment | None, LabelCounts | None]:
    if config.prior is None or config.alignment is None or config.lambda_ is None or config.learn is None:
        return NoPrior(), None, None  # STL and MTL
    counts = label_counts(corpus, train)
    alignment = align(config.alignment, counts, corpus.overlaps or overlaps(corpus.train, config.tasks))
    settings = PriorSettings(
        features=features,
        lambda_=config.lambda_,
        tokens=sum(task.train_tokens for task in tasks),
        learn=config.learn,
        shrinkage=config.shrinkage or 1.0,
    )
    return make_prior(config.prior, alignment, settings, device), alignment, counts


def _alignment_facts(alignment: Alignment | None, counts: LabelCounts | None) -> dict[str, Any]:
    if alignment is None or counts is None:
        return {}
    comparable = alignment.keeps_rows(counts) and counts.shared.any()
    gold = np.round(counts.indicator_correlation(), 4) if comparable else np.zeros((0, 0))
    return {
        "alignment": alignment.name,
        "alignment_reason": alignment.reason,
        "label_names": alignment.label_names,
        "label_owners": alignment.label_owners,
        "meet": tuple(map(tuple, alignment.meet.tolist())),
        "impossible": alignment.impossible,
        "cooccurrence": tuple(map(tuple, gold.tolist())),
    }


def _versions() -> dict[str, str]:
    found = {"mrnlab": __version__, "python": platform.python_version(), "torch": torch.__version__}
    for package in ("transformers", "datasets"):
        try:
            found[package] = version(package)
        except PackageNotFoundError:
            found[package] = "absent"
    return found
