"""What the training benchmark compares computes the same thing, and is counted alike."""

from __future__ import annotations

import json
import time
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest
import torch
from torch import Tensor

from core.config import RunConfig
from core.training.setup import Setup, set_up
from core.training.trainer import train_step
from tests import toys
from tests.benchmarks import growth, inference, training, training_published, training_trainer
from tests.benchmarks.training_compare import LOOPS, summary
from tests.benchmarks.training_job import Job, make_job
from tests.benchmarks.training_ratios import flops_of, joined, ratio
from tests.benchmarks.turns import Block, Memory, Player
from tests.sleeping import sleeper
from tests.tiny import tiny_bert
from tests.trained import toy_config

LONGEST = 32
KEYS = [
    "over_trainer",
    "over_trainer_fp32",
    "over_published",
    "mrn_over_mtl",
    "inference_over_pipeline",
    "memory_over_trainer",
]


def prepared(tmp_path: Path, **values: Any) -> Setup:
    """A run over the toy corpus in one batch, without dropout, its heads random."""
    config = RunConfig.build(
        corpus="toy",
        tasks="pos,ner",
        encoder=str(tiny_bert(tmp_path / "encoder")),
        batch_size=64,
        max_length=LONGEST,
        dropout=0.0,
        **values,
    )
    run = set_up(config, toys.corpus())
    run.model.eval()
    torch.manual_seed(1)
    torch.nn.init.normal_(run.model.heads.weight)
    torch.nn.init.normal_(run.model.heads.bias)
    return run


def give_heads(run: Setup, linears: Any) -> None:
    """Each task's rows of the run's heads to a linear layer of its own."""
    with torch.no_grad():
        for linear, rows in zip(linears, run.model.heads.slices, strict=True):
            linear.weight.copy_(run.model.heads.weight[rows])
            linear.bias.copy_(run.model.heads.bias[rows])


def batch_for_trainer(run: Setup) -> dict[str, Tensor]:
    corpus, tokenizer = toys.corpus(), run.tokenizer.inner
    rows = training_trainer.dataset_of(corpus.train, corpus.tasks, tokenizer, LONGEST)
    return training_trainer.Collator(tokenizer)(rows.to_list())


def our_loss(run: Setup) -> float:
    """The total loss of the one batch that an epoch has."""
    (batch,) = run.epoch(skip=0)
    return train_step(run, batch)[-1].item()


def test_trainer_is_given_the_same_loss_to_minimise(tmp_path: Path) -> None:
    run = prepared(tmp_path, paradigm="mtl")
    labels = [len(task.labels) for task in run.tasks]
    model = training_trainer.Model(run.config.encoder, labels, dropout=0.0).eval()
    give_heads(run, model.heads)
    theirs = model(**batch_for_trainer(run))["loss"].item()
    assert theirs > 1
    assert our_loss(run) == pytest.approx(theirs, rel=1e-5)


def test_the_published_loop_has_the_same_loss(tmp_path: Path) -> None:
    run = prepared(tmp_path, paradigm="mrn", prior="paper", alignment="disjoint", **{"lambda": 0.05})
    corpus = toys.corpus()
    labels = [len(task.labels) for task in run.tasks]
    model = training_published.Model(run.config.encoder, labels, LONGEST).eval()
    give_heads(run, model.linears)
    rows = training_trainer.dataset_of(corpus.train, corpus.tasks, run.tokenizer.inner, LONGEST).to_list()
    padded = training_published.Padded(rows, ["pos", "ner"], LONGEST)
    batch = torch.utils.data.default_collate([padded[place] for place in range(len(padded))])
    prior = training_published.algebra(corpus, run.model.encoder.features, "cpu")
    loss, heads = training_published.loss_of(model, batch, ["pos", "ner"], prior)
    torch.testing.assert_close(heads, run.model.heads.weight)
    assert prior.penalty(heads).item() > 0.1
    assert our_loss(run) == pytest.approx(loss.item(), rel=1e-5)


def test_labels_of_trainers_batches_stand_on_first_subwords(tmp_path: Path) -> None:
    run = prepared(tmp_path, paradigm="mtl")
    batch = batch_for_trainer(run)
    words = sum(len(one.tokens) for one in toys.corpus().train)
    assert (batch["labels"] != -100).all(dim=-1).sum() == words
    assert (batch["labels"] != -100).any(dim=-1).sum() == words
    assert batch["attention_mask"].sum() > words
    assert (batch["labels"][:, 0] == -100).all()  # the frame has none
    assert (batch["labels"][batch["attention_mask"] == 0] == -100).all()


class Here:
    """Lets a loop make so many steps in this process, and counts as a turn does."""

    warming = False

    def __init__(self, steps: int) -> None:
        self.steps = self._left = steps
        self.facts: dict[str, Any] = {}
        self.seen: list[tuple[int, int, int]] = []
        self.discounted = 0.0
        self._began = time.perf_counter()

    def between(self) -> bool:
        self._left -= 1
        return self._left < 0

    def saw(self, words: int | Tensor, subwords: int | Tensor, places: int) -> None:
        self.seen.append((int(words), int(subwords), places))

    def tell(self, **facts: Any) -> None:
        self.facts |= facts

    def discount(self, seconds: float) -> None:
        self.discounted += seconds

    def block(self) -> Block:
        words, subwords, places = map(sum, zip(*self.seen, strict=True))
        seconds = time.perf_counter() - self._began
        return Block(self.steps, seconds, seconds, words, subwords, places)


@pytest.fixture
def job(tmp_path: Path) -> Job:
    return make_job(toy_config(tmp_path, batch_size=8, epochs=2, dropout=0.1), steps=4)


def test_all_ways_end_in_the_last_line(job: Job, capsys: pytest.CaptureFixture[str]) -> None:
    """Every loop in this process, a pipeline beside the tagger: the keys asked for, and counts that fit."""
    blocks: dict[str, list[Block]] = {}
    facts: dict[str, Mapping[str, Any]] = {}
    for name, loop in LOOPS.items():
        here = Here(4)
        loop(job, here)
        blocks[name], facts[name] = [here.block()], here.facts
        for words, subwords, places in here.seen[:4]:
            assert 8 * 2 <= words < subwords <= places, name
        assert here.discounted > 0 if name == "published" else here.discounted == 0
        assert facts[name]["precision"] == "fp32"
    assert blocks["published"][0].places == 4 * 8 * job.config.max_length
    memory = {name: Memory(peak=300 - len(name), imports=100, cuda=None) for name in LOOPS}
    found = summary(job, blocks, memory, facts)
    assert found["variants"]["mtl"]["padding"] == 0
    assert found["variants"]["trainer_fp32"]["padding"] > 0
    tagging = inference.compare(job.config, inference.Effort(steps=4, blocks=1, sentences=4, single=1))
    assert tagging["same_labels"] == 1
    line = training.last_line(found, tagging)
    assert list(line) == KEYS
    assert all(value > 0 for value in line.values())
    assert line["memory_over_trainer"] == pytest.approx(297 / 293, abs=1e-3)
    assert json.loads(json.dumps(found)) == found


def test_too_many_steps_are_refused(job: Job) -> None:
    with pytest.raises(Exception, match="has 8 steps: fewer can be measured, not 8"):
        make_job(job.config, 8)


def test_a_loop_in_a_process_takes_turns() -> None:
    player = Player("sleeper", sleeper, 0.03)
    try:
        assert player.facts == {"warming": False}
        time.sleep(0.2)  # whose turn it is not is not counted
        block = player.play(2)
        assert (block.steps, block.words, block.subwords, block.places) == (2, 6, 8, 10)
        assert block.seconds >= 0.04
        memory = player.end()
        assert 2**20 < memory.imports <= memory.peak
    finally:
        player.close()


def test_ratios_are_medians_of_pairs() -> None:
    ours = [Block(5, seconds=1.0, words=words) for words in (100, 100, 300, 100)]
    theirs = [Block(5, seconds=seconds, words=100) for seconds in (2.0, 2.0, 2.0, 4.0)]
    assert ratio(ours, theirs)["median"] == 3.0
    assert ratio(ours, theirs)["total"] == 3.75
    expected = {"median": 4.0, "quartiles": [3.0, 5.0], "pairs": 2, "total": 3.75}
    assert ratio(joined(ours, 2), joined(theirs, 2)) == expected


def test_floating_point_operations_are_counted(tmp_path: Path) -> None:
    """Six for each weight of a matrix and subword, and attention's."""
    from transformers import AutoConfig, AutoModel

    folder = tiny_bert(tmp_path / "encoder")
    model = AutoModel.from_pretrained(folder, add_pooling_layer=False)
    matrices = sum(one.weight.numel() for one in model.modules() if isinstance(one, torch.nn.Linear))
    flops = flops_of(AutoConfig.from_pretrained(folder), rows=0, subwords=0)
    assert flops(Block(subwords=10, words=7)) == 6 * 10 * matrices
    with_attention = flops_of(AutoConfig.from_pretrained(folder), rows=0, subwords=5)
    assert with_attention(Block(subwords=10)) - 6 * 10 * matrices == 3 * 10 * 2 * (2 * 2 * 5 * 16)


def test_growth_is_fitted() -> None:
    assert growth.exponent((2, 4, 8), [3.0, 12.0, 48.0]) == 2.0
    found = growth.measure(quick=True)
    for axis, sizes in growth.QUICK.items():
        assert found[axis]["sizes"] == sizes
        assert set(found[axis]["exponents"]) == {"setup_s", "mtl_step_ms", "mrn_step_ms", "update_ms"}
        assert all(cost > 0 for cost in found[axis]["mtl_step_ms"])
