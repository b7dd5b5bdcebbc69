"""A value in the store that cannot be one never ends a verb in a traceback, nor hides the other runs."""

from __future__ import annotations

import json

import pytest

from core.store import Store
from tests.unit.cli.terminal import Laboratory

_VERBS = (
    *(("runs",), ("show", "1"), ("show", "1", "--log", "5"), ("results",), ("metrics", "1", "score")),
    *(
        ("relations", "1"),
        ("relations", "1", "--numbers"),
        ("queue",),
        ("runs", "--filter", "created<2d minutes<9"),
    ),
)
_TIMES = ("-1e300", "9e999", "253402300800", "'yesterday'")
_NUMBERS = ("9e999", "'many'")
_TEXTS = ("''", "'{'", "'[1]'", "'{\"a\": 1}'", "x'00'")
_DATES = ["created_at", "started_at", "finished_at", "progress_at", "heartbeat_at", "stop_requested_at"]


def _set(table: str, names: list[str], value: str) -> str:
    return f"UPDATE {table} SET {', '.join(f'{name} = {value}' for name in names)}"


_SPOILED = [
    *(_set("runs", _DATES, value) for value in _TIMES),
    *(_set("events", ["time"], value) for value in _TIMES),
    *(_set("runs", ["epoch", "total_steps", "best_epoch", "saved_step"], value) for value in _NUMBERS),
    *(_set("runs", ["config", "tags"], value) for value in _TEXTS),
    *(_set("facts", ["facts"], value) for value in (*_TEXTS, '\'{"tasks": [1], "alignment": 5}\'')),
    *(_set("scores", ["report"], value) for value in (*_TEXTS, '\'{"NN": {"f1": "x"}}\'')),
    *(_set("scores", ["score", "f1_conll"], value) for value in _NUMBERS),
    _set("scores", ["accuracy", "tokens"], "'many'"),
    *(_set("snapshots", [name], "x'00'") for name in ("task", "label", "factor")),
    *(_set("snapshots", [name], value) for name in ("features", "factor_scale") for value in _NUMBERS),
    "UPDATE metrics SET value = 'many' WHERE kind = 0",
    "UPDATE metrics SET value = 9e999 WHERE kind = 0",
    "UPDATE predictions SET gold = x'00'",
    'UPDATE runs SET config = \'{"corpus": 5, "tasks": "pos", "lambda": "x", "seed": [], "paradigm": {}}\'',
]


@pytest.mark.parametrize("spoil", _SPOILED)
def test_every_verb_answers(lab: Laboratory, spoil: str) -> None:
    lab.finished()
    sound = lab.finished(seed=2)
    with lab.store.transaction() as connection:
        table = spoil.split()[1]
        owner = "id" if table == "runs" else "run_id"
        connection.exec_driver_sql(f"{spoil} {'AND' if 'WHERE' in spoil else 'WHERE'} {owner} = 1")
    lab.store._read_runs.clear()  # as another process would read them
    for verb in _VERBS:
        result = lab.call(*verb)  # an exception is raised as it is
        assert result.exit_code in (0, 2), (verb, result.stderr)
        assert "Traceback" not in result.stderr
    told = json.loads(lab.answer("runs", "--json"))
    assert {run["id"] for run in told} >= {sound}
    lab.answer("show", "1", "--json")
    store = Store.open()
    store.predictions(1, "test")
    store.close()
