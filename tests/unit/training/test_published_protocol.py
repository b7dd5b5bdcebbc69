"""The preset `dissertation` beside the dissertation's own values, and what its fields do in a training."""

from __future__ import annotations

import dataclasses
import json
from itertools import chain
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from transformers import get_scheduler

from core.config import PRESETS, RunConfig
from core.config.sweep import expand
from core.corpora.types import Corpus, Sentence, Task
from core.encoding.batches import Batch, Batches, EpochOrder
from core.events import Note, SplitResult
from core.metrics import TOTAL, EpochMetrics, StepMetrics
from core.models.tagger import Heads
from core.mrn.priors import paper
from core.training.setup import make_optimiser, set_up, snapshot_steps, update_steps
from core.training.trainer import train_step
from tests.benchmarks import _published as program
from tests.tiny import tiny_bert
from tests.toys import config as toy_config
from tests.toys import corpus as toy_corpus
from tests.toys import sentences
from tests.trained import train_toy
from tests.unit.published import assert_published, printed_values

OF_NO_PAPER = {
    *("corpus", "columns", "tasks", "paradigm", "seed", "device", "snapshots", "shrinkage"),
    *("affinity_every", "pooling", "pair_encoding", "pair_heads", "task_embedding", "label_scale"),
    *("heads", "task_correlation", "added_to"),
    *("fraction_draw", "corpus_order"),  # set from table 3 on
}
OF_WORD_ENCODERS = {
    *("vectors", "vectors_training", "capitals", "characters", "input_dropout", "lstm_layers", "task_order"),
    *("context_encoder", "window", "shared_dense", "task_dense"),
}


def _run(encoder: str = "bert-base-cased+bilstm", **values: Any) -> RunConfig:
    base = {"corpus": "conll2003", "tasks": "pos,chunk,ner", "paradigm": "mrn"} | values
    (config,) = expand(base, {"encoder": [encoder]}, PRESETS["dissertation"])
    return config


def test_the_preset_has_the_published_values_that_the_mathematics_page_prints() -> None:
    values = printed_values(_run()) | {"encoder": _run().encoder.removesuffix("+bilstm")}
    assert_published("dissertation", values, of_no_paper=OF_NO_PAPER, unset=OF_WORD_ENCODERS)


def test_updates_at_the_start_of_each_epoch_and_corpus() -> None:
    """A.5: `idx` counts the batches of one loader from 0, and an update follows step 0, 10, 20, …"""
    config = _run(epochs=2)
    assert update_steps(config, [25]) == (1, 11, 21, 26, 36, 46, 50)
    assert update_steps(config, [12, 3]) == (1, 11, 13, 16, 26, 28, 30)
    assert update_steps(config.with_(update_timing="interval"), [25]) == (10, 20, 30, 40, 50)
    assert snapshot_steps(update_steps(config, [25]), 3) <= {11, 21, 26, 36, 46, 50}


def test_dropout_on_logits_sets_logits_to_zero() -> None:
    heads = Heads(4, [3, 2], init="default", dropout=0.5, dropout_on="logits").train()
    words = torch.randn(200, 4)
    plain = torch.nn.functional.linear(words, heads.weight, heads.bias)
    dropped = heads(words)
    kept = dropped != 0
    assert 0.4 < kept.float().mean() < 0.6
    torch.testing.assert_close(dropped[kept], (plain * 2)[kept])
    assert (heads.eval()(words) == plain).all()


def _words(batches: Batches, seed: int) -> list[list[int]]:
    return [batch.words.tolist() for batch in batches.shuffled(np.random.default_rng(seed))]


class TestEpochs:
    """What an epoch of training is made of, on one window a sentence."""

    @pytest.fixture
    def run(self, tmp_path: Path) -> Any:
        def made(**changes: Any) -> Batches:
            lengths = [*range(1, 25), *range(1, 13)]
            train = tuple(
                Sentence(("EU",) * length, {task: ("a",) * length}, part)
                for place, length in enumerate(lengths)
                for task, part in [("one", "A") if place < 24 else ("two", "B")]
            )
            tasks = (Task("one", "plain", ("a",)), Task("two", "plain", ("a",)))
            data = Corpus("toy", tasks, train, (train[0], train[-1]), (train[0], train[-1]))
            config = toy_config(str(tiny_bert(tmp_path)), tasks="one,two", batch_size=4, **changes)
            return set_up(config, data).splits["train"].batches

        return made

    def test_corpora_in_turn_do_not_share_batches(self, run: Any) -> None:
        batches = run(batching="shuffled", corpus_order="in_turn")
        assert batches.per_part == (6, 3)
        first_words_of_b = sum(range(1, 25))
        sides = [{word >= first_words_of_b for word in words} for words in _words(batches, 1)]
        assert sides == [{False}] * 6 + [{True}] * 3
        assert sorted(chain.from_iterable(_words(batches, 1))) == list(
            range(first_words_of_b + sum(range(1, 13)))
        )

    def test_a_share_is_drawn_anew_in_every_epoch(self, run: Any) -> None:
        """A.5 leaves the loop after the first batch whose index exceeds the share of the batches."""
        batches = run(batching="shuffled", corpus_order="in_turn", fraction=0.25, fraction_draw="each_epoch")
        assert batches.per_part == (3, 2)  # 0.25 · 6 = 1.5: batches 0, 1, 2; 0.25 · 3 = 0.75: batches 0, 1
        rng = np.random.default_rng(1)
        epochs = [{word for b in batches.shuffled(rng) for word in b.words.tolist()} for _ in range(3)]
        assert epochs[0] != epochs[1] != epochs[2]
        assert len(set.union(*epochs)) > max(map(len, epochs))
        # 5% of CoNLL-2003's 878 batches are 43.9: the loop ends with index 44.
        assert [EpochOrder(share=share).count(878) for share in (0.05, 1.0, None)] == [45, 878, 878]

    def test_shuffled_batches_mix_lengths(self, run: Any) -> None:
        spread = {}
        for batching in ("by_length", "shuffled"):
            widths = [batch.lengths for batch in run(batching=batching).shuffled(np.random.default_rng(0))]
            assert len(widths) == 9
            spread[batching] = np.mean([width.max().item() - width.min().item() for width in widths])
        assert spread["by_length"] < 3 < spread["shuffled"]


def _in_program(batch: Batch, tasks: list[str], length: int) -> dict[str, torch.Tensor]:
    """A batch as A.4 has it: padded to `length`, labels at words' first subwords."""
    padding = (0, length - batch.ids.shape[1])
    columns = {"input_ids": batch.ids, "attention_mask": batch.mask}
    for task, numbers in zip(tasks, batch.labels.T, strict=True):
        columns[task] = torch.full_like(batch.ids, program.IGNORED)
        columns[task].view(-1)[batch.rows] = numbers
    return {
        name: torch.nn.functional.pad(column, padding, value=program.IGNORED if name in tasks else 0)
        for name, column in columns.items()
    }


def test_thirty_steps_are_those_of_the_published_program(tmp_path: Path) -> None:
    """A.5: 6 epochs of 5 batches without dropout, covariances updated after batches 0 and 3 of each."""
    described = tiny_bert(tmp_path / "encoder") / "config.json"
    no_dropout = {"hidden_dropout_prob": 0.0, "attention_probs_dropout_prob": 0.0}
    described.write_text(json.dumps(json.loads(described.read_text()) | no_dropout))
    config = toy_config(
        str(described.parent), paradigm="mrn", prior="paper", alignment="disjoint", **{"lambda": 0.5},
        batching="shuffled", head_init="default", dropout=0.0, epochs=6, lr_encoder=2e-3, lr_heads=2e-3,
        update_every=3, update_timing="epoch_start",
    )  # fmt: skip
    trained = train_toy(config, toy_corpus(), tmp_path / "run")
    steps = [event for event in trained.of(StepMetrics) if (TOTAL, "loss") in event.values]

    run = set_up(config, toy_corpus())  # of the same seed: the same heads and batches as before
    tasks, sizes = [task.name for task in run.facts.tasks], [len(task.labels) for task in run.facts.tasks]
    model = program.Model(config.encoder, sizes, config.max_length).train()
    model.dropout.p = 0.0
    for head, rows in zip(model.heads, run.model.heads.slices, strict=True):
        head.load_state_dict({name: value[rows] for name, value in run.model.heads.state_dict().items()})
    algebra = program.Algebra(program.align_tasks("disjoint", sizes), model.features, 0.5)
    optimiser = torch.optim.AdamW(model.parameters(), lr=2e-3, weight_decay=config.weight_decay)
    schedule = get_scheduler("linear", optimiser, num_warmup_steps=0, num_training_steps=30)
    expected = []
    for _ in range(config.epochs):
        for index, batch in enumerate(run.epoch(skip=0)):
            optimiser.zero_grad()
            in_program = _in_program(batch, tasks, config.max_length)
            loss, _ = program.total_loss(model, in_program, tasks, algebra)
            loss.backward()
            optimiser.step()
            schedule.step()
            if index % 3 == 0:
                algebra.update(torch.cat([head.get_parameter("weight") for head in model.heads]))
            expected.append(loss.item())
    assert [step.values[TOTAL, "loss"] for step in steps] == pytest.approx(expected, rel=1e-4)


def test_a_run_without_dev_sentences_keeps_its_last_epoch(encoder: str, tmp_path: Path) -> None:
    data = dataclasses.replace(toy_corpus(), dev=())
    for select_by in ("score", "loss", "last"):
        config = toy_config(encoder, dev_sentences=0, select_by=select_by)
        run = train_toy(config, data, tmp_path / select_by)
        assert run.outcome.best_epoch == 3
        assert run.facts.selected_by == "last"
        assert [result.split for result in run.of(SplitResult)] == ["test"]
        assert not run.of(EpochMetrics)
        assert not [note for note in run.of(Note) if "scored" in note.message]
    patient = train_toy(toy_config(encoder, dev_sentences=0, patience=1), data, tmp_path / "patient")
    assert patient.outcome.best_epoch == 3
    assert "patience has no effect: no development sentence is labelled." in patient.facts.notes


def test_a_batch_of_one_corpus_weighs_its_own_losses_alone(encoder: str) -> None:
    """A.5, both POS tasks: the loss of a batch is its corpus's cross-entropy, not a half of it."""
    of_a, of_b = sentences(16, 0, ("pos",)), sentences(16, 1, ("ner",))
    parts = tuple(dataclasses.replace(s, part=part) for part, of in (("A", of_a), ("B", of_b)) for s in of)
    data = dataclasses.replace(toy_corpus(), train=parts)
    for order, share in (("mixed", 0.5), ("in_turn", 1.0)):
        run = set_up(toy_config(encoder, paradigm="mtl", corpus_order=order, dropout=0.0), data)
        for batch in run.epoch(skip=0):
            losses, counts, penalty, total = train_step(run, batch)
            if (counts > 0).sum() == 1:
                expected = share * losses[counts > 0].sum() + penalty
                torch.testing.assert_close(total, expected)


def test_what_is_fixed_in_the_program_is_fixed_here() -> None:
    """AdamW's values and the linear schedule (6.1), and the constants of the procedure (A.5)."""
    assert (paper.EPSILON, paper.INVERT_ABOVE, paper.MAX_TRACE) == (1e-5, 0.1, 3000.0)
    optimiser, schedule = make_optimiser(torch.nn.ModuleDict({"heads": torch.nn.Linear(2, 2)}), _run(), 100)
    (group,) = optimiser.param_groups
    assert (group["betas"], group["eps"]) == ((0.9, 0.999), 1e-8)
    assert [schedule.lr_lambdas[0](step) for step in (0, 25, 100)] == pytest.approx([1.0, 0.75, 0.0])
