"""Groups of tasks that can be related, and what is hatched between them."""

from __future__ import annotations

from typing import Any

import pytest

from core.mrn.relations import Block, impossible_blocks, task_groups


def facts(meet: list[list[int]], **more: Any) -> dict[str, Any]:
    """As they are stored: of tasks a, b, c, ..."""
    return {"tasks": [{"name": name} for name in "abcd"[: len(meet)]], "meet": meet, **more}


@pytest.mark.parametrize(
    ("meet", "groups"),
    [
        ([[1, 1], [1, 1]], [("a", "b")]),
        ([[1, 0], [0, 1]], [("a",), ("b",)]),
        ([[1, 0, 1], [0, 1, 0], [1, 0, 1]], [("a", "c"), ("b",)]),
        # a and d meet through c and b only.
        ([[1, 0, 1, 0], [0, 1, 1, 1], [1, 1, 1, 0], [0, 1, 0, 1]], [("a", "b", "c", "d")]),
    ],
)
def test_groups_are_connected_through_meeting(meet: list[list[int]], groups: list[tuple[str, ...]]) -> None:
    assert list(task_groups(facts(meet))) == groups


def test_a_run_of_an_earlier_version_says_all_or_none() -> None:
    earlier = {"tasks": [{"name": "a"}, {"name": "b"}]}
    assert task_groups(earlier) == (("a", "b"),)
    assert task_groups({**earlier, "impossible": ["task", "label"]}) == (("a",), ("b",))


def test_only_cells_between_groups_are_hatched() -> None:
    apart = facts([[1, 0, 1], [0, 1, 0], [1, 0, 1]])
    tasks = impossible_blocks(apart, "task", [("a",), ("b",), ("c",)])
    assert set(tasks) == {Block(0, 1, 1, 2), Block(1, 2, 0, 1), Block(1, 2, 2, 3), Block(2, 3, 1, 2)}
    labels = impossible_blocks(apart, "label", [("a", "c"), ("a", "c"), ("a",), ("b",), ("b",)])
    assert set(labels) == {Block(0, 2, 3, 5), Block(3, 5, 0, 2), Block(2, 3, 3, 5), Block(3, 5, 2, 3)}
    assert impossible_blocks(apart, "feature", [()] * 4) == ()
    assert impossible_blocks(apart, "label", [()] * 4) == ()
    # Rows that a run shares with one of other tasks: only its own tasks count.
    assert impossible_blocks(apart, "label", [("a", "d"), ("b",)]) == (Block(0, 1, 1, 2), Block(1, 2, 0, 1))
    assert impossible_blocks(apart, "label", [("d",), ("b",)]) == ()
    assert impossible_blocks(facts([[1, 1], [1, 1]]), "task", [("a",), ("b",)]) == ()
