"""All ways to train, turn by turn, each in a process of its own: figures of each, and their ratios."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from contextlib import ExitStack, closing
from dataclasses import replace
from typing import Any

import torch
from transformers import AutoConfig

from core.models.sources import locate
from tests.benchmarks.training_job import Job
from tests.benchmarks.training_ours import train_mrn, train_mtl
from tests.benchmarks.training_published import train_published
from tests.benchmarks.training_ratios import (
    figures,
    flops_of,
    joined,
    peak_flops,
    ratio,
    step_seconds,
    words_per_cpu_second,
)
from tests.benchmarks.training_trainer import train_best, train_fp32
from tests.benchmarks.turns import Block, Loop, Memory, Player

__all__ = ["LOOPS", "compare", "summary"]

LOOPS: dict[str, Loop] = {
    "mtl": train_mtl,
    "mrn": train_mrn,
    "trainer": train_best,
    "trainer_fp32": train_fp32,
    "published": train_published,
}
TURN = 5
"""Steps of a turn: few enough for all to meet the same load of the machine."""
TOGETHER = 2
"""Turns that are compared as one: an update of the covariances lies in each."""


def compare(job: Job) -> dict[str, Any]:
    """Trains all ways, turn by turn; figures of each, and ratios."""
    before = os.getloadavg()[0]
    blocks, memory, facts = _played(job)
    load = {"load": [round(before, 2), round(os.getloadavg()[0], 2)]}
    return load | summary(job, blocks, memory, facts)


def _played(job: Job) -> tuple[dict[str, list[Block]], dict[str, Memory], dict[str, dict[str, Any]]]:
    """Of each way the blocks, the memory it took, and what it told."""
    blocks: dict[str, list[Block]] = {name: [] for name in LOOPS}
    with ExitStack() as stack:
        players = [stack.enter_context(closing(Player(name, loop, job))) for name, loop in LOOPS.items()]
        for turn in range(-(-job.steps // TURN)):
            first = turn % len(players)  # nobody always comes after the same one
            for player in players[first:] + players[:first]:
                # A step of the published loop costs the same whatever the sentences: few do.
                steps = 1 if player.name == "published" else TURN
                blocks[player.name].append(player.play(steps))
        memory = {player.name: player.end() for player in players}
        return blocks, memory, {player.name: player.facts for player in players}


def summary(
    job: Job,
    blocks: Mapping[str, Sequence[Block]],
    memory: Mapping[str, Memory],
    facts: Mapping[str, Mapping[str, Any]],
) -> dict[str, Any]:
    """Figures of each way, and ratios between them."""
    blocks = {**blocks, "published": _of_mean_length(job, blocks["published"])}
    return {"variants": _variants(job, blocks, memory, facts), "ratios": _ratios(blocks, memory)}


def _of_mean_length(job: Job, blocks: Sequence[Block]) -> list[Block]:
    """As if each sentence had been of the mean length, which these steps' time does not depend on."""
    words = sum(len(one.tokens) for batch in job.sentences for one in batch) / job.steps
    return [replace(block, words=round(block.steps * words)) for block in blocks]


def _variants(
    job: Job,
    blocks: Mapping[str, Sequence[Block]],
    memory: Mapping[str, Memory],
    facts: Mapping[str, Mapping[str, Any]],
) -> dict[str, Any]:
    """Figures of each way to train, ten steps by ten."""
    cuda = job.device.startswith("cuda")
    peak = peak_flops(torch.cuda.get_device_name(job.device) if cuda else None, job.half)
    total = sum(blocks["mtl"], Block())
    subwords = total.subwords / (total.steps * job.config.batch_size)
    rows = sum(len(task.labels) for task in job.corpus.tasks)
    flops = flops_of(AutoConfig.from_pretrained(locate(job.config.encoder)), rows, subwords)
    return {
        name: dict(facts[name]) | figures(joined(own, TOGETHER), memory[name], flops, peak)
        for name, own in blocks.items()
    }


def _ratios(blocks: Mapping[str, Sequence[Block]], memory: Mapping[str, Memory]) -> dict[str, Any]:
    """Of our MTL to each other way by words a second, and of MRN to MTL by time."""
    tens = {name: joined(own, TOGETHER) for name, own in blocks.items()}
    return {
        "over_trainer": ratio(tens["mtl"], tens["trainer"]),
        "over_trainer_fp32": ratio(tens["mtl"], tens["trainer_fp32"]),
        "over_published": ratio(tens["mtl"], tens["published"]),
        "over_trainer_cpu": ratio(tens["mtl"], tens["trainer"], of=words_per_cpu_second),
        "over_trainer_fp32_cpu": ratio(tens["mtl"], tens["trainer_fp32"], of=words_per_cpu_second),
        "over_published_cpu": ratio(tens["mtl"], tens["published"], of=words_per_cpu_second),
        "mrn_over_mtl": ratio(tens["mrn"], tens["mtl"], of=step_seconds),
        "mrn_over_mtl_cpu": ratio(tens["mrn"], tens["mtl"], of=lambda block: block.cpu_seconds),
        "memory_over_trainer": round(memory["mtl"].peak / memory["trainer"].peak, 3),
    }
