"""Curves of pairs of tasks: the cosines of their gradients and of their embeddings."""

from __future__ import annotations

import math
from itertools import combinations
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from safetensors.torch import load_file

from core.config import RunConfig
from core.corpora.types import Corpus, Sentence, Task
from core.encoding.batches import Batch
from core.errors import ConfigError
from core.metrics import StepMetrics
from core.models.encoders import parts_of, shared_weights
from core.store import Store
from core.training.gradient_cosines import gradient_cosines, measure_gradient_cosines
from core.training.setup import TrainingRun, set_up
from core.training.trainer import train_step
from core.transfer.cosines import cosine_matrix, curves_of, embedding_curve, gradient_curve
from jobs.reports.transfer import run_gradients
from tests.making import config as stored_config
from tests.toys import config, corpus, sentences
from tests.unit.cut_trainings import STEPS, Laboratory, toy

_WORDS: dict[str, Any] = {"bilstm_hidden": 8, "lr_bilstm": 0.1, "lr_encoder": 0.2}


def begun(steps: int, data: Corpus | None = None, **changes: Any) -> tuple[TrainingRun, Batch]:
    """A training after so many steps, and its next batch."""
    described: dict[str, Any] = {"paradigm": "mtl"} | changes
    run = set_up(config(**described), data or corpus())
    run.model.train()
    epoch = run.epoch(0)
    for _ in range(steps):
        train_step(run, next(epoch))
    return run, next(epoch)


def by_hand(run: TrainingRun, batches: list[Batch]) -> np.ndarray:
    """The cosines, each pair of gradients by itself, as `backward` leaves them on the weights."""
    model, count = run.model, len(run.facts.tasks)
    shared = {
        name: weight
        for name, weight in model.named_parameters()
        if weight.requires_grad and parts_of(run.model)[weight] != "heads" and ".gate_" not in name
    }

    def gradient(task: int) -> torch.Tensor:
        model.zero_grad()
        batch = batches[task if len(batches) > 1 else 0]
        sums, counts = model.losses(model(batch), batch)
        torch.autograd.backward(sums[task] / counts[task])
        return torch.cat(
            [(w.new_zeros(w.shape) if w.grad is None else w.grad).flatten().double() for w in shared.values()]
        )

    cosines = np.array(
        [
            [
                float(torch.nn.functional.cosine_similarity(gradient(j), gradient(i), dim=0))
                for j in range(count)
            ]
            for i in range(count)
        ]
    )
    model.zero_grad()
    return cosines


@pytest.mark.parametrize(
    "changes",
    [
        {},
        {"bilstm": True, "encoder_training": "frozen", "bilstm_hidden": 8},
        _WORDS | {"encoder": "bilstm"},
        _WORDS | {"encoder": "lstm-d", "task_order": "ner,pos", "draw_tasks": "uniform"},
        _WORDS | {"encoder": "sc-lstm", "head": "crf", "draw_tasks": "by_size"},
    ],
    ids=["full", "frozen", "bilstm", "lstm-d", "sc-lstm"],
)
def test_equal_to_a_loop_by_hand(changes: dict[str, Any], encoder: str) -> None:
    changes = {"encoder": encoder + "+bilstm" * changes.get("bilstm", False), "dropout": 0.3} | changes
    changes.pop("bilstm", None)
    run, batch = begun(4, **changes)
    batches = [batch]
    if batch.task is not None:
        batches = list(run.splits["train"].batches.one_of_each(np.random.default_rng(0)))
    run.model.eval()
    measured, expected = (
        gradient_cosines(run.model, shared_weights(run.model), batches),
        by_hand(run, batches),
    )
    np.testing.assert_allclose(measured.numpy(), expected, atol=1e-6)
    assert np.abs(expected - np.eye(2)).max() > 1e-3  # and not nothing


def labelled(count: int) -> list[Sentence]:
    """The toy's POS twice, as pos and twin, and as `shuffled` the same labels on other words."""
    rng = np.random.default_rng(0)
    made = []
    for sentence in sentences(count, 0, longest=20):
        pos = sentence.labels["pos"]
        labels = {"pos": pos, "twin": pos, "shuffled": tuple(rng.permutation(pos).tolist())}
        made.append(Sentence(sentence.tokens, labels))
    return made


def test_a_twin_agrees_more_than_a_task_with_shuffled_labels() -> None:
    names = ("pos", "twin", "shuffled")
    made = tuple(labelled(40))
    tasks = tuple(Task(name, "plain", (".", "J", "N", "T", "V")) for name in names)
    data = Corpus("toy", tasks, made, made, made)
    few: dict[str, Any] = _WORDS | {"encoder": "bilstm", "batch_size": 4}
    run, batch = begun(8, data, tasks=",".join(names), affinity_every=9, **few)
    cosines = measure_gradient_cosines(run, batch, 9)
    assert cosines[gradient_curve("pos", "twin")] == pytest.approx(1, abs=1e-6)
    assert cosines[gradient_curve("pos", "shuffled")] < 0.9


@pytest.mark.parametrize(
    "changes",
    [
        {"paradigm": "mrn", "update_every": 2},
        {"encoder": "bilstm", "draw_tasks": "uniform", "optimiser": "adadelta", **_WORDS},
        {"corpus_order": "in_turn", "batching": "shuffled"},
    ],
    ids=["mrn", "drawn", "in turn"],
)
def test_the_training_is_bit_for_bit_that_of_a_run_without(
    changes: dict[str, Any], encoder: str, tmp_path: Path
) -> None:
    """Resuming with measurements is a test of test_resuming.py."""
    runs = {}
    for every in (None, 2):
        described: dict[str, Any] = {"encoder": encoder, "dropout": 0.3, "affinity_every": every} | changes
        runs[every] = Laboratory(toy(**described), tmp_path / str(every), corpus())
        runs[every].attempt()
    plain, measured = (lab.record.numbers for lab in runs.values())
    curves = set(curves_of(gradient_curve, ("pos", "ner")))
    extra = {key: value for key, value in measured.items() if key[2] in curves}
    assert {key: value for key, value in measured.items() if key not in extra} == plain
    steps = STEPS * (2 if "draw_tasks" in changes else 1)
    # Before a task's first step its head is zero, and so is its gradient.
    at_steps = {step for _, step, _ in extra}
    assert set(range(4, steps + 1, 2)) <= at_steps <= set(range(2, steps + 1, 2))
    weights = [
        {path.name: path.read_bytes() for path in (tmp_path / str(every)).rglob("*.safetensors")}
        for every in runs
    ]
    assert weights[0] == weights[1] != {}


def test_zero_gradients_and_tasks_without_labels_have_no_value(encoder: str) -> None:
    run, batch = begun(0, encoder=encoder, affinity_every=1)
    assert measure_gradient_cosines(run, batch, 1) == {}  # heads at zero: no gradient
    train_step(run, batch)
    run.model.train()
    half = sentences(20, 0, ("pos",)) + sentences(20, 1, ("ner",))
    run, batch = begun(3, corpus(train=half), encoder=encoder, affinity_every=4, batch_size=1)
    assert measure_gradient_cosines(run, batch, 4) == {}


@pytest.mark.parametrize(
    "changes", [{"paradigm": "stl", "tasks": "pos"}, {"encoder_training": "frozen"}], ids=["stl", "frozen"]
)
def test_refused_where_nothing_is_shared_and_trained(changes: dict[str, Any]) -> None:
    with pytest.raises(ConfigError, match="must be left unset here: it compares what tasks do to layers"):
        config("minilm", affinity_every=10, **{"paradigm": "mtl"} | changes)
    frozen = config("minilm+bilstm", encoder_training="frozen", paradigm="mtl", affinity_every=10)
    assert frozen.with_(encoder="minilm").affinity_every is None
    assert RunConfig.from_json(frozen.to_json()) == frozen


def test_the_matrix_of_a_stored_run(store: Store) -> None:
    """Of an old run too, which measured lookahead affinities beside cosines."""
    tasks = ("b", "a", "c")
    (run,) = store.add_runs([stored_config(tasks=tasks)])
    values = {
        1: {("a", "affinity from b"): 0.25, gradient_curve("b", "a"): 0.5},
        2: {gradient_curve("a", "b"): 0.0, gradient_curve("a", "c"): math.nan},
    }
    store.add_metrics(run, [StepMetrics(step, step, step, of_step) for step, of_step in values.items()])
    nan = math.nan
    expected = [[1, 0.25, nan], [0.25, 1, nan], [nan, nan, 1]]
    np.testing.assert_array_equal(run_gradients(store, store.run(run)), expected)


def embedding_cosines(laboratory: Laboratory) -> dict[int, float]:
    """The logged cosine of the two task embeddings by step."""
    numbers, curve = laboratory.record.numbers, embedding_curve("pos", "ner")
    return {step: value for (_, step, key), value in numbers.items() if key == curve}


def test_embedding_cosines_of_a_short_run_are_those_of_its_vectors_at_every_step(
    encoder: str, tmp_path: Path
) -> None:
    laboratory = Laboratory(toy(encoder, task_embedding="projected", select_by="last"), tmp_path, corpus())
    laboratory.attempt()
    cosines = embedding_cosines(laboratory)
    assert list(cosines) == list(range(1, STEPS + 1))
    assert len(set(cosines.values())) > STEPS // 2  # they are trained
    (file,) = tmp_path.rglob("weights.safetensors")
    (vectors,) = (value for name, value in load_file(file).items() if name.endswith("task_vectors"))
    first, second = vectors.double()
    expected = torch.cosine_similarity(first, second, dim=0)
    assert cosines[STEPS] == pytest.approx(float(expected), abs=1e-9)


@pytest.mark.parametrize(
    ("changes", "share"),
    [
        ({"batch_size": 1, "epochs": 2}, 1 / 50),
        ({"paradigm": "mrn", "update_every": 2, "snapshots": 3}, 1 / 3),
        ({"epochs": 60, "patience": 1, "lr_encoder": 1e-12, "lr_heads": 1e-12}, None),
    ],
    ids=["longer", "mrn", "patience"],
)
def test_embedding_cosines_are_evenly_spaced_and_of_the_last_step(
    changes: dict[str, Any], share: float | None, encoder: str, tmp_path: Path
) -> None:
    """Those of MRN lie at its snapshots. Patience ends a run early."""
    laboratory = Laboratory(toy(encoder, task_embedding="input", **changes), tmp_path, corpus())
    steps = laboratory.attempt().steps
    logged = list(embedding_cosines(laboratory))
    if share is None:
        assert steps < 60 * 5
        assert max(logged) == steps
    elif "paradigm" in changes:
        assert logged == list(laboratory.record.snapshots)
        assert len(logged) == 3
    else:
        assert logged == [math.ceil(steps * number * share) for number in range(1, 51)]


def test_an_embedding_matrix_has_every_pair_once_in_any_order() -> None:
    tasks = ("b", "c", "a")
    assert set(curves_of(embedding_curve, tasks)) == {
        embedding_curve(*pair) for pair in combinations("abc", 2)
    }
    values = {embedding_curve("a", "b"): 0.5, embedding_curve("c", "b"): -0.25}
    nan = math.nan
    expected = [[1, -0.25, 0.5], [-0.25, 1, nan], [0.5, nan, 1]]
    np.testing.assert_array_equal(cosine_matrix(embedding_curve, tasks, values), expected)
