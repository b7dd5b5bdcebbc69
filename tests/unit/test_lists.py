"""Lists as one types them, read and written."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from core.config.sweep import number_typed, numbers, seeds, seeds_typed
from core.errors import ConfigError


@given(st.sets(st.integers(0, 5000), min_size=1, max_size=40) | st.just(set(range(2500))))
def test_seeds_read_back(values: set[int]) -> None:
    assert seeds(seeds_typed(values)) == sorted(values)


def test_seeds_are_written_short() -> None:
    assert seeds_typed([3, 1, 2, 2, 9, 7, 8, 20, 21]) == "1-3, 7-9, 20, 21"


@given(st.floats(allow_nan=False, allow_infinity=False))
def test_numbers_read_back(value: float) -> None:
    assert numbers(number_typed(value), "lambda") == [value]


def test_numbers_are_written_as_one_types_them() -> None:
    assert [number_typed(value) for value in (1.0, 0.01, 2e-5, 5, 1e6)] == [
        "1",
        "0.01",
        "2e-5",
        "5",
        "1000000",
    ]


def test_whole_numbers() -> None:
    assert numbers("5, 10,5", "epochs") == [5, 10]
    with pytest.raises(ConfigError, match=r"'2\.5' is not a whole number") as refused:
        numbers("2.5", "batch_size")
    assert refused.value.field == "batch_size"
