"""Every alignment against its definition written out, label by label and word by word."""

from __future__ import annotations

import csv
from collections import Counter
from dataclasses import dataclass
from itertools import product
from pathlib import Path

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.typing import NDArray

from core.mrn.alignments import Alignment, LabelCounts, align, alignment_facts
from core.mrn.alignments.rules import SMOOTHING
from core.mrn.priors import PRIOR_CLASSES, PriorSettings
from core.mrn.relations import TaskRelations, correlation, task_groups

NAMES = ("disjoint", "exact", "cooccurrence", "mapping")
POOL = ("O", "A", "B", "C", "D")
Entries = dict[tuple[str, str, str], float]


@dataclass(frozen=True)
class Case:
    """Tasks with labels, words labelled for some of them, and rows of a mapping file."""

    tasks: dict[str, tuple[str, ...]]
    words: tuple[dict[str, str], ...]
    rows: dict[tuple[str, str, str], float]

    def counts(self, order: tuple[str, ...] | None = None) -> LabelCounts:
        """As the program counts them, the tasks in that order."""
        names = order or tuple(self.tasks)
        numbers = [
            [self.tasks[task].index(word[task]) if task in word else -1 for task in names]
            for word in self.words
        ]
        table = np.asarray(numbers, dtype=np.int64).reshape(len(self.words), len(names))
        return LabelCounts.from_words(names, [self.tasks[task] for task in names], table)


@st.composite
def cases(draw: st.DrawFn) -> Case:
    tasks = {
        task: tuple(draw(st.lists(st.sampled_from(POOL), min_size=1, max_size=4, unique=True)))
        for task in ("one", "two", "three")[: draw(st.integers(2, 3))]
    }
    word = st.fixed_dictionaries(
        {}, optional={task: st.sampled_from(labels) for task, labels in tasks.items()}
    )
    known = [(task, label) for task, labels in tasks.items() for label in labels]
    row = st.tuples(st.sampled_from(known), st.sampled_from(("X", "Y", "one:A")))
    rows = draw(st.dictionaries(row, st.sampled_from((0.5, 1.0, 3.0)), min_size=1, max_size=6))
    return Case(
        tasks,
        tuple(draw(st.lists(word, max_size=12))),
        {(task, label, general): weight for ((task, label), general), weight in rows.items()},
    )


@pytest.fixture(scope="module")
def file(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("mapping") / "labels.csv"


def aligned(name: str, case: Case, file: Path, order: tuple[str, ...] | None = None) -> Alignment:
    if name == "mapping":
        with file.open("w", newline="", encoding="utf-8") as text:
            writer = csv.writer(text)
            writer.writerow(("task", "label", "general", "weight"))
            writer.writerows((*key, weight) for key, weight in case.rows.items())
        name = f"mapping:{file}"
    return align(name, case.counts(order))


def entries(alignment: Alignment, counts: LabelCounts) -> Entries:
    """B by names: the weight of a task's label in a general row, where there is one."""
    columns = [
        (task, label) for task, labels in zip(counts.names, counts.labels, strict=True) for label in labels
    ]
    weights = {}
    for t, c, i in zip(*np.nonzero(alignment.matrix), strict=True):
        task, label = columns[i]
        assert task == alignment.task_names[t], "a task's slice holds another task's labels"
        weights[task, alignment.label_names[c], label] = float(alignment.matrix[t, c, i])
    return weights


def by_definition(name: str, case: Case) -> Entries:
    """The same, as the module of that alignment describes it in words."""
    labels = [(task, label) for task, of_task in case.tasks.items() for label in of_task]
    if name == "exact":
        return {(task, label, label): 1.0 for task, label in labels}
    if name == "mapping":
        named = {(task, label) for task, label, _ in case.rows}
        kept = {(task, f"{task}:{label}", label): 1.0 for task, label in labels if (task, label) not in named}
        return kept | {(task, general, label): weight for (task, label, general), weight in case.rows.items()}
    weights = {(task, f"{task}:{label}", label): 1.0 for task, label in labels}
    if name == "cooccurrence":
        for (task, label), (other, row) in product(labels, labels):
            if task != other and (weight := _share(case, task, label, other, row)):
                weights[task, f"{other}:{row}", label] = weight
    return weights


def _share(case: Case, task: str, label: str, other: str, row: str) -> float:
    """How much of `label` there is among the words that `other` labels `row`."""
    both = [word for word in case.words if task in word and other in word]
    if not both:
        common = set(case.tasks[task]) & set(case.tasks[other]) - {"O"}
        return float(bool(common) and label == row)
    seen = Counter(word[task] for word in case.words if task in word)
    sizes = {name: seen[name] + SMOOTHING for name in case.tasks[task]}
    marginal = sizes[label] / sum(sizes.values())
    among = [word[task] for word in both if word[other] == row]
    return (among.count(label) + SMOOTHING * marginal) / (len(among) + SMOOTHING)


@pytest.mark.parametrize("name", NAMES)
@settings(max_examples=25)
@given(case=cases(), data=st.data())
def test_an_alignment_is_its_definition_in_any_order_of_the_tasks(
    name: str, file: Path, case: Case, data: st.DataObject
) -> None:
    alignment = aligned(name, case, file)
    weights, expected = entries(alignment, case.counts()), by_definition(name, case)
    assert weights.keys() == expected.keys()
    assert list(weights.values()) == pytest.approx([expected[key] for key in weights])
    # Every label is somewhere, every row is somebody's, and no row has a name twice.
    assert (alignment.matrix != 0).any(axis=(0, 1)).all()
    assert (alignment.matrix != 0).any(axis=(0, 2)).all()
    assert len(set(alignment.label_names)) == len(alignment.label_names) == len(alignment.label_owners)

    order = tuple(data.draw(st.permutations(list(case.tasks))))
    reordered = aligned(name, case, file, order)
    again = entries(reordered, case.counts(order))
    assert weights.keys() == again.keys()
    assert list(weights.values()) == pytest.approx([again[key] for key in weights])
    places = [order.index(task) for task in case.tasks]
    np.testing.assert_array_equal(alignment.shares_rows, reordered.shares_rows[np.ix_(places, places)])
    owners = dict(zip(reordered.label_names, map(set, reordered.label_owners), strict=True))
    assert dict(zip(alignment.label_names, map(set, alignment.label_owners), strict=True)) == owners
    groups = _groups(alignment)
    apart = len(set(groups.tolist())) == len(groups)
    assert alignment.impossible == reordered.impossible == (("task", "label") if apart else ())


@pytest.mark.parametrize("name", NAMES)
@settings(max_examples=10)
@given(case=cases(), seed=st.integers(0, 1000))
def test_relations_arise_within_groups_of_tasks_and_only_there(
    name: str, file: Path, case: Case, seed: int
) -> None:
    alignment = aligned(name, case, file)
    rank = alignment.matrix.shape[2]
    heads = torch.randn(rank, 8, dtype=torch.float64, generator=torch.Generator().manual_seed(seed))
    prior = PRIOR_CLASSES["relational"](alignment, PriorSettings(8, 1.0, 10.0), torch.device("cpu"))
    for _ in range(4):
        prior.update(heads)
    relations = prior.relations()
    assert relations is not None
    group = _groups(alignment)
    assert (relations.task[group[:, None] != group] == 0).all()
    assert (np.abs(relations.task[group[:, None] == group]) > 1e-12).all()
    present = (alignment.matrix != 0).any(axis=2)
    row_group = group[present.argmax(axis=0)]
    assert (relations.label[row_group[:, None] != row_group] == 0).all()


def _groups(alignment: Alignment) -> NDArray[np.int64]:
    """The number of each task's group."""
    facts = TaskRelations(
        related=tuple(alignment.task_names), meet=tuple(map(tuple, alignment.shares_rows.tolist()))
    )
    number = {task: index for index, tasks in enumerate(task_groups(facts)) for task in tasks}
    return np.array([number[task] for task in alignment.task_names])


def test_what_an_alignment_relates_by_itself_is_what_independent_weights_show() -> None:
    words = np.array([[0, 0], [0, 0], [1, 1], [1, 0], [1, 1], [0, 1]])
    counts = LabelCounts.from_words(["a", "b"], [["A", "B"], ["X", "Y"]], words)
    alignment = align("cooccurrence", counts)
    heads = np.random.default_rng(1).normal(size=(4, 50_000))
    rows = (alignment.matrix @ heads).transpose(1, 0, 2).reshape(len(alignment.label_names), -1)
    shown = correlation(rows @ rows.T)
    np.testing.assert_allclose(alignment.correlation, shown, atol=0.02)
    assert np.array(alignment_facts(alignment, counts)["aligned"]) == pytest.approx(shown, abs=0.02)
    assert alignment_facts(align("disjoint", counts), counts)["aligned"] == ()
