"""Figures from views: what is drawn, in which colours and scales."""

from __future__ import annotations

from core.store import RunState
from dashboard.theme import STATES, TASK_COLOURS, colours, faint, order_tasks


def test_look_of_states_and_tasks() -> None:
    assert set(STATES) == set(RunState)
    assert len({look.word for look in STATES.values()}) == len(STATES)
    assert len({look.mark for look in STATES.values()}) == len(STATES)
    many = colours(f"t{i}" for i in range(12))
    assert many["t0"] == "#0072B2"
    assert many["t11"] == TASK_COLOURS[-1]
    assert faint("#0072B2", 0.5) == "rgba(0,114,178,0.5)"
    assert order_tasks([("b", "a"), ("a", "c")]) == ["b", "a", "c"]
