"""Descriptions in rows: seeds of one configuration are checked together, and come out as they went in."""

from __future__ import annotations

from core.store.runs import parse_config
from tests.making import config


def test_a_description_comes_out_as_it_went_in() -> None:
    for corpus in ("demo", '"seed":7,', "a\\"):
        for seed in (0, 3, 2**31 - 1):
            written = config(seed=seed, corpus=corpus)
            assert parse_config(written.to_json()) == (written, None)


def test_a_seed_that_is_none_is_a_problem() -> None:
    for wrong in ("-1", "1.5", "01", "2147483648", "1e3x", '"x"'):
        read, problem = parse_config(config(seed=3).to_json().replace('"seed":3', f'"seed":{wrong}'))
        assert problem is not None, wrong
        assert read.corpus in ("demo", "unreadable")
