"""Tagging beside `transformers.pipeline("token-classification")`: words a second, and one sentence's wait.

The pipelines have the same weights: a run of a few steps, saved as a folder per task. A pipeline answers for
one task, so three tasks take three of them; the fair comparison is one task on both sides. Both compute on
the processor, as the laboratory's pages do.
"""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from statistics import median
from tempfile import TemporaryDirectory
from typing import Any

import numpy as np
import torch
from torch import nn
from transformers import pipeline

from core.checkpoints import Checkpoint
from core.config import RunConfig
from core.corpora import prepare
from core.models.heads import Heads
from core.models.saved_tagger import SavedTagger
from core.models.tagger import MultiTaskTagger
from core.models.task_folders import save_task_folders
from core.tagging import load_tagger, tag_in_parts
from core.training.trainer import train
from tests.benchmarks.training_job import make_job
from tests.benchmarks.training_trainer import quiet

__all__ = ["QUICK", "Effort", "agreement", "compare", "one_task", "trained"]

BATCHES = (1, 4, 8, 16, 32, 64)
OURS = 32
"""Sentences that the laboratory tags at once."""

Words = Sequence[str]


@dataclass(frozen=True)
class Effort:
    """How much is tagged: steps of training before it, blocks, sentences in each, single sentences."""

    steps: int = 20
    blocks: int = 5
    sentences: int = 128
    single: int = 40


QUICK = Effort(steps=4, blocks=2, sentences=16, single=4)


def compare(config: RunConfig, effort: Effort) -> dict[str, Any]:
    """Figures of each way to tag, turn by turn, and ratios of words a second or of waits, ours first."""
    with TemporaryDirectory() as folder:
        tagger = trained(config, effort.steps, Path(folder))
        tasks = tuple(tagger.labels)
        folders = {task: Path(folder) / task for task in tasks}
        quiet()
        if because := save_task_folders(tagger, folders, {}):
            raise ValueError(because)
        pipes = {
            task: pipeline("token-classification", model=str(place), device=-1, dtype=torch.float32)
            for task, place in folders.items()
        }
        alone = one_task(tagger, tasks[-1])
        sentences = _drawn(config, effort.blocks * effort.sentences)
        blocks = [sentences[start :: effort.blocks] for start in range(effort.blocks)]
        tried = {size: _seconds(partial(_piped, [pipes[tasks[-1]]], size), blocks[0]) for size in BATCHES}
        best = min(tried, key=lambda size: tried[size])
        ways = {
            "ours": partial(_tagged, tagger),
            "ours_one_task": partial(_tagged, alone),
            "pipelines": partial(_piped, list(pipes.values()), best),
            "pipeline": partial(_piped, [pipes[tasks[-1]]], best),
            "pipeline_at_our_batch": partial(_piped, [pipes[tasks[-1]]], OURS),
            "pipeline_sorted_by_hand": lambda given: _piped([pipes[tasks[-1]]], OURS, sorted(given, key=len)),
        }
        speeds = _in_turns(ways, blocks)
        waits = _waits(
            {name: ways[name] for name in ("ours", "ours_one_task")}
            | {
                "pipelines": partial(_piped, list(pipes.values()), 1),
                "pipeline": partial(_piped, [pipes[tasks[-1]]], 1),
            },
            sentences[: effort.single],
        )
        return {
            "tasks": tasks,
            "one_task": tasks[-1],
            "words": sum(map(len, sentences)),
            "same_labels": agreement(alone, pipes[tasks[-1]], blocks[0]),
            "pipeline_seconds_by_batch": {size: round(seconds, 2) for size, seconds in tried.items()},
            "best_batch": best,
            "words_per_s": {name: round(median(own)) for name, own in speeds.items()},
            "sentence_ms": {name: round(1000 * median(own), 1) for name, own in waits.items()},
            "ratios": {
                "one_task_over_best": _ratio(speeds["ours_one_task"], speeds["pipeline"]),
                "one_task_at_equal_batch": _ratio(speeds["ours_one_task"], speeds["pipeline_at_our_batch"]),
                "one_task_over_sorted": _ratio(speeds["ours_one_task"], speeds["pipeline_sorted_by_hand"]),
                "all_tasks_over_best": _ratio(speeds["ours"], speeds["pipelines"]),
                "sentence_one_task": _ratio(waits["pipeline"], waits["ours_one_task"]),
                "sentence_all_tasks": _ratio(waits["pipelines"], waits["ours"]),
            },
        }


def trained(config: RunConfig, steps: int, folder: Path) -> SavedTagger:
    """The tagger of a run of so many steps: enough for it to find most words no part of a span."""
    job = make_job(config, steps)
    few = replace(job.corpus, train=tuple(one for batch in job.sentences for one in batch))
    os.environ["MRNLAB_HOME"] = str(folder)  # encoded text is cached there
    checkpoint = Checkpoint(folder / "checkpoint")
    train(config.with_(epochs=1), few, sink=lambda _event: None, checkpoint=checkpoint)
    tagger = load_tagger(checkpoint.folder)
    assert isinstance(tagger, SavedTagger)
    return tagger


def one_task(tagger: SavedTagger, task: str) -> SavedTagger:
    """The same tagger with that task alone, as an STL run has it."""
    place = list(tagger.labels).index(task)
    rows = tagger.model.heads.slices[place]
    heads = Heads(tagger.model.encoder.features, [rows.stop - rows.start], init="zeros", dropout=0.0)
    heads.weight = nn.Parameter(tagger.model.heads.weight[rows].detach().clone())
    heads.bias = nn.Parameter(tagger.model.heads.bias[rows].detach().clone())
    described = {"name": task, "scheme": tagger.schemes[task], "labels": tagger.labels[task]}
    return SavedTagger(
        tagger.config, [described], MultiTaskTagger(tagger.model.encoder, heads).eval(), tagger.tokenizer
    )


def agreement(tagger: SavedTagger, pipe: Any, sentences: Sequence[Words]) -> float:
    """The share of words that both give the same label."""
    same = words = 0
    answers = pipe([list(one) for one in sentences], is_split_into_words=True, ignore_labels=[])
    for ours, theirs in zip(tagger.tag(sentences, top=1), answers, strict=True):
        (tags,) = ours.tags.values()
        starts = np.cumsum([0, *(len(word) + 1 for word in ours.tokens[:-1])]).tolist()
        labels = {one["start"]: one["entity"] for one in reversed(theirs)}
        same += sum(labels[start] == tag.label for start, tag in zip(starts, tags, strict=True))
        words += len(tags)
    return same / words


def _drawn(config: RunConfig, number: int) -> list[Words]:
    test = prepare(config).test
    order = np.random.default_rng(0).permutation(len(test))[:number]
    return [test[place].tokens for place in order]


def _tagged(tagger: SavedTagger, sentences: Sequence[Words]) -> None:
    for _ in tag_in_parts([tagger], sentences):
        pass


def _piped(pipes: Sequence[Any], size: int, sentences: Sequence[Words]) -> None:
    """Raw answers of subwords, `O` left out: what costs a pipeline least."""
    for pipe in pipes:
        pipe([list(one) for one in sentences], is_split_into_words=True, batch_size=size)


def _seconds(way: Callable[[Sequence[Words]], None], sentences: Sequence[Words]) -> float:
    began = time.perf_counter()
    way(sentences)
    return time.perf_counter() - began


def _in_turns(
    ways: Mapping[str, Callable[[Sequence[Words]], None]], blocks: Sequence[Sequence[Words]]
) -> dict[str, list[float]]:
    """Words a second of each way on each block; who comes first changes."""
    speeds: dict[str, list[float]] = {name: [] for name in ways}
    for way in ways.values():
        way(blocks[0][:8])
    for turn, block in enumerate(blocks):
        names = list(ways)
        for name in names[turn % len(names) :] + names[: turn % len(names)]:
            speeds[name].append(sum(map(len, block)) / _seconds(ways[name], block))
    return speeds


def _waits(
    ways: Mapping[str, Callable[[Sequence[Words]], None]], sentences: Sequence[Words]
) -> dict[str, list[float]]:
    """Seconds of each sentence alone, by each way."""
    waits: dict[str, list[float]] = {name: [] for name in ways}
    for sentence in sentences:
        for name, way in ways.items():
            waits[name].append(_seconds(way, [sentence]))
    return waits


def _ratio(ours: Sequence[float], theirs: Sequence[float]) -> dict[str, Any]:
    lower, middle, upper = np.quantile(np.divide(ours, theirs), [0.25, 0.5, 0.75]).tolist()
    return {"median": round(middle, 3), "quartiles": [round(lower, 3), round(upper, 3)]}
