"""How alike task embeddings are over a training: logged at even steps, and as the model's vectors say."""

from __future__ import annotations

import math
from itertools import combinations
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from safetensors.torch import load_file

from core.records import Snapshot
from core.transfer.affinity import cosine_matrix, embedding_curve, embedding_curves
from tests.toys import corpus, sentences
from tests.unit.test_resuming import STEPS, Laboratory, toy

TASKS = ("pos", "ner")


def logged(laboratory: Laboratory) -> dict[int, float]:
    """The cosine of the two tasks by step."""
    numbers = laboratory.record.numbers
    return {step: value for (_, step, curve), value in numbers.items() if curve == embedding_curve(*TASKS)}


def trained(encoder: str, folder: Path, **changes: Any) -> Laboratory:
    described = {"task_embedding": "projected", "select_by": "last"} | changes
    laboratory = Laboratory(toy(encoder, **described), folder, corpus())
    laboratory.attempt()
    return laboratory


def test_at_every_step_of_a_short_run_and_in_the_end_as_the_saved_vectors_say(
    encoder: str, tmp_path: Path
) -> None:
    laboratory = trained(encoder, tmp_path / "run")
    cosines = logged(laboratory)
    assert list(cosines) == list(range(1, STEPS + 1))
    assert len(set(cosines.values())) > STEPS // 2  # they are trained
    saved = [load_file(path) for path in (tmp_path / "run").rglob("*.safetensors")]
    (vectors,) = (
        value.double()
        for weights in saved
        for name, value in weights.items()
        if name.endswith("task_vectors")
    )
    assert cosines[STEPS] == pytest.approx(
        float(torch.cosine_similarity(vectors[0], vectors[1], dim=0)), abs=1e-9
    )


def test_evenly_over_a_longer_run_and_at_its_last_step(encoder: str, tmp_path: Path) -> None:
    laboratory = Laboratory(
        toy(encoder, task_embedding="input", batch_size=1), tmp_path, corpus(train=sentences(40, 0))
    )
    steps = laboratory.attempt().steps
    assert list(logged(laboratory)) == [math.ceil(steps * share / 50) for share in range(1, 51)]


def test_of_mrn_at_its_snapshots(encoder: str, tmp_path: Path) -> None:
    laboratory = trained(encoder, tmp_path / "mrn", paradigm="mrn", update_every=2, snapshots=3)
    snapshots = laboratory.record.snapshots
    assert all(isinstance(snapshot, Snapshot) for snapshot in snapshots.values())
    assert list(logged(laboratory)) == list(snapshots)
    assert len(snapshots) == 3


def test_patience_ends_it_with_what_it_is_then(encoder: str, tmp_path: Path) -> None:
    laboratory = Laboratory(
        toy(encoder, task_embedding="input", epochs=60, patience=1, lr_encoder=1e-12, lr_heads=1e-12),
        tmp_path,
        corpus(),
    )
    steps = laboratory.attempt().steps
    assert steps < 60 * 5
    assert max(logged(laboratory)) == steps


def test_none_without_task_embeddings(encoder: str, tmp_path: Path) -> None:
    laboratory = trained(encoder, tmp_path / "none", task_embedding="none")
    assert not logged(laboratory)
    assert not [key for key in laboratory.record.numbers if "embedding" in key[2][1]]


def test_a_matrix_has_every_pair_once_in_any_order() -> None:
    tasks = ("b", "c", "a")
    assert set(embedding_curves(tasks)) == {embedding_curve(*pair) for pair in combinations("abc", 2)}
    values = {embedding_curve("a", "b"): 0.5, embedding_curve("c", "b"): -0.25}
    nan = math.nan
    np.testing.assert_array_equal(
        cosine_matrix(tasks, values), [[1, -0.25, 0.5], [-0.25, 1, nan], [0.5, nan, 1]]
    )
