"""How long a sentence takes to tag once models are loaded: by one run, by eight over one frozen encoder, by
eight with an encoder each.

    python -m tests.benchmarks.tagging

Milliseconds of one processor core (CPU time), which other work on the machine does not lengthen much, and by
the clock; medians. The heads are untrained: labels do not matter here. The last line is JSON.

`tests.benchmarks.training` measures tagging beside `transformers.pipeline("token-classification")` with
`beside_pipeline`.
"""

from __future__ import annotations

import statistics
import time
from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import torch
from torch import nn

from core.checkpoints import Checkpoint
from core.config import RunConfig
from core.corpora import prepare
from core.encoding.tokenizer import load_tokenizer
from core.models.encoders import Encoder, load_transformer, shared_transformer
from core.models.model_io import SavedTagger, save_task_folders
from core.models.sources import locate
from core.models.tagger import Heads, MultiTaskTagger
from core.tagging import load_tagger, tag_in_parts
from core.training.trainer import train
from tests.benchmarks._harness import alternate, arguments, laboratory, ratio, spread, tell
from tests.benchmarks._loops import Job, quiet

__all__ = ["Effort", "beside_pipeline"]

_RUNS, _SENTENCES = 8, 60

Words = Sequence[str]


@dataclass(frozen=True)
class Effort:
    """How much is tagged: blocks of so many sentences, and the pipeline's batch sizes to choose from."""

    blocks: int = 5
    sentences: int = 128
    batches: tuple[int, ...] = (1, 4, 8, 16, 32, 64)


def beside_pipeline(job: Job, effort: Effort) -> dict[str, Any]:
    """Figures of each way to tag, turn by turn, and ratios of words a second, ours first.

    The pipelines have the same weights: a run of the job's steps, saved as a folder per task. A pipeline
    answers for one task, so three tasks take three of them; the fair comparison is one task on both sides.
    Both compute on the processor, as the laboratory's pages do.
    """
    from transformers import pipeline

    with laboratory() as home:
        tagger = _trained(job, home / "checkpoint")
        tasks = tuple(tagger.labels)
        folders = {task: home / task for task in tasks}
        quiet()
        if because := save_task_folders(tagger, folders, {}):
            raise ValueError(because)
        pipes = [
            pipeline("token-classification", model=str(folder), device=-1, dtype=torch.float32)
            for folder in folders.values()
        ]
        alone, pipe = _one_task(tagger, tasks[-1]), pipes[-1]
        test = prepare(job.config).test
        drawn = np.random.default_rng(0).permutation(len(test))[: effort.blocks * effort.sentences]
        sentences = [test[place].tokens for place in drawn]
        blocks = [sentences[start :: effort.blocks] for start in range(effort.blocks)]
        tried = {size: 1 / _speed(partial(_piped, [pipe], size), blocks[0]) for size in effort.batches}
        best = min(tried, key=lambda size: tried[size])
        ways = {
            "ours": partial(_tagged, tagger),
            "ours_one_task": partial(_tagged, alone),
            "pipelines": partial(_piped, pipes, best),
            "pipeline": partial(_piped, [pipe], best),
        }
        for way in ways.values():
            way(blocks[0][:8])
        speeds = alternate({name: partial(_speed, way) for name, way in ways.items()}, blocks)
        return {
            "tasks": tasks,
            "one_task": tasks[-1],
            "words": sum(map(len, sentences)),
            "same_labels": _agreement(alone, pipe, blocks[0]),
            "pipeline_ms_a_word_by_batch": {size: round(1000 * s, 2) for size, s in tried.items()},
            "best_batch": best,
            "words_per_s": {name: spread(own, 0)["median"] for name, own in speeds.items()},
            "ratios": {
                "one_task_over_best": ratio(speeds["ours_one_task"], speeds["pipeline"]),
                "all_tasks_over_best": ratio(speeds["ours"], speeds["pipelines"]),
            },
        }


def _trained(job: Job, folder: Path) -> SavedTagger:
    """The tagger of a run of a few steps: enough for it to find most words no part of a span."""
    few = replace(job.corpus, train=tuple(job.flat[: 20 * job.config.batch_size]))
    checkpoint = Checkpoint(folder)
    train(job.config.with_(epochs=1), few, sink=lambda _event: None, checkpoint=checkpoint)
    tagger = load_tagger(checkpoint.folder)
    assert isinstance(tagger, SavedTagger)
    return tagger


def _one_task(tagger: SavedTagger, task: str) -> SavedTagger:
    """The same tagger with that task alone, as an STL run has it."""
    rows = tagger.model.heads.slices[list(tagger.labels).index(task)]
    heads = Heads(tagger.model.encoder.features, [rows.stop - rows.start], init="zeros", dropout=0.0)
    heads.weight = nn.Parameter(tagger.model.heads.weight[rows].detach().clone())
    heads.bias = nn.Parameter(tagger.model.heads.bias[rows].detach().clone())
    described = {"name": task, "scheme": tagger.schemes[task], "labels": tagger.labels[task]}
    model = MultiTaskTagger(tagger.model.encoder, heads).eval()
    return SavedTagger(tagger.config, [described], model, tagger.tokenizer)


def _agreement(tagger: SavedTagger, pipe: Any, sentences: Sequence[Words]) -> float:
    """The share of words that both give the same label."""
    same = []
    answers = pipe([list(words) for words in sentences], is_split_into_words=True, ignore_labels=[])
    for ours, theirs in zip(tagger.tag(sentences, top=1), answers, strict=True):
        (tags,) = ours.tags.values()
        starts = np.cumsum([0, *(len(word) + 1 for word in ours.tokens[:-1])]).tolist()
        labels = {subword["start"]: subword["entity"] for subword in reversed(theirs)}
        same += [labels[start] == tag.label for start, tag in zip(starts, tags, strict=True)]
    return sum(same) / len(same)


def _tagged(tagger: SavedTagger, sentences: Sequence[Words]) -> None:
    for _ in tag_in_parts([tagger], sentences):
        pass


def _piped(pipes: Sequence[Any], size: int, sentences: Sequence[Words]) -> None:
    """Raw answers of subwords, `O` left out: what costs a pipeline least."""
    for pipe in pipes:
        pipe([list(words) for words in sentences], is_split_into_words=True, batch_size=size)


def _speed(way: Any, sentences: Sequence[Words]) -> float:
    """Words a second."""
    began = time.perf_counter()
    way(sentences)
    return sum(map(len, sentences)) / (time.perf_counter() - began)


def _times(taggers: Sequence[SavedTagger], sentences: Sequence[Words]) -> dict[str, float]:
    """Median milliseconds of CPU and by the clock; every sentence is new to them but the first."""
    computed, waited = [], []
    for place, sentence in enumerate([sentences[0], *sentences]):
        cpu, clock = time.process_time(), time.perf_counter()
        for tagger in taggers:
            tagger.tag([sentence], top=5)
        if place:
            computed.append(1000 * (time.process_time() - cpu))
            waited.append(1000 * (time.perf_counter() - clock))
    return {"cpu_ms": round(statistics.median(computed), 2), "ms": round(statistics.median(waited), 2)}


def main() -> None:
    asked = arguments(__doc__).parse_args()
    runs, number = (2, 3) if asked.quick else (_RUNS, _SENTENCES)
    torch.set_num_threads(1)
    tasks = ("pos", "chunk", "ner")
    config = RunConfig.build(corpus="demo", tasks=tasks, paradigm="mtl", encoder_training="frozen")
    corpus = prepare(config)
    sentences = [sentence.tokens for sentence in corpus.test[:number]]
    described = [{"name": t.name, "scheme": t.scheme, "labels": t.labels} for t in corpus.tasks]
    tokenizer = load_tokenizer(locate(config.encoder))

    def tagger(encoder: Encoder) -> SavedTagger:
        heads = Heads(encoder.features, [len(t.labels) for t in corpus.tasks], init="zeros", dropout=0.0)
        return SavedTagger(config, described, MultiTaskTagger(encoder, heads).eval(), tokenizer)

    apart = [tagger(load_transformer(config.encoder, half=False).eval()) for _ in range(runs)]
    shared = [tagger(shared_transformer(config.encoder)) for _ in range(runs)]
    tell(
        {
            "runs": runs,
            "words": round(statistics.mean(map(len, sentences)), 1),
            "one_run": _times(apart[:1], sentences),
            "one_frozen_encoder": _times(shared, sentences),
            "an_encoder_each": _times(apart, sentences),
        }
    )


if __name__ == "__main__":
    main()
