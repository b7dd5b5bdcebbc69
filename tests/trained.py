"""Runs that are really trained, on a tiny encoder and a toy corpus: a second each."""

from __future__ import annotations

import contextlib
import shutil
from collections.abc import Sequence
from pathlib import Path
from typing import Any
from unittest.mock import patch

import numpy as np
import pytest
from filelock import FileLock

from core.config import RunConfig
from core.store import RunState, Store
from jobs.worker.loop import Worker
from tests.making import OWNER
from tests.tiny import tiny_bert

__all__ = ["LEARNED", "UNTAUGHT", "copy_taggers", "toy_config", "toy_corpus", "train_runs"]

_WORDS = {
    "EU": ("N", "B-ORG"),
    "rejects": ("V", "O"),
    "German": ("J", "B-MISC"),
    "call": ("N", "O"),
    "to": ("T", "O"),
    "boycott": ("V", "O"),
    "British": ("J", "B-MISC"),
    "lamb": ("N", "O"),
    ".": (".", "O"),
}
LEARNED = {"epochs": 9, "lr_encoder": 0.01, "lr_heads": 0.05, "batch_size": 8}
UNTAUGHT = {"epochs": 1, "lr_encoder": 1e-6, "lr_heads": 1e-6}


def toy_corpus(folder: Path) -> Path:
    """Sentences of nine words that each have one label per task; `German lamb` is one span."""
    folder.mkdir(parents=True)
    random = np.random.default_rng(5)
    for split, number in (("train", 64), ("dev", 10), ("test", 12)):
        sentences = []
        for _ in range(number):
            words = ["German", "lamb", *random.choice(list(_WORDS), int(random.integers(2, 7))), "."]
            rows, before = [], ""
            for word in words:
                pos, ner = _WORDS[word]
                rows.append(f"{word} {pos} {'I-MISC' if (before, word) == ('German', 'lamb') else ner}")
                before = word
            sentences.append("\n".join(rows))
        (folder / f"{split}.conll").write_text("\n\n".join(sentences) + "\n")
    return folder


def toy_config(home: Path, **values: Any) -> RunConfig:
    """A run on the toy corpus over a tiny encoder of its own laboratory. Both are made at first use."""
    corpus, encoder = home / "toy", home / "encoder"
    if not corpus.exists():
        toy_corpus(corpus)
        tiny_bert(encoder)
    defaults = {
        "corpus": str(corpus),
        "columns": "tokens,pos,ner",
        "tasks": "pos,ner",
        "paradigm": "mtl",
        "encoder": str(encoder),
        "max_length": 32,
    }
    return RunConfig.build(**(defaults | LEARNED | values))


def train_runs(store: Store, configs: Sequence[RunConfig], sweep: str = "toy", **options: Any) -> list[int]:
    """Trains them one after another in this process, by a worker with these options."""
    ids = store.add_runs(configs, sweep=sweep)
    worker = Worker(store, OWNER, log_to=lambda _path: contextlib.nullcontext(), **options)
    with patch("jobs.worker.loop.release_memory"):  # a full collection each time, and these models are tiny
        for _ in ids:
            worker.train_next()
    for run in store.runs(ids):
        assert run.state is RunState.SUCCEEDED, run.error
    return ids


def copy_taggers(shared_folder: Path, laboratory: Path) -> None:
    """Copies four runs, which the testing process that comes first trains.

    Run 1 has learned its corpus, run 2 has not; 3 and 4 are the STL runs of one launch.
    """
    home = shared_folder / "taggers"
    with FileLock(home.with_suffix(".lock")), pytest.MonkeyPatch.context() as patch:
        if not (home / "trained").exists():
            patch.setenv("MRNLAB_HOME", str(home))
            patch.delenv("MRNLAB_DB", raising=False)
            home.mkdir()
            single = [toy_config(home, paradigm="stl", tasks=task) for task in ("pos", "ner")]
            with contextlib.closing(Store.open()) as store:
                train_runs(store, [toy_config(home), toy_config(home, **UNTAUGHT), *single])
            (home / "trained").touch()
    shutil.copytree(home, laboratory, dirs_exist_ok=True)
