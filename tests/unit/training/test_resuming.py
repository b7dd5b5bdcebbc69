"""A training that is cut off anywhere goes on exactly where it was: each number as if nothing had been."""

from __future__ import annotations

import json
import os
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from safetensors.torch import load_file, save_file

from core.checkpoints import Checkpoint
from core.checkpoints.sealed import opened, seal
from core.checkpoints.shared_storage import Artefacts
from core.errors import DataChanged
from core.events import Event, Note, Saved
from core.registry import GRADIENT_BALANCING
from tests.tiny import tiny_bert
from tests.toys import TEXT_TASKS, corpus, sentences, text_corpus
from tests.unit.cut_trainings import (
    STEPS,
    Cut,
    Laboratory,
    assert_same,
    cut_at,
    cut_at_every_state,
    files,
    toy,
)

KINDS: dict[str, dict[str, Any]] = {
    "mtl": {"dropout": 0.3},
    "frozen bilstm": {"encoder_training": "frozen", "bilstm_hidden": 8, "dropout": 0.3},
    "bf16": {"precision": "bf16", "seed": 3},
    "budget": {"batch_size": 16, "batch_tokens": 70, "dropout": 0.3},
    "bilstm by loss": {"bilstm_hidden": 8, "select_by": "loss", "lr_heads": 0.5, "seed": 4},
    "mrn": {"paradigm": "mrn", "update_every": 2},
    "published": {
        **{"paradigm": "mrn", "prior": "paper", "update_every": 2, "update_timing": "epoch_start"},
        **{"batching": "shuffled", "dropout": 0.3, "dropout_on": "logits", "select_by": "last"},
    },
    "in turn": {"corpus_order": "in_turn", "batching": "shuffled", "dropout": 0.3},
    "mrn once": {"paradigm": "mrn", "snapshots": 3, "update_every": 4, "dropout": 0.3},
    "mrn vanishing": {"paradigm": "mrn", "prior": "paper", "lambda": 1e-12, "update_every": 3},
    "drawn": {"draw_tasks": "by_size", "task_weights": (3.0, 1.0), "optimiser": "adadelta", "dropout": 0.3},
    "shared rows": {"heads": "shared", "dropout": 0.3},
    "patient": {"patience": 2, "optimiser": "sgd", "clip_norm": 0.5, "head": "crf", "dropout": 0.3},
    "words bilstm": {"encoder": "bilstm", "bilstm_hidden": 8, "lstm_layers": 2, "head": "crf_legal"},
    "words lstm-d": {
        "encoder": "lstm-d",
        "bilstm_hidden": 8,
        "task_order": "ner,pos",
        "draw_tasks": "uniform",
    },
    "words sc-lstm": {"encoder": "sc-lstm", "bilstm_hidden": 8, "paradigm": "mrn", "update_every": 2},
    "words context": {"encoder": "sc-lstm", "bilstm_hidden": 8, "head": "crf", "draw_tasks": "by_size"},
    "smoothed": {"draw_tasks": "smoothed:0.5"},
    "measured": {"paradigm": "mrn", "affinity_every": 3, "dropout": 0.3},
    "measured in turn": {"affinity_every": 2, "corpus_order": "in_turn", "dropout": 0.3},
    "top layers": {"encoder_training": "top:1", "dropout": 0.3},
    "top bilstm": {"encoder_training": "top:1", "bilstm_hidden": 8, "paradigm": "mrn", "update_every": 2},
    "uncertainty": {"balancing": "uncertainty", "dropout": 0.3},
    "dwa": {"balancing": "dwa", "epochs": 5, "batch_size": 16, "dropout": 0.3},
    "pcgrad": {"balancing": "pcgrad", "paradigm": "mrn", "update_every": 2, "dropout": 0.3},
    "upgrad bilstm": {
        "balancing": "upgrad",
        "encoder_training": "frozen",
        "bilstm_hidden": 8,
        "dropout": 0.3,
    },
    "cagrad": {"balancing": "cagrad", "encoder_training": "top:1", "dropout": 0.3},
    "gpu": {"device": "cuda", "paradigm": "mrn", "update_every": 2, "dropout": 0.3},
}


@pytest.fixture(scope="module")
def shallow(tmp_path_factory: pytest.TempPathFactory) -> str:
    """The folder of a tiny BERT of one layer, whose states are saved and read faster than those of two."""
    return str(tiny_bert(tmp_path_factory.mktemp("shallow"), layers=1))


@pytest.mark.parametrize("kind", KINDS)
def test_gone_on_from_every_state(encoder: str, shallow: str, tmp_path: Path, kind: str) -> None:
    """Every attempt goes on from the last one's state, saves its own after so many steps and is cut off."""
    if kind == "gpu" and not torch.cuda.is_available():
        pytest.skip("no GPU here")
    for package in GRADIENT_BALANCING.get(KINDS[kind].get("balancing", ""), ()):
        pytest.importorskip(package, reason="TorchJD is not installed: pip install 'mrnlab[balancing]'")
    if KINDS[kind].get("encoder_training") != "top:1":
        encoder = shallow
    every, cuts = (0, STEPS) if kind == "mrn" else (6, 2)
    context = {"context_encoder": encoder} if "context" in kind else {}
    config = toy(**{"encoder": encoder + "+bilstm" * ("bilstm" in kind)} | KINDS[kind] | context)
    steps = STEPS
    if config.draw_tasks != "together":  # an epoch has the batches of both tasks
        steps, every, cuts = 2 * STEPS, 9, 3
    _, outcome, times_cut = cut_at_every_state(config, corpus(), tmp_path, every)
    assert (outcome.steps, times_cut) == (steps, cuts)
    # Two states and their models at most, for all that was cut off.
    (states,) = (tmp_path / "pieces.states").iterdir()
    assert len(list(states.glob("step-*"))) == 2
    assert len(list(states.iterdir())) <= 4


TEXT_KINDS: dict[str, dict[str, Any]] = {
    "apart": {"pooling": "mean", "dropout": 0.3},
    "together": {"pair_encoding": "together", "paradigm": "mrn", "update_every": 2, "dropout": 0.3},
    "shared heads": {"pair_heads": "shared", "draw_tasks": "uniform", "dropout": 0.3},
    "top layers": {"encoder_training": "top:1", "pair_encoding": "together", "dropout": 0.3},
    "told the task": {"task_embedding": "projected", "dropout": 0.3},
    "words and texts": {"tasks": ("pos", "mood", "alike"), "task_embedding": "input", "weight_decay": 0.1},
    "told by all products": {"task_embedding": "attention", "dropout": 0.3},
    "told by two matrices": {"task_embedding": "elu", "dropout": 0.3},
}


@pytest.mark.parametrize("kind", TEXT_KINDS)
def test_runs_on_texts_and_with_task_embeddings_go_on_from_every_state(
    encoder: str, shallow: str, tmp_path: Path, kind: str
) -> None:
    if TEXT_KINDS[kind].get("encoder_training") != "top:1":
        encoder = shallow
    config = toy(encoder, **{"tasks": TEXT_TASKS} | TEXT_KINDS[kind])
    _, outcome, cuts = cut_at_every_state(config, text_corpus(24, config.tasks), tmp_path, every=9)
    assert outcome.best_epoch
    assert cuts > 1


PATIENT: dict[str, Any] = {
    **{"paradigm": "mrn", "epochs": 9, "patience": 1, "lr_encoder": 1e-12, "lr_heads": 1e-12},
}


@pytest.mark.parametrize("update_every", [None, 3, 5])
def test_a_run_that_patience_ends_is_ended_by_it_when_resumed(
    encoder: str, tmp_path: Path, update_every: int | None
) -> None:
    """Its last heads are learned from once, whether it ends at an update or before one."""
    config = toy(encoder, **PATIENT, update_every=update_every, snapshots=3)
    for every in (0, 5):
        _, outcome, _ = cut_at_every_state(config, corpus(), tmp_path / str(every), every=every)
        assert (outcome.steps, outcome.best_epoch) == (10, 1)


def test_a_run_that_patience_ends_at_an_update_does_not_update_again(encoder: str, tmp_path: Path) -> None:
    """The snapshot of its last step is the same, whether the step would have had one anyway or not."""
    last = []
    for snapshots in (3, 9):  # of nine updates: after each third, after each
        config = toy(encoder, **PATIENT, update_every=5, snapshots=snapshots)
        laboratory = Laboratory(config, tmp_path / str(snapshots), corpus())
        laboratory.attempt()
        last.append(laboratory.record.snapshots[10].relations)
    for mode in ("task", "label", "feature_factor", "feature_diagonal"):
        np.testing.assert_array_equal(*(getattr(relations, mode) for relations in last))


def test_a_stop_saves_where_it_is(shallow: str, tmp_path: Path) -> None:
    """Also in the middle of an epoch, and long before a state is due."""
    config = toy(shallow, dropout=0.3)
    whole = Laboratory(config, tmp_path / "whole", corpus())
    whole.attempt()
    pieces = Laboratory(config, tmp_path / "pieces", corpus(), every=1e9)
    stopped = pieces.attempt(stop_at=8)
    assert (stopped.stopped, stopped.best_epoch, stopped.steps) == (True, 1, 7)
    assert [(saved.step, saved.epoch) for saved in pieces.record.saved] == [(7, 1.4)]
    assert pieces.record.saved[0].size == sum(
        len(content)
        for name, content in files(tmp_path / "pieces.states" / "attempt-00001" / "step-00000007").items()
        if name != "manifest.json"
    )
    assert pieces.attempt().steps == STEPS
    assert pieces.record.notes == [Note("Resumed from step 7.")]
    assert_same(pieces, whole)


def stopped_at_7(encoder: str, folder: Path, **changes: Any) -> Laboratory:
    pieces = Laboratory(toy(encoder, **changes), folder / "pieces", corpus())
    assert pieces.attempt(stop_at=8).stopped
    return pieces


def test_a_stop_before_the_first_step_saves_nothing(shallow: str, tmp_path: Path) -> None:
    pieces = Laboratory(toy(shallow), tmp_path / "pieces", corpus())
    assert pieces.attempt(stop_at=1).steps == 0
    assert files(tmp_path / "pieces.states") == {}


@pytest.mark.parametrize("training", ["full", "top:1"])
@pytest.mark.parametrize("changed", ["data", "encoder"])
def test_changed_data_or_encoder_are_refused(tmp_path: Path, changed: str, training: str) -> None:
    """Rows of an encoder's vocabulary that never occur in the text are in its files alone, and so are the
    weights that are not trained.
    """
    encoder = tiny_bert(tmp_path / "encoder")
    pieces = stopped_at_7(str(encoder), tmp_path, encoder_training=training)
    if changed == "data":
        pieces.data = corpus(train=sentences(40, 9)[:36])
    else:
        weights = load_file(encoder / "model.safetensors")
        weights["embeddings.word_embeddings.weight"] += 0.01
        save_file(weights, encoder / "model.safetensors", metadata={"format": "pt"})
    said = {
        "data": "the number of train sentences: 40, now 36; the text of train; the labels of train",
        "encoder": "the encoder",
    }[changed]
    with pytest.raises(
        DataChanged, match=f"is not what it was when it was begun: {said}. Retry it"
    ) as refused:
        pieces.attempt()
    assert "; ".join(refused.value.changes) == said


def test_other_conditions_are_told(shallow: str, tmp_path: Path) -> None:
    pieces = stopped_at_7(shallow, tmp_path)
    pieces.config = toy(shallow, device="auto")  # the device may be another
    threads = torch.get_num_threads()
    state = tmp_path / "pieces.states" / "attempt-00001" / "step-00000007"
    rest = json.loads((state / "state.json").read_text())
    rest["conditions"] |= {"threads": "64", "torch": "2.0.0"}
    about = dict(opened(state).about)
    tensors = (state / "state.safetensors").read_bytes()

    def rewrite(folder: Path) -> None:
        (folder / "state.json").write_text(json.dumps(rest))
        (folder / "state.safetensors").write_bytes(tensors)

    seal(state, about, 0, rewrite)
    assert pieces.attempt().steps == STEPS
    assert (
        f"(threads 64, now {threads}; torch 2.0.0, now {torch.__version__})" in pieces.record.notes[1].message
    )


def test_another_machine_goes_on(shallow: str, tmp_path: Path) -> None:
    """Every attempt is on a machine with nothing on its disk: all that it has comes from the shared place."""
    config = toy(shallow)
    whole = Laboratory(config, tmp_path / "whole", corpus())
    whole.attempt()
    place = Artefacts(str(tmp_path / "shared"))
    pieces = Laboratory(config, tmp_path / "0" / "7", corpus(), every=4, shared=place)
    for machine in range(1, 20):
        try:
            pieces.attempt(cut_at(Saved))
            break
        except Cut:
            pieces.folder = tmp_path / str(machine) / "7"
    assert [note.message for note in pieces.record.notes] == [
        f"Resumed from step {step}." for step in (3, 6, 9, 12)
    ]
    assert_same(pieces, whole)
    assert place.names("models/") == ["models/7/attempt-00005"]
    assert place.pull("models/7/attempt-00005", tmp_path / "model")
    assert files(tmp_path / "model") == files(whole.folder)
    states = place.names("states/7/")
    assert [name for name in states if "step-" in name] == [
        "states/7/attempt-00003/step-00000009",
        "states/7/attempt-00004/step-00000012",
    ]
    Checkpoint(pieces.folder, attempt=5, shared=place).forget_states()
    assert place.names("states/") == []


@pytest.mark.parametrize("kept", ["here", "in the shared place"])
def test_states_of_a_version_without_attempts_are_resumed(shallow: str, tmp_path: Path, kept: str) -> None:
    """Their folders lay where those of the attempts lie now."""
    config = toy(shallow, dropout=0.3)
    whole = Laboratory(config, tmp_path / "whole", corpus())
    whole.attempt()
    shared = None if kept == "here" else Artefacts(str(tmp_path / "shared"))
    pieces = Laboratory(config, tmp_path / "here" / "7", corpus(), shared=shared)
    assert pieces.attempt(stop_at=8).stopped
    states = tmp_path / "here" / "7.states" if shared is None else tmp_path / "shared" / "states" / "7"
    for path in (states / "attempt-00001").iterdir():
        path.rename(states / path.name)
    (states / "attempt-00001").rmdir()
    if shared is not None:
        shutil.rmtree(tmp_path / "here")
    assert pieces.attempt().steps == STEPS
    assert Note("Resumed from step 7.") in pieces.record.notes
    assert_same(pieces, whole)
    assert [path.name for path in states.iterdir()] == ["attempt-00002"]


def test_a_shared_place_that_fails_does_not_end_a_training(shallow: str, tmp_path: Path) -> None:
    (tmp_path / "shared").write_text("no folder")
    pieces = Laboratory(
        toy(shallow, epochs=1), tmp_path / "7", corpus(), shared=Artefacts(str(tmp_path / "shared"))
    )
    assert pieces.attempt().steps == 5
    (note,) = pieces.record.notes
    assert note.message.endswith("Until this is fixed no other machine can resume this run.")


class Faults:
    """Cuts a process off at a write to the disk, or when it tells something, drawn anew for each attempt."""

    def __init__(self, seed: int, monkeypatch: pytest.MonkeyPatch) -> None:
        self.random = np.random.default_rng(seed)
        self.left = {"write": 0, "event": 0}
        for name in ("fsync", "rename", "mkdir"):
            monkeypatch.setattr(os, name, self.counting(getattr(os, name)))

    def draw(self) -> None:
        """Most often in the write of a state; four of them, or an epoch, are about as many."""
        write = self.random.random() < 0.7
        self.left = {"write": int(self.random.integers(1, 45)) if write else 10**6, "event": 10**6}
        if not write:
            self.left["event"] = int(self.random.integers(1, 30))

    def counting(self, call: Callable[..., Any]) -> Callable[..., Any]:
        def counted(*args: Any, **options: Any) -> Any:
            self.count("write")
            return call(*args, **options)

        return counted

    def tell(self, _event: Event) -> None:
        self.count("event")

    def count(self, kind: str) -> None:
        self.left[kind] -= 1
        if self.left[kind] == 0:
            raise Cut

    def damage(self, states: Path) -> None:
        """Now and then a byte of a file of the newest state is not what was written."""
        paths = sorted(path for path in states.glob("*/*/*") if path.is_file())
        if paths and self.random.random() < 0.3:
            path = paths[-1 - int(self.random.integers(0, min(3, len(paths))))]
            content = bytearray(path.read_bytes())
            content[int(self.random.integers(0, len(content)))] ^= 1
            path.write_bytes(content)


@pytest.mark.parametrize("seed", range(3))
def test_cut_off_anywhere_and_damaged(
    shallow: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, seed: int
) -> None:
    kind = KINDS[("mrn", "frozen bilstm", "bilstm by loss")[seed]]
    config = toy(shallow + "+bilstm" * ("bilstm_hidden" in kind), **kind)
    whole = Laboratory(config, tmp_path / "whole", corpus())
    whole.attempt()
    pieces = Laboratory(config, tmp_path / "pieces", corpus())
    faults = Faults(seed, monkeypatch)
    cuts, ended = 0, False
    while not ended:
        faults.draw()
        try:
            pieces.attempt(faults.tell)
            ended = True
        except Cut:
            cuts += 1
            faults.damage(tmp_path / "pieces.states")
        assert cuts < 60
    assert cuts > 3
    assert_same(pieces, whole)
