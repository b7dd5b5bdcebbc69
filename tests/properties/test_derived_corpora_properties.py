"""Draws of derived corpora, and artificial labels against the matrix that they are drawn from."""

from __future__ import annotations

from collections import Counter

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from core.corpora import Corpus, load
from core.corpora.derived.simulated import artificial_labels, relatedness
from tests.unit.derived import made, on

seeds = st.integers(0, 2**31 - 1)


def assert_apart(corpus: Corpus) -> None:
    """Each training sentence has one task and is there no more often than in the base."""
    assert all(len(sentence.labels) == 1 for sentence in corpus.train)
    drawn, base = (Counter(s.tokens for s in each.train) for each in (corpus, load("demo")))
    assert drawn <= base


@given(seed=seeds, alpha=st.floats(0, 1), labels=st.integers(2, 6))
@settings(max_examples=40)
def test_labels_follow_the_matrix(seed: int, alpha: float, labels: int) -> None:
    draw = np.random.default_rng(seed)
    real = draw.integers(0, labels, 30_000)
    drawn = artificial_labels(real, alpha, labels, draw)
    together = np.zeros((labels, labels))
    np.add.at(together, (real, drawn), 1)
    shares = together / together.sum(axis=1, keepdims=True)
    matrix = np.full((labels, labels), (1 - alpha) / (labels - 1))
    np.fill_diagonal(matrix, alpha)
    # Each share is of 4,500 draws at least: five standard errors of it are 0.037 at most.
    assert np.abs(shares - matrix).max() < 0.04


@given(seed=seeds, low=st.floats(0, 1), high=st.floats(0, 1))
@settings(max_examples=20)
def test_a_larger_alpha_keeps_what_a_smaller_keeps(seed: int, low: float, high: float) -> None:
    low, high = sorted((low, high))
    real = np.random.default_rng(seed).integers(0, 5, 500)
    few, many = (artificial_labels(real, alpha, 5, np.random.default_rng(7)) for alpha in (low, high))
    assert np.all(many[few == real] == real[few == real])


@given(seed=seeds, labels=st.integers(2, 9))
@settings(max_examples=10)
def test_relatedness_at_both_ends(seed: int, labels: int) -> None:
    draw = np.random.default_rng(seed)
    real = draw.choice(labels, 10_000, p=draw.dirichlet(np.full(labels, 5.0)))
    columns = [artificial_labels(real, alpha, labels, draw) for alpha in (1.0, 1 / labels)]
    matrix = relatedness([real, *columns])
    assert matrix == pytest.approx(matrix.T)
    assert matrix[0, 1] == pytest.approx(1)
    assert abs(matrix[0, 2]) < 0.01


@given(seed=seeds, few=st.integers(1, 1500), more=st.integers(0, 1500))
@settings(max_examples=15)
def test_apart_is_disjoint_and_a_smaller_budget_a_prefix(seed: int, few: int, more: int) -> None:
    small = made(f"apart:demo?tokens={few},100,{few}", "pos,chunk,ner", seed=seed)
    large = made(f"apart:demo?tokens={few + more},{few},{few}", "ner,pos,chunk", seed=seed)
    assert on(small, "pos") == on(large, "pos")[: len(on(small, "pos"))]
    assert on(small, "ner") == on(large, "ner")
    assert on(made(f"apart:demo?tokens={few}", "ner", seed=seed), "ner") == on(small, "ner")
    assert_apart(large)


@given(seed=seeds, alpha=st.floats(0, 1), tasks=st.integers(1, 4))
@settings(max_examples=10)
def test_simulated_draws_do_not_depend_on_alpha(seed: int, alpha: float, tasks: int) -> None:
    name = f"simulated:demo?task=pos&tasks={tasks}&samples=300&tokens=200&dev=5"
    drawn, otherwise = (made(f"{name}&alpha={value}", "pos,sim-1", seed=seed) for value in (alpha, 0.5))
    assert [sentence.tokens for sentence in drawn.train] == [sentence.tokens for sentence in otherwise.train]
    assert drawn.dev == otherwise.dev
    assert_apart(drawn)
    # Also the real labels: only the artificial ones are drawn anew.
    assert [s for s in drawn.train if "pos" in s.labels] == [s for s in otherwise.train if "pos" in s.labels]


@given(seed=seeds, few=st.integers(1, 300), more=st.integers(0, 300))
@settings(max_examples=15)
def test_a_smaller_sample_is_part_of_a_larger_one(seed: int, few: int, more: int) -> None:
    small, large = (made(f"demo?train={number}", "ner", seed=seed).train for number in (few, few + more))
    assert len(small) == few
    rest = iter(large)
    assert all(sentence in rest for sentence in small)  # in the same order
