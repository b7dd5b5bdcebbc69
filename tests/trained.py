"""Runs that are really trained, on a tiny encoder and a toy corpus: a second each."""

from __future__ import annotations

import contextlib
import shutil
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TypeVar
from unittest.mock import patch

import numpy as np
import pytest
from filelock import FileLock

from core.checkpoints import Checkpoint
from core.config import RunConfig
from core.corpora.types import Corpus
from core.events import Event, RunFacts, SplitResult
from core.store import RunState, Store
from core.store.types import Owner
from core.tagging import TaggedSentence, labels_of, load_tagger
from core.training.trainer import Outcome, train
from jobs.worker.loop import Worker
from tests.making import OWNER, corpus_folder
from tests.tiny import tiny_bert
from tests.toys import NER, POS, TEXT_TASKS, WORDS, sentences, texts

Kind = TypeVar("Kind")
_SPLITS = (("train", 64), ("dev", 10), ("test", 12))
LEARNED = {"epochs": 9, "lr_encoder": 0.01, "lr_heads": 0.05, "batch_size": 8}
UNTAUGHT = {"epochs": 1, "lr_encoder": 1e-6, "lr_heads": 1e-6}


def toy_corpus(folder: Path) -> Path:
    """Sentences of nine words that each have one label per task; `German lamb` is one span."""
    labels = dict(zip(WORDS, zip(POS, NER, strict=True), strict=True))
    random = np.random.default_rng(5)
    files = {}
    for split, number in _SPLITS:
        sentences = []
        for _ in range(number):
            words = ["German", "lamb", *random.choice(WORDS, int(random.integers(2, 7))), "."]
            rows, before = [], ""
            for word in words:
                pos, ner = labels[word]
                rows.append(f"{word} {pos} {'I-MISC' if (before, word) == ('German', 'lamb') else ner}")
                before = word
            sentences.append("\n".join(rows))
        files[f"{split}.conll"] = "\n\n".join(sentences) + "\n"
    return Path(corpus_folder(folder, files))


def toy_config(home: Path, **values: Any) -> RunConfig:
    """A run on the toy corpus over a tiny encoder of its own laboratory. Both are made at first use."""
    encoder = _tiny_encoder(home, "toy", toy_corpus)
    data = {"corpus": str(home / "toy"), "columns": "tokens,pos,ner", "tasks": "pos,ner"}
    return RunConfig.build(**(encoder | LEARNED | data | values))


def _tiny_encoder(home: Path, corpus: str, make: Callable[[Path], object]) -> dict[str, Any]:
    """The encoder of runs of MTL on that corpus; both are made at first use."""
    if not (home / corpus).exists():
        make(home / corpus)
        tiny_bert(home / "encoder")
    return {"encoder": str(home / "encoder"), "paradigm": "mtl", "max_length": 32}


def text_corpora(folder: Path) -> None:
    """A corpus of words (`ner`), of texts (`mood`) and two of pairs (`same`, `alike`), a folder each."""
    files: dict[str, dict[str, str]] = {name: {} for name in ("words", *TEXT_TASKS)}
    for split, number in _SPLITS:
        files["words"][f"{split}.conll"] = "\n\n".join(
            "\n".join(f"{word} {label}" for word, label in zip(made.tokens, made.labels["ner"], strict=True))
            for made in sentences(number, number, ("ner",))
        )
        for task in TEXT_TASKS:
            rows = [made for made in texts(number, number) if task in made.labels]
            names = ("text1", "text2") if rows[0].second else ("text",)
            lines = ["\t".join([*names, "score" if task == "alike" else "label"])]
            for made in rows:
                both = filter(None, (made.tokens, made.second))
                lines.append("\t".join([*map(" ".join, both), *made.labels[task]]))
            files[task][f"{split}.tsv"] = "\n".join([*lines, ""])
    for name, of_corpus in files.items():
        corpus_folder(folder / name, of_corpus)


def text_config(home: Path, **values: Any) -> RunConfig:
    """A run on the tasks of `text_corpora` over a tiny encoder, which reads a pair at once."""
    encoder = _tiny_encoder(home, "texts", text_corpora) | {"pair_encoding": "together", "dropout": 0.0}
    corpora = "+".join(str(home / "texts" / part) for part in ("words", *TEXT_TASKS))
    data = {"corpus": f"joined:{corpora}", "tasks": ",".join(("ner", *TEXT_TASKS))}
    return RunConfig.build(**(encoder | LEARNED | data | values))


def train_runs(
    store: Store,
    configs: Sequence[RunConfig],
    sweep: str = "toy",
    *,
    threads: int | None = None,
    owner: Owner = OWNER,
    **options: Any,
) -> list[int]:
    """Trains them one after another in this process, by a worker with these options, on so many threads."""
    ids = store.add_runs(configs, sweep=sweep, threads=[threads] * len(configs))
    worker = Worker(store, owner, log_to=lambda _path: contextlib.nullcontext(), **options)
    with patch("jobs.worker.loop.release_memory"):  # a full collection each time, and these models are tiny
        for _ in ids:
            worker.train_next()
    for run in store.runs(ids):
        assert run.state is RunState.SUCCEEDED, run.error
    return ids


def copy_taggers(shared_folder: Path, laboratory: Path) -> None:
    """Copies the runs of `tagger_configs`, which the testing process that comes first trains."""
    _copy_trained(shared_folder / "taggers", laboratory, tagger_configs)


def tagger_configs(home: Path) -> list[RunConfig]:
    """Four runs: 1 learns its corpus, 2 does not; 3 and 4 are STL."""
    return [
        toy_config(home),
        toy_config(home, **UNTAUGHT),
        *(toy_config(home, paradigm="stl", tasks=task) for task in ("pos", "ner")),
    ]


def copy_text_taggers(shared_folder: Path, laboratory: Path) -> None:
    """Copies the runs of `text_tagger_configs`, as `copy_taggers`."""
    _copy_trained(shared_folder / "text-taggers", laboratory, text_tagger_configs)


def text_tagger_configs(home: Path) -> list[RunConfig]:
    """Four runs: 1 learns the tasks of `text_corpora`, 2 does not; 3 has the tasks on pairs, read apart, and
    4 the one on texts.
    """
    return [
        text_config(home),
        text_config(home, **UNTAUGHT),
        text_config(home, tasks="same,alike", pair_encoding="apart"),
        text_config(home, tasks="mood", paradigm="stl"),
    ]


def copy_intent_taggers(shared_folder: Path, laboratory: Path) -> None:
    """Copies two runs: run 1 labels words (`pos`) and sentences (`intent`), run 2 sentences alone."""
    _copy_trained(
        shared_folder / "intent-taggers",
        laboratory,
        lambda home: [intent_config(home), intent_config(home, tasks="intent", paradigm="stl")],
    )


def intent_config(home: Path, **values: Any) -> RunConfig:
    """A run on words and sentences over a tiny encoder: a sentence that begins with `EU` asks."""
    encoder = _tiny_encoder(home, "intents", _intent_corpus) | {"dropout": 0.0}
    data = {"corpus": str(home / "intents"), "columns": "tokens,pos", "tasks": "pos,intent"}
    return RunConfig.build(**(encoder | LEARNED | data | {"epochs": 20} | values))


def _intent_corpus(folder: Path) -> None:
    files = {}
    for split, number in _SPLITS:
        rows = []
        for made in sentences(number, number, ("pos",)):
            intent = "ask" if made.tokens[0] in WORDS[:4] else "say"
            lines = map(" ".join, zip(made.tokens, made.labels["pos"], strict=True))
            rows.append("\n".join([f"# intent: {intent}", *lines]))
        files[f"{split}.conll"] = "\n\n".join(rows) + "\n"
    corpus_folder(folder, files)


def _copy_trained(home: Path, laboratory: Path, configs: Callable[[Path], list[RunConfig]]) -> None:
    with FileLock(home.with_suffix(".lock")), pytest.MonkeyPatch.context() as patch:
        if not (home / "trained").exists():
            patch.setenv("MRNLAB_HOME", str(home))
            patch.delenv("MRNLAB_DB", raising=False)
            home.mkdir()
            with contextlib.closing(Store.open()) as store:
                train_runs(store, configs(home))
            (home / "trained").touch()
    shutil.copytree(home, laboratory, dirs_exist_ok=True)


@dataclass(frozen=True)
class ToyRun:
    """A training's events, how it ended, and the folder of its model."""

    checkpoint: Path
    events: list[Event]
    outcome: Outcome

    def of(self, kind: type[Kind]) -> list[Kind]:
        """The events of that kind."""
        return [event for event in self.events if isinstance(event, kind)]

    @property
    def facts(self) -> RunFacts:
        (facts,) = self.of(RunFacts)
        return facts

    @property
    def test(self) -> SplitResult:
        (result,) = (result for result in self.of(SplitResult) if result.split == "test")
        return result


def train_toy(config: RunConfig, corpus: Corpus, folder: Path) -> ToyRun:
    """Trains it into that folder, which its checkpoint then is."""
    events: list[Event] = []
    outcome = train(config, corpus, sink=events.append, checkpoint=Checkpoint(folder))
    return ToyRun(folder, events, outcome)


def assert_tags_as_tested(run: ToyRun, corpus: Corpus) -> list[TaggedSentence]:
    """The saved model gives the test sentences the labels that the run gave them; what it says of them."""
    tagged = load_tagger(run.checkpoint).tag([sentence.tokens for sentence in corpus.test])
    for task, labels in run.test.predictions.items():
        assert [labels_of(sentence, task) for sentence in tagged] == [
            list(of_sentence) for of_sentence in labels
        ]
    return tagged
