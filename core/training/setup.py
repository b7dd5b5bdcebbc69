"""Everything a training needs, built from its description: data, model, prior, optimiser."""

from __future__ import annotations

import math
import platform
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cache, partial
from importlib.metadata import PackageNotFoundError, version
from typing import Any

import numpy as np
import torch
from torch import nn

from core import __version__
from core.config import RunConfig, config_warnings, trains_heads_alone
from core.corpora.assembly import undefined_note
from core.corpora.overlaps import overlaps
from core.corpora.types import Corpus
from core.encoding.batches import Batch, Context
from core.encoding.tokenizer import Tokenizer
from core.encoding.words import words_read
from core.errors import TrainingError
from core.events import Note, RunFacts, SelectBy, Sink, TaskFacts, corpus_facts
from core.models.build import BuiltEncoder, Tokenizers, build_encoder, load_tokenizers
from core.models.device import ALL_THREADS, choose_device, computes_in_half, hardware_name, make_deterministic
from core.models.encoders import parts_of
from core.models.encoders.fast_bert import TrainedRows, weight_count
from core.models.encoders.frozen import FeatureTables, FrozenFeatures
from core.models.tagger import HeadTask, MultiTaskTagger, make_tagger
from core.models.trained_heads import TrainedHeads, trained_heads
from core.mrn.alignments import LabelCounts, align, alignment_facts
from core.mrn.priors import PRIOR_CLASSES, NoPrior, Prior, PriorSettings
from core.training.added import predicted_prior
from core.training.balancing import Balancing, make_balancing
from core.training.data import SplitData, encode_corpus
from core.training.evaluate import Scorer
from core.training.trainable import check_trainable
from core.wording import all_of

_ORDER_STREAM = 1  # the data order draws from its own stream of the seed, apart from torch's generator


_ADAM: dict[str, Any] = {"betas": (0.9, 0.999), "eps": 1e-8, "fused": True}
_OPTIMISERS: Mapping[str, Callable[..., torch.optim.Optimizer]] = {
    "adamw": partial(torch.optim.AdamW, **_ADAM),
    "adam": partial(torch.optim.Adam, **_ADAM),
    "sgd": partial(torch.optim.SGD, momentum=0.9),
    "adadelta": torch.optim.Adadelta,
}
_WARM_UP = 0.1
"""The share of steps in which the learning rates rise."""


def make_optimiser(
    model: nn.Module, config: RunConfig, total_steps: int, balanced: Sequence[nn.Parameter] = ()
) -> tuple[torch.optim.Optimizer, torch.optim.lr_scheduler.LambdaLR]:
    """The optimiser with a learning rate for each part of the model; what balances tasks has that of heads.

    They stay, or fall linearly to zero over `total_steps` steps, as in section 6.1 of the dissertation; with
    a warm-up they first rise.
    """
    groups: list[dict[str, Any]] = []
    parts = parts_of(model)
    for part, lr in (
        ("encoder", config.lr_encoder),
        ("bilstm", config.lr_bilstm),
        ("heads", config.lr_heads),
    ):
        weights = [weight for weight in model.parameters() if parts[weight] == part]
        if weights and lr is not None:
            groups.append({"params": weights, "lr": lr, "name": part})
    if balanced:
        groups.append({"params": balanced, "lr": config.lr_heads, "name": "balancing", "weight_decay": 0.0})
    optimiser = _OPTIMISERS[config.optimiser](groups, weight_decay=config.weight_decay)
    for module in model.modules():
        if isinstance(module, TrainedRows) and isinstance(optimiser, torch.optim.AdamW):
            module.decay_with(optimiser)
    factor = partial(_rate_factor, config.lr_schedule, total_steps=total_steps)
    return optimiser, torch.optim.lr_scheduler.LambdaLR(optimiser, factor)


def _rate_factor(schedule: str, step: int, *, total_steps: int) -> float:
    """The learning rate of this step, counted from 0, as a share of the highest."""
    if schedule == "constant":
        return 1.0
    warm_up = math.ceil(_WARM_UP * total_steps) if schedule == "linear_warmup" else 0
    if step < warm_up:
        return (step + 1) / warm_up
    return max(0.0, 1 - (step - warm_up) / max(1, total_steps - warm_up))


@dataclass
class TrainingRun:
    """A training, ready to begin.

    order_before         the state of `order` when the current epoch began
    encoder_fingerprint  of a transformer of which a part is trained
    base_heads           the trained heads that the run's task is added to
    """

    config: RunConfig
    facts: RunFacts
    device: torch.device
    tokenizer: Tokenizer
    splits: Mapping[str, SplitData]
    scorers: Mapping[str, Scorer]
    model: MultiTaskTagger
    prior: Prior
    balancing: Balancing
    optimiser: torch.optim.Optimizer
    schedule: torch.optim.lr_scheduler.LambdaLR
    order: np.random.Generator
    features: FeatureTables | None = None
    frozen: FrozenFeatures | None = None
    order_before: dict[str, Any] = field(default_factory=dict)
    task_weights: torch.Tensor | None = None
    encoder_fingerprint: str = ""
    base_heads: TrainedHeads | None = None

    @property
    def patience(self) -> int | None:
        """The epochs without a better one after which training ends; None where none can be better."""
        return None if self.selected_by == "last" else self.config.patience

    @property
    def selected_by(self) -> SelectBy:
        """What chooses the epoch that is kept."""
        return self.facts.selected_by or self.config.select_by

    @property
    def heads_lr(self) -> float:
        """The heads' learning rate of this step."""
        (heads,) = (group for group in self.optimiser.param_groups if group["name"] == "heads")
        return float(heads["lr"])

    def compute_features(self, sink: Sink, should_stop: Callable[[], bool]) -> bool:
        """Compute the states of layers that are not trained for every split.

        States in the cache are not computed again.

        A note says what is being computed, since it may take minutes. False where `should_stop` said so. From
        here on torch uses the run's own number of threads.
        """
        for name, split in self.splits.items():
            trains = name == "train"
            if self.features is None or self.features.has(*split.subwords, for_training=trains):
                continue
            sink(Note(f"Computing the {self.features.what()} of {len(split.sentences):,} {name} sentences."))
            if not self.features.compute(*split.subwords, should_stop, for_training=trains):
                return False
        if self.features is not None:
            self.features.release()
        torch.set_num_threads(self.facts.threads)
        return True

    def epoch(self, skip: int) -> Iterator[Batch]:
        """The training batches of the next epoch, without the first `skip` of them, made before."""
        self.order_before = dict(self.order.bit_generator.state)
        return self.use_split("train").batches.shuffled(self.order, skip)

    def use_split(self, split: str) -> SplitData:
        """Returns the split, whose cached states become the current ones."""
        data = self.splits[split]
        if self.features is not None:
            table = self.features.table(*data.subwords, for_training=split == "train")
            if self.frozen is not None:
                self.frozen.table = table
            elif data.batches.context is None:
                rows = data.subwords[0].first_places[words_read(data.text)]
                data.batches.context = Context(table, rows)
        return data


def set_up(config: RunConfig, corpus: Corpus, threads: int | None = None) -> TrainingRun:
    """Build the training that `config` describes on `corpus`, as `core.corpora.prepare` returned it.

    It has `threads` of the processor, all by default. Raises MRNLabError where encoder, device or data do not
    allow it.
    """
    check_trainable(config, corpus.tasks)
    base_heads = trained_heads(config)
    threads = threads or ALL_THREADS
    torch.set_num_threads(threads)  # a run before this one in the same worker may have trained with fewer
    device = choose_device(config.device)
    make_deterministic(config.seed, device)
    half = computes_in_half(config.precision, device)

    tokenizers = load_tokenizers(config, corpus)
    splits = encode_corpus(config, corpus, tokenizers.main, tokenizers.context)
    train = splits["train"]
    tasks = corpus.task_facts(config.pos_score)
    _check_labelled(tasks)
    built, model = _model(config, tokenizers, splits, tasks, half=half, device=device)
    balancing = make_balancing(config, model, device)
    steps = len(train.batches) * config.epochs
    optimiser, schedule = make_optimiser(model, config, steps, balancing.learned)
    prior, relation_facts, alignment_notes = (
        _prior(config, corpus, train, tasks, model, device)
        if base_heads is None
        else predicted_prior(config, corpus, train, tasks[0], model, base_heads, built.features)
    )
    scorers = {name: Scorer(config, name, splits[name], tasks) for name in ("dev", "test") if name in splits}
    selected_by, undefined_notes = _epoch_choice(config, scorers)
    notes = (*corpus.notes, *built.notes, *config_warnings(config), *undefined_notes, *alignment_notes)
    return TrainingRun(
        config=config,
        facts=RunFacts(
            **_machine_facts(config, device, threads, half=half),
            **corpus_facts(corpus),
            **_size_facts(config, train, model, built),
            **relation_facts,
            tasks=tasks,
            selected_by=selected_by,
            notes=tuple(dict.fromkeys(notes)),
        ),
        device=device,
        tokenizer=tokenizers.main,
        splits=splits,
        scorers=scorers,
        model=model,
        prior=prior,
        balancing=balancing,
        optimiser=optimiser,
        schedule=schedule,
        order=np.random.default_rng([config.seed, _ORDER_STREAM]),
        features=built.features,
        frozen=built.lookup,
        task_weights=_task_weights(config, device),
        encoder_fingerprint=built.fingerprint,
        base_heads=base_heads,
    )


def _check_labelled(tasks: Sequence[TaskFacts]) -> None:
    """Raises TrainingError where a task has no training label."""
    if empty := [task.name for task in tasks if not task.train_tokens]:
        raise TrainingError(
            f"Task {empty[0]} has nothing labelled to train on in this run. Use a larger fraction or "
            "other data."
        )


def _model(
    config: RunConfig,
    tokenizers: Tokenizers,
    splits: Mapping[str, SplitData],
    tasks: Sequence[TaskFacts],
    *,
    half: bool,
    device: torch.device,
) -> tuple[BuiltEncoder, MultiTaskTagger]:
    """The encoder, and the tagger with a head for each task, on the device."""
    train = splits["train"]
    texts = [split.text.texts for split in splits.values() if split.text.texts is not None]
    built = build_encoder(
        config, tokenizers, train.sentences, train.text, texts, tasks=len(tasks), half=half, device=device
    )
    model = make_tagger(
        built.encoder,
        config,
        [HeadTask(task.scheme, task.labels, task.scale) for task in tasks],
        pooled_by=built.pooled_by,
        init=config.head_init,
        dropout=config.dropout,
    )
    return built, model.to(device)


def _task_weights(config: RunConfig, device: torch.device) -> torch.Tensor | None:
    return None if config.task_weights is None else torch.tensor(config.task_weights, device=device)


def _machine_facts(config: RunConfig, device: torch.device, threads: int, *, half: bool) -> dict[str, Any]:
    return {
        "device": str(device),
        "precision": "bf16" if half else "fp32",
        # One thread for heads alone: their matrices are too small to share, and a second thread that waits
        # on a busy machine made such a run forty times slower (on an idle one, one thread costs a sixth).
        "threads": 1 if trains_heads_alone(config) else threads,
        "versions": _versions(),
        "hardware": hardware_name(device),
    }


def _size_facts(
    config: RunConfig, train: SplitData, model: MultiTaskTagger, built: BuiltEncoder
) -> dict[str, Any]:
    steps, weights = len(train.batches), weight_count(model)
    fixed = sum(weight.numel() for weight in model.parameters() if not weight.requires_grad)
    return {
        "total_steps": steps * config.epochs,
        "steps_per_epoch": steps,
        "features": built.encoder.features,
        "parameters": weights + built.fixed_weights,
        "trained_parameters": weights - fixed,
    }


def _epoch_choice(config: RunConfig, scorers: Mapping[str, Scorer]) -> tuple[SelectBy, tuple[str, ...]]:
    """The criterion that chooses the epoch, and notes on scores that the gold labels leave undefined."""
    notes = [
        undefined_note(task, split, reason)
        for split, scorer in scorers.items()
        for task, reason in scorer.undefined.items()
    ]
    dev = scorers.get("dev")
    if dev is None or not dev.has_labels:
        if config.patience is not None:
            notes.append("patience has no effect: no development sentence is labelled.")
        return "last", tuple(notes)
    if not dev.has_defined and config.select_by != "last":
        # The loss of sentences without a span is lowest where nothing is predicted.
        notes.append("No dev score is defined, so the last epoch is kept.")
        if config.patience is not None:
            notes.append("patience has no effect: no dev score is defined.")
        return "last", tuple(notes)
    if config.select_by == "score" and dev.undefined:
        notes.append(
            f"The epoch is chosen by the dev scores of the tasks other than {all_of([*dev.undefined])}."
        )
    return config.select_by, tuple(notes)


def update_steps(config: RunConfig, per_part: Sequence[int]) -> tuple[int, ...]:
    """The steps at which covariances are updated, the last step always.

    `per_part` has the batches of an epoch, corpus by corpus, as `Batches.per_part`.
    """
    total_steps = sum(per_part) * config.epochs
    every = config.update_every or total_steps
    if config.update_timing != "epoch_start":
        return (*range(every, total_steps, every), total_steps)
    steps, start = {total_steps}, 0
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
    model: MultiTaskTagger,
    device: torch.device,
) -> tuple[Prior, dict[str, Any], tuple[str, ...]]:
    """The prior, the fields of RunFacts on its alignment, and notes on it."""
    if config.prior is None or config.alignment is None or config.lambda_ is None or config.learn is None:
        return NoPrior(), {}, ()  # STL and MTL
    stacked = model.stacked
    left_out = tuple(task.name for index, task in enumerate(tasks) if index not in stacked)
    notes: tuple[str, ...] = ()
    if left_out:
        notes = (
            f"The prior leaves out {', '.join(left_out)}: pairs that are read apart have heads of another "
            "shape.",
        )
    tasks = [tasks[index] for index in stacked]
    counts = LabelCounts.from_words(
        [task.name for task in tasks], [task.labels for task in tasks], train.labels[:, stacked]
    )
    names = [task.name for task in tasks]
    pairs = corpus.overlaps or overlaps(corpus.train, config.tasks)
    alignment = align(config.alignment, counts, [pair for pair in pairs if set(pair.tasks) <= set(names)])
    settings = PriorSettings(
        features=model.heads.weight.shape[1],
        lambda_=config.lambda_,
        tokens=sum(task.train_tokens for task in tasks),
        learn=tuple(mode for mode in config.learn if mode != "none"),
        shrinkage=config.shrinkage or 1.0,
        task_correlation=config.task_correlation or 0.0,
    )
    facts = alignment_facts(alignment, counts) | {"related": tuple(names) if left_out else ()}
    if config.label_scale == "counts":
        alignment = alignment.scaled_by_counts(counts)
    return PRIOR_CLASSES[config.prior](alignment, settings, device), facts, (*notes, *alignment.notes)


@cache
def _versions() -> dict[str, str]:
    versions = {"mrnlab": __version__, "python": platform.python_version(), "torch": torch.__version__}
    for package in ("transformers", "datasets"):
        try:
            versions[package] = version(package)
        except PackageNotFoundError:
            versions[package] = "absent"
    return versions
