"""Sweeps: which runs lists of values make, and lists as people type them."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from core.config import PRESETS, RunConfig
from core.config.sweep import expand
from core.config.typed import number_typed, numbers, seeds, seeds_typed
from core.errors import ConfigError

BASE: dict[str, Any] = {"corpus": "demo", "tasks": ("pos", "chunk", "ner")}


def test_every_combination_once_and_the_seeds_of_a_configuration_together() -> None:
    assert expand(BASE, {}) == [RunConfig.build(**BASE)]
    runs = expand(BASE, {"seed": [1, 2], "lambda": [0.01, 0.1]})
    assert [(run.lambda_, run.seed) for run in runs] == [(0.01, 1), (0.01, 2), (0.1, 1), (0.1, 2)]
    lists: dict[str, Any] = {
        "paradigm": ["mrn", "mtl"],
        "encoder": ["minilm", "minilm+bilstm"],
        "fraction": [0.1, 1.0],
    }
    runs = expand(BASE, lists | {"seed": [1, 2, 3]})
    assert len(runs) == len(set(runs)) == 2 * 2 * 2 * 3
    rebuilt = [RunConfig.from_json(run.to_json()) for run in runs]  # copies of a hashed run hash anew
    assert list(map(hash, rebuilt)) == list(map(hash, runs))
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
        ({"paradigm": ["mtl"]}, {}, "paradigm"),
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


@given(st.sets(st.integers(0, 5000), min_size=1, max_size=40) | st.just(set(range(2500))))
def test_seeds_read_back(values: set[int]) -> None:
    assert seeds(seeds_typed(values)) == sorted(values)


@given(st.floats(allow_nan=False, allow_infinity=False))
def test_numbers_read_back(value: float) -> None:
    assert numbers(number_typed(value), "lambda") == [value]


def test_lists_are_read_and_written_as_one_types_them() -> None:
    assert seeds_typed([3, 1, 2, 2, 9, 7, 8, 20, 21]) == "1-3, 7-9, 20, 21"
    assert seeds("1-3, 7, 2") == [1, 2, 3, 7]
    typed = [number_typed(value) for value in (1.0, 0.01, 2e-5, 5, 1e6)]
    assert typed == ["1", "0.01", "2e-5", "5", "1000000"]
    assert numbers("0.01, 1e-1,0.01", "lambda") == [0.01, 0.1]
    assert numbers("5, 10,5", "epochs") == [5, 10]
    assert numbers("5%, 0.05, 150 %", "fraction") == [0.05, 1.5]
    for tenths in range(1, 1000):
        assert numbers(f"{tenths // 10}.{tenths % 10}%", "fraction") == [float(f"0.{tenths:03d}")]
    with pytest.raises(ConfigError, match=r"'2\.5' is not a whole number"):
        numbers("2.5", "batch_size")


@pytest.mark.parametrize(
    ("field", "texts"),
    [
        ("seed", ["", " , ", "a", "1-", "-1", "5-1", "1-99999999", "1.5"]),
        ("lambda", ["", "one", "nan", "1e999", "0.1 0.2", "5%"]),
        ("fraction", ["", "%", "five", "5%%"]),
    ],
)
def test_seeds_and_numbers_that_are_none(field: str, texts: list[str]) -> None:
    for text in texts:
        with pytest.raises(ConfigError) as error:
            _ = seeds(text) if field == "seed" else numbers(text, field)
        assert error.value.field == field
