"""One rule for differences: Runs, Compare, studies, Transfer, results and the library agree."""

from __future__ import annotations

import contextlib
from collections.abc import Mapping, Sequence
from types import SimpleNamespace
from typing import Any, cast

from hypothesis import given, settings
from hypothesis import strategies as st

from core.config import RunConfig
from core.evaluation import compare
from core.evaluation.comparison import HIGHER, LOWER
from core.records import SplitResult
from core.store import RunState, Store
from core.studies.analysis import _differences
from core.transfer.gains import measured_gains
from dashboard.compare.views import answers, headline
from dashboard.runs.views import page_of
from jobs.reports.render import score_records, score_sheet
from jobs.reports.table import tabulate
from tests.making import OWNER, task_score

TASKS = ("pos", "ner")
_RUNS = (("stl", ("pos",)), ("stl", ("ner",)), ("mtl", TASKS), ("mrn", TASKS))

effects = st.sampled_from([0.0, 0.0001, 0.01, 0.03])
noises = st.lists(st.sampled_from([0.0, 0.0002, 0.004, 0.02]), min_size=1, max_size=5)
scores_by_paradigm = st.fixed_dictionaries(
    {(paradigm, task): st.tuples(effects, noises) for paradigm in ("stl", "mtl", "mrn") for task in TASKS}
)


@settings(max_examples=30, deadline=None)
@given(scores_by_paradigm)
def test_six_surfaces_say_the_same(drawn: Mapping[tuple[str, str], tuple[float, list[float]]]) -> None:
    by_seed = {
        key: {seed: 0.6 + effect + own for seed, own in enumerate(owns, start=1)}
        for key, (effect, owns) in drawn.items()
    }
    with contextlib.closing(Store.open("sqlite://")) as store:
        runs = _stored(store, by_seed)
        scores = store.scores([run.id for run in runs])
        table = tabulate(runs, scores, "test", TASKS)
        ((shown,),) = [page_of(store, runs[::-1], grouped=True, sort="new", page=1, tasks=TASKS).tables]
    row = {str(row.config.paradigm): row for row in table.rows}
    library = {
        task: compare(
            {
                pair: (by_seed[pair[0], task], by_seed[pair[1], task])
                for pair in (("stl", "mtl"), ("stl", "mrn"), ("mtl", "mrn"))
            }
        )
        for task in TASKS
    }
    swapped = {HIGHER: LOWER, LOWER: HIGHER}
    for task in TASKS:
        for (a, b), expected in library[task].items():
            for first, second, verdict in (
                (a, b, expected.verdict),
                (b, a, swapped.get(expected.verdict, expected.verdict)),
            ):
                (compared,) = [d for d in answers(table, row[first].key, row[second].key) if d.task == task]
                assert compared.verdict == verdict
                assert verdict in headline("A", "B", [compared])
        # What is bold on Compare, in results and on Runs is higher than all else on the task.
        won = {
            paradigm
            for paradigm in row
            if all(
                (verdict.verdict if pair[0] == paradigm else swapped.get(verdict.verdict)) == HIGHER
                for pair, verdict in library[task].items()
                if paradigm in pair
            )
        }
        assert {name for name in row if (row[name].key, task) in table.bold} == won
        records = [r for r in score_records(table) if r["task"] == task]
        assert {str(r["configuration"]).split()[0].lower() for r in records if r["best"]} == won
        (block,) = score_sheet(table, "demo").blocks
        bold = {name for name, cells in block.rows if (cell := cells[TASKS.index(task)]) and cell.bold}
        assert {name.split()[0].lower() for name in bold} == won
        best = {shown.lines[place].config.paradigm for place in shown.best("test", task)}
        assert best == won
        _families_within(by_seed, task, library[task])


def _families_within(
    by_seed: Mapping[tuple[str, str], Mapping[int, float]], task: str, column: Mapping[Any, Any]
) -> None:
    """Studies and Transfer ask about some pairs of a column: what is decided among all is decided there."""
    outcomes = {
        paradigm: SimpleNamespace(by_seed={task: by_seed[paradigm, task]})
        for paradigm in ("stl", "mtl", "mrn")
    }
    study = _differences(cast(Any, outcomes), {"mtl": "stl", "mrn": "stl"}, task)
    swapped = {HIGHER: LOWER, LOWER: HIGHER}
    for paradigm, difference in study.items():
        verdict = column["stl", paradigm].verdict
        if verdict in swapped:
            assert difference.verdict == swapped[verdict]
    (other,) = set(TASKS) - {task}
    scored = [
        (_config(paradigm, tasks, seed), {name: score})
        for paradigm, tasks, name in (("stl", (task,), task), ("mtl", TASKS, task))
        for seed, score in by_seed[paradigm, task].items()
    ]
    gains = measured_gains(scored, TASKS).pairs
    if (verdict := column["stl", "mtl"].verdict) in swapped:
        assert gains[task, other].verdict == swapped[verdict]


def _config(paradigm: str, tasks: Sequence[str], seed: int) -> RunConfig:
    return RunConfig.build(
        corpus="demo", encoder_training="frozen", paradigm=paradigm, tasks=tuple(tasks), seed=seed
    )


def _stored(store: Store, by_seed: Mapping[tuple[str, str], Mapping[int, float]]) -> list[Any]:
    ids = []
    for paradigm, tasks in _RUNS:
        seeds = sorted({seed for task in tasks for seed in by_seed[paradigm, task]})
        for seed in seeds:
            scores = {
                task: by_seed[paradigm, task][seed] for task in tasks if seed in by_seed[paradigm, task]
            }
            (run_id,) = store.add_runs([_config(paradigm, tasks, seed)])
            store.claim(OWNER, due_in=15, run_id=run_id)
            of_tasks = tuple(task_score(task, score) for task, score in scores.items())
            for split in ("dev", "test"):
                store.add_result(run_id, SplitResult(split, 1, of_tasks, {}, {}))
            store.finish(run_id, RunState.SUCCEEDED, best_epoch=1)
            ids.append(run_id)
    return store.runs(ids)
