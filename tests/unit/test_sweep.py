"""Sweeps: which runs lists of values make."""

from __future__ import annotations

from typing import Any

import pytest

from core.config import PRESETS, RunConfig
from core.config.sweep import expand
from core.errors import ConfigError

BASE: dict[str, Any] = {"corpus": "demo", "tasks": ("pos", "chunk", "ner")}


def test_nothing_swept_is_one_run() -> None:
    assert expand(BASE, {}) == [RunConfig.build(**BASE)]


def test_the_seeds_of_a_configuration_stand_together() -> None:
    runs = expand(BASE, {"seed": [1, 2], "lambda": [0.01, 0.1]})
    assert [(run.lambda_, run.seed) for run in runs] == [(0.01, 1), (0.01, 2), (0.1, 1), (0.1, 2)]


def test_every_combination_once() -> None:
    runs = expand(
        BASE,
        {
            "paradigm": ["mrn", "mtl"],
            "encoder": ["minilm", "minilm+bilstm"],
            "fraction": [0.1, 1.0],
            "seed": [1, 2, 3],
        },
    )
    assert len(runs) == len(set(runs)) == 2 * 2 * 2 * 3
    assert {run.bilstm_hidden for run in runs if run.encoder == "minilm"} == {None}


def test_single_tasks_are_learned_one_by_one() -> None:
    runs = expand({**BASE, "paradigm": "stl"}, {"seed": [1, 2]})
    assert [(run.tasks, run.seed) for run in runs] == [
        (("pos",), 1), (("pos",), 2), (("chunk",), 1), (("chunk",), 2), (("ner",), 1), (("ner",), 2),
    ]  # fmt: skip
    assert expand({**BASE, "tasks": "pos, ner", "paradigm": "stl"}, {})[1].tasks == ("ner",)


def test_a_field_of_some_runs_is_dropped_for_the_others() -> None:
    runs = expand(BASE, {"paradigm": ["stl", "mtl", "mrn"], "lambda": [0.01, 0.1]})
    assert [(run.paradigm, run.lambda_) for run in runs] == [
        ("stl", None), ("stl", None), ("stl", None), ("mtl", None), ("mrn", 0.01), ("mrn", 0.1),
    ]  # fmt: skip
    with_base = expand({**BASE, "lambda_": 0.5, "lr_encoder": 1e-4}, {"paradigm": ["mtl", "mrn"]})
    assert [run.lambda_ for run in with_base] == [None, 0.5]


def test_a_preset_gives_way() -> None:
    preset = PRESETS["dissertation"]
    (mtl,) = expand({**BASE, "paradigm": "mtl"}, {}, preset)
    assert (mtl.encoder, mtl.lr_heads, mtl.lambda_, mtl.prior) == ("bert-base-cased", 5e-5, None, None)
    (frozen,) = expand({**BASE, "encoder_training": "frozen", "epochs": 2}, {}, preset)
    assert (frozen.lr_encoder, frozen.lambda_, frozen.epochs) == (None, 0.05, 2)
    assert [run.lambda_ for run in expand(BASE, {"lambda": [0.1, 0.2]}, preset)] == [0.1, 0.2]
    with pytest.raises(ConfigError, match="alignment"):
        expand({**BASE, "paradigm": "mtl", "alignment": "exact"}, {}, preset)


@pytest.mark.parametrize(
    ("base", "lists", "field"),
    [
        ({}, {"seed": []}, "seed"),
        ({"paradigm": "mtl"}, {"lambda": [0.1]}, "lambda"),
        ({"paradigm": "mtl", "lambda": 0.1}, {}, "lambda"),
        ({}, {"lambda": [0.1, -1]}, "lambda"),
        ({"tasks": ("pos",)}, {"paradigm": ["stl", "mrn"]}, "tasks"),
        ({"encoder_training": "frozen", "lr_encoder": 1e-3}, {}, "lr_encoder"),
        ({}, {"colour": ["red"]}, "colour"),
        ({"corpus": ""}, {}, "corpus"),
    ],
)
def test_what_is_not_possible_names_its_field(
    base: dict[str, Any], lists: dict[str, Any], field: str
) -> None:
    with pytest.raises(ConfigError) as refused:
        expand(BASE | base, lists)
    assert refused.value.field == field
    assert field in str(refused.value)
