"""Headlines on relations: decided cells alone, of one configuration and of several, with any names."""

from __future__ import annotations

import dataclasses
from typing import Any

import numpy as np
import pytest

from core.evaluation.relation_verdicts import relation_verdicts
from core.results.relations import RelationTable, Rows, basis_of, headline_of
from dashboard.relations.sentences import read_hub
from tests.pages.matrices import matrix

NAMES = ("pos", "chunk", "ner", "srl")


def table(name: str, names: tuple[str, ...] = NAMES, *, seeds: int = 4, **pairs: Any) -> RelationTable:
    """A configuration whose seeds learned these correlations, nearly the same each; 0.3 apart is `_x`."""
    random = np.random.default_rng(len(name))
    values = np.stack([matrix(len(names), **pairs)] * seeds)
    noise = random.normal(scale=0.005, size=values.shape)
    values = np.clip(values + noise + noise.transpose(0, 2, 1), -1, 1)
    tested = ~np.eye(len(names), dtype=bool)
    rows = Rows(names, tuple((each,) for each in names), np.zeros((seeds, len(names)), dtype=np.int64))
    verdicts = relation_verdicts(values, tested)
    return RelationTable(name, "task", tuple(range(seeds)), rows, verdicts, {})


def test_of_several_configurations_it_says_in_how_many() -> None:
    both: dict[str, Any] = {"_01": 0.6, "_23": -0.5}
    tables = [table("a", **both), table("b", **both, _02=0.4), table("c", **both)]
    assert headline_of(tables) == (
        "Related in all 3 configurations: pos and chunk; related in 1 of 3: pos and ner; opposed in all 3: "
        "ner and srl; 3 pairs have no relation that matters in any of 3."
    )
    assert headline_of(tables[:1]).startswith("Of 6 pairs 1 is related: pos and chunk (0.6")
    assert headline_of(tables[:2], lambda name: f"<{name}>").startswith(
        "Related in both configurations: <pos> and <chunk>; related in 1 of 2: <pos> and <ner>; "
    )


def test_seeds_that_decide_nothing_are_not_read() -> None:
    one = [table(name, seeds=1, _01=0.9) for name in "ab"]
    assert headline_of(one) == "Nothing is decided: each configuration has one seed."
    assert headline_of([*one, table("c", _01=0.6)]).startswith(
        "Related in 1 of 3 configurations: pos and chunk."
    )
    scattered = [table(name, seeds=2, _01=0.1, _02=-0.1, _03=0.1, _12=0.1, _13=0.1, _23=0.1) for name in "ab"]
    assert headline_of(scattered) == "None of 6 pairs is decided in any of 2 configurations."


def test_what_the_verdicts_of_several_rest_on() -> None:
    assert basis_of([table("a"), table("b", seeds=2)]) == (
        "Against ±0.1 over 2 to 4 seeds of each configuration, corrected over all pairs of each; no controls "
        "with shuffled labels."
    )
    assert basis_of([table("a")]).startswith("Against ±0.1 over 4 seeds, ")


@pytest.mark.parametrize("count", [1, 3])
def test_twelve_tasks_with_long_names_make_a_short_headline(count: int) -> None:
    names = tuple(f"the relation of a word to its head in the dependency tree {n:02}" for n in range(12))
    pairs: dict[str, Any] = {f"_{i}{j}": 0.5 for i in range(9) for j in range(i + 1, 9)}
    text = headline_of([table(str(place), names, **pairs) for place in range(count)])
    assert "the relation of a word" in text
    assert len(text) < 300


def test_the_strongest_stands_for_more_pairs_than_fit() -> None:
    text = headline_of([table("a", _01=0.7, _02=0.9, _03=0.5, _12=0.4)])
    assert text.startswith("Of 6 pairs 4 are related, the strongest pos and ner (0.")
    assert "chunk" not in text


def test_a_row_that_most_of_many_pairs_have_stands_for_them() -> None:
    names = tuple("abcdefghij")
    pairs: dict[str, Any] = {f"_0{place}": 0.3 for place in range(1, 10)}
    text = headline_of([table("a", names, **pairs)])
    assert text.startswith("Of 45 pairs 9 are related, 9 of them with a; ")


def test_rows_of_its_task_that_only_their_seeds_keep_undecided_are_known() -> None:
    names = (*(f"p:{place}" for place in range(9)), "q:A", "q:B", "q:C", "r:A")
    values = np.stack([np.eye(len(names))] * 3)
    for seed, noise in enumerate((-0.3, 0.0, 0.3)):
        learned = {9: -0.5 + noise / 100, 10: -0.6 + noise, 11: -0.2 + noise, 12: -0.6 + noise}
        for row, correlation in learned.items():
            values[seed, row, :9] = values[seed, :9, row] = correlation
    owners = tuple((name[0],) for name in names)
    tested = np.array([[a != b for b in owners] for a in owners])
    places = np.zeros((3, len(names)), dtype=np.int64)
    rows = Rows(names, owners, places)
    labels = RelationTable("a", "label", (1, 2, 3), rows, relation_verdicts(values, tested), {})
    hub = labels.hub("opposed")
    assert hub is not None
    assert (hub.row, sorted(hub.partners), hub.as_strong) == (9, [*range(9)], (10,))
    assert labels.hub("related") is None
    assert read_hub(names, hub) == (
        "Not only q:A: q:B has on average as strong correlations with these 9 labels, but is undecided, "
        "because its seeds differ more."
    )
    assert not read_hub(names, dataclasses.replace(hub, as_strong=()))


@pytest.mark.parametrize(
    ("correlation", "words"),
    [(0.6, "a and b are related: 0."), (0.0, "a and b have no relation that matters: ")],
)
def test_a_single_pair_is_named_without_counts(correlation: float, words: str) -> None:
    assert headline_of([table("c", ("a", "b"), _01=correlation)]).startswith(words)


def test_what_the_alignment_alone_relates_is_not_called_related() -> None:
    tasks = table("a", ("p:A", "p:B", "q:A", "q:B"), _02=0.95, _03=0.6, _12=0.5, _13=-0.8)
    rows = dataclasses.replace(tasks.rows, owners=(("p",), ("p",), ("q",), ("q",)))
    alone = matrix(4, _02=0.97, _03=0.2, _12=0.3)
    labels = dataclasses.replace(tasks, mode="label", rows=rows, alone=alone, alignment="cooccurrence")
    text = headline_of([labels])
    explained = "came out related more than their words in common explain"
    assert text.startswith(f"2 of 6 pairs of labels {explained}: p:A and q:B (0.60")
    assert "p:A and q:A" not in text
    assert "; 1 came out opposed: p:B and q:B (−0.8" in text
    between = np.zeros((4, 4), dtype=bool)
    between[:2, 2:] = between[2:, :2] = True
    apart = dataclasses.replace(labels.verdicts, tested=between)
    assert headline_of([dataclasses.replace(labels, verdicts=apart)]).startswith("2 of 4 pairs of labels")
    assert headline_of([dataclasses.replace(labels, alignment="mapping")]).startswith(
        "2 of 6 pairs of labels came out related more than the alignment explains: "
    )
    # No more than the alignment gives: nothing is related beyond it.
    counted = dataclasses.replace(labels, alone=matrix(4, _02=0.97, _03=0.6, _12=0.5))
    assert headline_of([counted]).startswith(f"None of 6 pairs of labels {explained}; 1 came out opposed")
