"""How long a sentence takes to tag once models are loaded: by one run, by eight over one frozen encoder, by
eight with an encoder each.

    python -m tests.benchmarks.tagging

Median milliseconds of processor time on one core, and of wall-clock time. The heads are untrained: labels do
not matter here. The last line is JSON. `tests.benchmarks.training` compares tagging with
`transformers.pipeline("token-classification")` by `beside_pipeline`.
"""

from __future__ import annotations

import statistics
import time
from collections.abc import Callable, Sequence
from dataclasses import replace
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
from core.models.encoders import Encoder
from core.models.encoders.frozen import shared_transformer
from core.models.encoders.transformer import load_transformer
from core.models.saved_tagger import SavedTagger
from core.models.sources import locate
from core.models.tagger import Heads, MultiTaskTagger
from core.models.task_folders import save_task_folders
from core.tagging import load_tagger, tag_in_parts
from core.training.trainer import train
from tests.benchmarks._harness import (
    alternate,
    arguments,
    laboratory,
    milliseconds,
    print_json,
    ratio,
    spread,
)
from tests.benchmarks._loops import Job, disable_logging

Words = Sequence[str]


def beside_pipeline(job: Job) -> dict[str, Any]:
    """Words a second of each way to tag, in turns, and their ratios to the pipelines'.

    The pipelines have the same weights: a run of the job's steps, saved as a folder per task. A pipeline has
    one task, so the fair comparison is one task on both sides. Both compute on the CPU, as the pages do.
    """
    from transformers import pipeline

    rounds, per_round, sizes = (1, 4, (1, 4)) if job.quick else (5, 128, (1, 4, 8, 16, 32, 64))
    with laboratory() as home:
        tagger = _train(job, home / "checkpoint")
        tasks = tuple(tagger.labels)
        folders = {task: home / task for task in tasks}
        disable_logging()
        reason = save_task_folders(tagger, folders, {})
        assert reason is None, reason
        pipes = [
            pipeline("token-classification", model=str(folder), device=-1, dtype=torch.float32)
            for folder in folders.values()
        ]
        test = prepare(job.config).test
        drawn = np.random.default_rng(0).permutation(len(test))[: rounds * per_round]
        sentences = [test[index].tokens for index in drawn]
        parts = [sentences[start::rounds] for start in range(rounds)]
        single, pipe = _one_task(tagger, tasks[-1]), pipes[-1:]
        by_size = {size: _words_per_s(partial(_use_pipelines, pipe, size), parts[0]) for size in sizes}
        best = max(sizes, key=by_size.__getitem__)
        ways: dict[str, Callable[[Sequence[Words]], None]] = {
            "ours": partial(_use_tagger, tagger),
            "ours_one_task": partial(_use_tagger, single),
            "pipelines": partial(_use_pipelines, pipes, best),
            "pipeline": partial(_use_pipelines, pipe, best),
        }
        for way in ways.values():
            way(parts[0][:8])
        speeds = alternate({name: partial(_words_per_s, way) for name, way in ways.items()}, parts)
        return {
            "tasks": tasks,
            "one_task": tasks[-1],
            "words": sum(map(len, sentences)),
            "same_labels": _agreement(single, pipe[0], parts[0]),
            "pipeline_words_per_s_by_batch": {size: round(speed) for size, speed in by_size.items()},
            "best_batch": best,
            "words_per_s": {name: spread(values, 0)["median"] for name, values in speeds.items()},
            "ratios": {
                "one_task_over_best": ratio(speeds["ours_one_task"], speeds["pipeline"]),
                "all_tasks_over_best": ratio(speeds["ours"], speeds["pipelines"]),
            },
        }


def _train(job: Job, folder: Path) -> SavedTagger:
    """Train so few steps that most words are outside spans, as in text."""
    few = replace(job.corpus, train=tuple(job.sentences[: 20 * job.config.batch_size]))
    checkpoint = Checkpoint(folder)
    train(job.config.with_(epochs=1), few, sink=lambda _event: None, checkpoint=checkpoint)
    tagger = load_tagger(checkpoint.folder)
    assert isinstance(tagger, SavedTagger)
    return tagger


def _one_task(tagger: SavedTagger, task: str) -> SavedTagger:
    """The same tagger with that task only, like an STL run's."""
    rows = tagger.model.heads.slices[list(tagger.labels).index(task)]
    heads = Heads(tagger.model.encoder.features, [rows.stop - rows.start], init="zeros", dropout=0.0)
    heads.weight = nn.Parameter(tagger.model.heads.weight[rows].detach().clone())
    heads.bias = nn.Parameter(tagger.model.heads.bias[rows].detach().clone())
    description = {"name": task, "scheme": tagger.schemes[task], "labels": tagger.labels[task]}
    model = MultiTaskTagger(tagger.model.encoder, heads).eval()
    return SavedTagger(tagger.config, [description], model, tagger.tokenizer)


def _agreement(tagger: SavedTagger, pipe: Any, sentences: Sequence[Words]) -> float:
    """The fraction of words that both label alike."""
    same: list[bool] = []
    answers = pipe([list(words) for words in sentences], is_split_into_words=True, ignore_labels=[])
    for ours, theirs in zip(tagger.tag(sentences, top=1), answers, strict=True):
        (tags,) = ours.tags.values()
        starts = np.cumsum([0, *(len(word) + 1 for word in ours.tokens[:-1])]).tolist()
        labels = {subword["start"]: subword["entity"] for subword in reversed(theirs)}
        same += [labels[start] == tag.label for start, tag in zip(starts, tags, strict=True)]
    return sum(same) / len(same)


def _use_tagger(tagger: SavedTagger, sentences: Sequence[Words]) -> None:
    for _ in tag_in_parts([tagger], sentences):
        pass


def _use_pipelines(pipes: Sequence[Any], size: int, sentences: Sequence[Words]) -> None:
    """Raw subwords without `O`: the cheapest mode of a pipeline."""
    for pipe in pipes:
        pipe([list(words) for words in sentences], is_split_into_words=True, batch_size=size)


def _words_per_s(way: Callable[[Sequence[Words]], None], sentences: Sequence[Words]) -> float:
    (taken_ms,) = milliseconds(lambda: way(sentences))
    return 1000 * sum(map(len, sentences)) / taken_ms


def _times(taggers: Sequence[SavedTagger], sentences: Sequence[Words]) -> dict[str, float]:
    """Median milliseconds of a sentence; each sentence is new to the taggers, except the first."""
    cpu_ms, clock_ms = [], []
    for sentence in [sentences[0], *sentences]:
        cpu, clock = time.process_time(), time.perf_counter()
        for tagger in taggers:
            tagger.tag([sentence], top=5)
        cpu_ms.append(1000 * (time.process_time() - cpu))
        clock_ms.append(1000 * (time.perf_counter() - clock))
    return {name: round(statistics.median(ms[1:]), 2) for name, ms in (("cpu_ms", cpu_ms), ("ms", clock_ms))}


def main() -> None:
    runs, number = (2, 3) if arguments(__doc__).parse_args().quick else (8, 60)
    torch.set_num_threads(1)
    tasks = ("pos", "chunk", "ner")
    config = RunConfig.build(corpus="demo", tasks=tasks, paradigm="mtl", encoder_training="frozen")
    corpus = prepare(config)
    sentences = [sentence.tokens for sentence in corpus.test[:number]]
    descriptions = [{"name": t.name, "scheme": t.scheme, "labels": t.labels} for t in corpus.tasks]
    tokenizer = load_tokenizer(locate(config.encoder))

    def make_tagger(encoder: Encoder) -> SavedTagger:
        heads = Heads(encoder.features, [len(t.labels) for t in corpus.tasks], init="zeros", dropout=0.0)
        return SavedTagger(config, descriptions, MultiTaskTagger(encoder, heads).eval(), tokenizer)

    separate = [make_tagger(load_transformer(config.encoder, half=False).eval()) for _ in range(runs)]
    shared = [make_tagger(shared_transformer(config.encoder)) for _ in range(runs)]
    print_json(
        {
            "runs": runs,
            "words": round(statistics.mean(map(len, sentences)), 1),
            "one_run": _times(separate[:1], sentences),
            "one_frozen_encoder": _times(shared, sentences),
            "an_encoder_each": _times(separate, sentences),
        }
    )


if __name__ == "__main__":
    main()
