"""Sweeps over data: groups of tasks, corpora whose options are lists, and the runs that they make."""

from __future__ import annotations

from itertools import combinations, product
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from core.config.fields import comma_list
from core.config.sweep import alternatives
from core.config.task_groups import task_groups
from core.errors import ConfigError, CorpusError
from jobs.queue.sweeps import Sweep, corpora_of

_DEMO = ("pos", "chunk", "ner")
_SIMULATED = "simulated:demo?alpha={0.2|0.9}&tasks={1|2}"
_WORDS = st.text("abc=&?:.,", max_size=4)
_VALUES = st.lists(st.text("abc.,", min_size=1, max_size=3), min_size=1, max_size=3, unique=True)


@given(st.integers(1, 7))
def test_groups_with_a_name(number: int) -> None:
    tasks = [f"t{place}" for place in range(number)]
    assert task_groups("all", tasks) == [tuple(tasks)]
    assert task_groups("each", tasks) == [(task,) for task in tasks]
    assert task_groups("pairs", tasks) == list(combinations(tasks, 2))
    subsets = task_groups("subsets", tasks)
    assert len(subsets) == len(set(subsets)) == 2**number - number - 1
    assert all(len(group) > 1 and list(group) == sorted(group) for group in subsets)
    assert set(task_groups("each; pairs;all", tasks)) >= {*combinations(tasks, 2), tuple(tasks)}


def test_groups_written_out() -> None:
    assert task_groups("ner,pos; chunk , ner;pos,ner;", _DEMO) == [("pos", "ner"), ("chunk", "ner")]
    assert task_groups("pairs; ner,pos; all", _DEMO) == [*combinations(_DEMO, 2), _DEMO]
    simulated = ("ner", "sim-1", "sim-2")
    assert task_groups("pairs", simulated, simulated[1:]) == [("ner", "sim-1"), ("ner", "sim-2")]
    assert task_groups("each", simulated, simulated[1:]) == [("ner",)]
    assert task_groups("sim-1,sim-2", simulated, simulated[1:]) == [("sim-1", "sim-2")]
    assert task_groups("ner,sim-2; ner,sim-3", simulated, (), ("sim-3",)) == [("ner", "sim-2")]
    with pytest.raises(ConfigError, match="task_groups: 'srl' is not one of the tasks pos, chunk, ner;"):
        task_groups("pos,srl", _DEMO)
    with pytest.raises(ConfigError, match="task_groups: 14 tasks have more than 10,000 subsets"):
        task_groups("subsets", list(map(str, range(14))))


@given(_WORDS, st.lists(st.tuples(_VALUES, _WORDS), max_size=3))
def test_braces_make_every_combination(start: str, lists: list[tuple[list[str], str]]) -> None:
    text = start + "".join("{" + "|".join(values) + "}" + after for values, after in lists)
    expected = [
        start + "".join(value + after for value, (_, after) in zip(chosen, lists, strict=True))
        for chosen in product(*(values for values, _ in lists))
    ]
    assert alternatives(text, "corpus") == list(dict.fromkeys(expected))


@pytest.mark.parametrize("text", ["a?b={1|2", "a?b=1}", "{a|{b|c}}", "a?b={}", "a?b={1|}", "}a{"])
def test_braces_that_are_no_list(text: str) -> None:
    with pytest.raises(ConfigError, match=r"^corpus: '.*' has braces that are no list") as refused:
        alternatives(text, "corpus")
    assert refused.value.field == "corpus"


def test_braces_of_too_many_and_in_the_name_of_a_folder(tmp_path: Path) -> None:
    many = "{" + "|".join(map(str, range(30))) + "}"
    with pytest.raises(ConfigError, match="more than 10,000 runs"):
        alternatives(many * 3, "corpus")
    folder = tmp_path / "corpus {1|2}"
    folder.mkdir()
    assert corpora_of(str(folder)) == [str(folder)]


def _made(corpus: str, groups: str, **values: Any) -> list[tuple[Any, ...]]:
    """By run its paradigm, tasks and seed; its corpus too, where there are several."""
    tasks = values.pop("tasks", None)
    tasks = tuple(comma_list(tasks)) if isinstance(tasks, str) else tasks
    runs = Sweep(corpus, None, tasks, groups, values).runs()
    several = len({run.corpus for run in runs}) > 1
    return [(run.paradigm, run.tasks, run.seed) + (run.corpus,) * several for run in runs]


def test_each_task_and_each_pair_once_for_a_seed() -> None:
    seeds = [1, 2]
    singles = [("stl", (task,), seed) for task in _DEMO for seed in seeds]
    pairs = [("mtl", pair, seed) for pair in combinations(_DEMO, 2) for seed in seeds]
    assert _made("demo", "pairs", paradigm=["stl", "mtl"], seed=seeds) == singles + pairs
    assert _made("demo", "each;pairs", paradigm=["stl", "mtl"], seed=seeds) == singles + pairs
    assert _made("demo", "pairs", tasks="ner,pos", paradigm=["mtl"]) == [("mtl", ("ner", "pos"), 1)]
    assert _made("demo", "all", tasks=_DEMO, paradigm=["mtl"]) == _made("demo", "all", paradigm=["mtl"])
    assert _made("demo", "each", paradigm=["stl", "mtl"], seed=seeds) == singles
    for paradigms in (["mtl"], ["stl", "mtl"]):
        with pytest.raises(ConfigError, match="tasks: MTL needs at least two tasks to share"):
            _made("demo", "each", tasks="ner", paradigm=paradigms)
    with pytest.raises(ConfigError, match="tasks: MRN needs at least two tasks to relate"):
        _made("demo", "each; pairs", paradigm=["mrn"])
    with pytest.raises(ConfigError, match="task_groups: 'pairs' makes no group of ner"):
        _made("demo", "pairs", tasks="ner", paradigm=["mtl"])
    assert _made("demo", "all", paradigm=["stl", "mtl"]) == _made("demo", "all", paradigm=["stl", "mtl"])
    with pytest.raises(ConfigError, match="tasks cannot be"):
        _made("demo", "all", tasks="")


def test_groups_are_made_for_each_corpus_of_what_it_can_score() -> None:
    assert corpora_of(_SIMULATED) == [
        f"simulated:demo?alpha={alpha}&tasks={tasks}" for alpha in ("0.2", "0.9") for tasks in (1, 2)
    ]
    made = _made(_SIMULATED, "pairs", paradigm=["stl", "mtl"])
    small, large = (f"simulated:demo?alpha=0.2&tasks={tasks}" for tasks in (1, 2))
    assert made[:5] == [
        ("stl", ("ner",), 1, small), ("mtl", ("ner", "sim-1"), 1, small),
        ("stl", ("ner",), 1, large), ("mtl", ("ner", "sim-1"), 1, large), ("mtl", ("ner", "sim-2"), 1, large),
    ]  # fmt: skip
    assert len(made) == 2 * 5
    restricted = _made(_SIMULATED, "all", tasks="ner,sim-2", paradigm=["stl", "mtl"])
    assert [tasks for _, tasks, _, corpus in restricted if corpus == large] == [("ner",), ("ner", "sim-2")]
    assert len({run[-1] for run in _made(_SIMULATED, "ner,sim-2", paradigm=["mtl"])}) == 2
    with pytest.raises(CorpusError, match="has no option 'alfa'"):
        _made("simulated:demo?alfa={0.2|0.9}", "all")
