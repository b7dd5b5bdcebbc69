"""What a run cannot train is refused before it is queued, and nothing that it can train."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from itertools import product
from pathlib import Path
from typing import Any

import pytest

from core.config import RunConfig
from core.corpora import Corpus
from core.errors import ConfigError, NothingToLearn
from core.store import RunState, Store
from core.training import setup
from core.training.trainable import check_trainable
from jobs.queue.submit import check, submit
from jobs.worker.loop import Worker
from tests.making import OWNER, NoWorkers, facts_of
from tests.pages.text_store import text_config, text_folders
from tests.toys import config, text_corpus

_TASKS = (("alike",), ("same",), ("alike", "same"), ("mood", "same"), ("pos", "alike"), ("pos", "mood"))
_FIELDS: dict[str, tuple[Any, ...]] = {
    "paradigm": ("stl", "mtl", "mrn"),
    "encoder_training": ("full", "frozen"),
    "pair_encoding": ("apart", "together"),
    "pair_heads": ("own", "shared"),
    "heads": (None, "shared"),
}


def _configs(encoder: str) -> Iterator[RunConfig]:
    for tasks, *values in product(_TASKS, *_FIELDS.values()):
        changes = {name: value for name, value in zip(_FIELDS, values, strict=True) if value is not None}
        for over in (encoder, f"{encoder}+bilstm", "bilstm"):
            with contextlib.suppress(ConfigError):  # no run at all
                size = {} if over == encoder else {"bilstm_hidden": 2}
                yield config(over, tasks=tasks, lr_encoder=None, **size, **changes)


def test_what_has_no_weight_is_refused_and_nothing_else(
    encoder: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(setup, "check_trainable", lambda *_: None)
    corpora: dict[tuple[str, ...], Corpus] = {tasks: text_corpus(4, tasks) for tasks in _TASKS}
    weightless = 0
    for run in _configs(encoder):
        corpus = corpora[run.tasks]
        try:
            check_trainable(run, corpus.tasks)
        except NothingToLearn:
            assert setup.set_up(run, corpus).facts.trained_parameters == 0, run
            weightless += 1
        except ConfigError:
            continue
        else:
            assert setup.set_up(run, corpus).facts.trained_parameters not in (0, None), run
    assert weightless


@pytest.fixture
def corpus(tmp_path: Path) -> str:
    return text_folders(tmp_path)


@pytest.mark.parametrize(
    ("changes", "field", "says"),
    [
        (
            {"tasks": "alike", "paradigm": "stl", "encoder_training": "frozen"},
            "encoder_training",
            "a run of alike has nothing to learn",
        ),
        ({"tasks": "same,alike", "paradigm": "mrn"}, "paradigm", r"read apart \(same, alike\)"),
        ({"encoder": "bilstm", "pair_encoding": "together"}, "pair_encoding", "must be apart"),
        ({"encoder": "bilstm", "context_encoder": "minilm"}, "context_encoder", "must be left unset"),
        ({"heads": "shared"}, "heads", "must be own"),
    ],
)
def test_it_is_refused_before_it_is_queued(
    store: Store, corpus: str, changes: dict[str, Any], field: str, says: str
) -> None:
    good = text_config(corpus)
    with pytest.raises(ConfigError, match=says) as refused:
        submit(store, [good, text_config(corpus, **changes)], engine=NoWorkers())
    assert refused.value.field == field
    assert store.runs() == []
    check([good])


@pytest.mark.parametrize("pair_encoding", ["apart", "together"])
def test_a_task_with_one_label_trains_and_a_note_says_what_its_score_is(
    store: Store, encoder: str, tmp_path: Path, pair_encoding: str
) -> None:
    folder = tmp_path / "agree"
    folder.mkdir()
    for split in ("train", "dev", "test"):
        rows = (f"Text {number} .\tIts other half .\tyes" for number in range(8))
        (folder / f"{split}.tsv").write_text("\n".join(["text1\ttext2\tlabel", *rows, ""]))
    run = text_config(
        str(folder), tasks="agree", paradigm="stl", encoder=encoder, max_length=32, epochs=1,
        pair_encoding=pair_encoding,
    )  # fmt: skip
    note = (
        "agree has one label (yes): there is nothing to tell apart, and its accuracy is 100% by construction."
    )
    assert note in check([run])
    assert submit(store, [run], engine=NoWorkers()) == ([1], [])
    Worker(store, OWNER, log_to=lambda _path: contextlib.nullcontext()).train_next()
    trained = store.run(1)
    assert (trained.error, trained.state) == (None, RunState.SUCCEEDED)
    assert note in facts_of(trained).notes
    assert {score.score for score in store.scores([trained.id])} == {1.0}
