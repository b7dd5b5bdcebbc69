"""One rule for differences: Runs, Compare, studies, Transfer, `mrnlab results` and the library agree."""

from __future__ import annotations

import contextlib
import itertools
import re
from collections.abc import Mapping
from random import Random
from typing import Any, cast

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from core.config import RunConfig
from core.evaluation import Comparison, compare
from core.evaluation.comparison import EQUIVALENT, HIGHER, LOWER, UNDECIDED, verdict_text
from core.evaluation.statistics import summary
from core.events import SplitResult
from core.library import Laboratory
from core.results.compared import compared
from core.results.comparisons import answers, differences, headline
from core.results.figures import forest, forest_chart
from core.results.filter import parse_filter
from core.results.records import difference_records, score_records
from core.results.samples import group_by_data
from core.results.stored import stored_results
from core.results.table import MEAN_OF_TASKS, ResultTable, tabulate
from core.store import RunState, Store
from core.studies import Method
from core.studies.analysis import MEAN, FinalScores, analyse
from core.studies.study import DevByRun, planned_runs, with_runs
from core.transfer.gains import measured_gains
from dashboard.compare.views import sharing, sharing_forest
from dashboard.runs.views import page_of
from dashboard.transfer.views import gains_table
from jobs.reports.render import csv_text, difference_sheet, score_sheet
from tests.making import OWNER, finished, run_facts, task_score
from tests.studying import METHODS, score_of, study

TASKS = ("pos", "ner")
PARADIGMS = ("stl", "mtl", "mrn")
LAYOUT = with_runs(
    made := study(
        seeds=(1, 2, 3, 4, 5), methods=(*METHODS[:2], Method("mrn", "MRN", ({"paradigm": "mrn"},)))
    ),
    made.settings[0],
)
REVERSED = {HIGHER: LOWER, LOWER: HIGHER, EQUIVALENT: EQUIVALENT, UNDECIDED: UNDECIDED}

Scores = Mapping[tuple[str, str], Mapping[int, float]]
"""By paradigm and task, by seed."""


def by_seed(*added: float) -> dict[int, float]:
    return {seed: 0.6 + seed / 100 + more for seed, more in enumerate(added, start=1)}


effects = st.sampled_from([0.0, 0.0001, 0.01, 0.03])
noises = st.lists(st.sampled_from([0.0, 0.00005, 0.0002, 0.004, 0.02]), min_size=1, max_size=5)
drawn_scores = st.fixed_dictionaries(
    {(paradigm, task): st.tuples(effects, noises) for paradigm in PARADIGMS for task in TASKS}
).map(
    lambda drawn: {
        key: by_seed(*(effect + noise for noise in of_seeds)) for key, (effect, of_seeds) in drawn.items()
    }
)


# MTL and STL: equivalent by themselves, significantly apart even when corrected for all pairs.
TINY: Scores = {
    (paradigm, task): by_seed(*added)
    for task in TASKS
    for paradigm, added in (
        ("stl", (0.0,) * 5),
        ("mtl", (0.0003, 0.0002, 0.0004, 0.0003, 0.0005)),
        ("mrn", (0.02, -0.02, 0.01, -0.01, 0.0)),
    )
}


@settings(max_examples=25, deadline=None)
@example(TINY)
@given(drawn_scores)
def test_six_surfaces_say_the_same(scores: Scores) -> None:
    verdicts = {}
    for task in TASKS:
        pairs = itertools.combinations(PARADIGMS, 2)
        family = {(a, b, task): (scores[a, task], scores[b, task]) for a, b in pairs}
        for (a, b, _), comparison in compare(family).items():
            verdicts[a, b, task] = comparison.verdict
            verdicts[b, a, task] = REVERSED[comparison.verdict]
    highest = {
        (a, task)
        for a in PARADIGMS
        for task in TASKS
        if all(verdicts[a, b, task] == HIGHER for b in PARADIGMS if b != a)
    }
    by_run = {run: scored for run in LAYOUT.runs() if (scored := scores_of(run, scores))}
    lab = Laboratory("sqlite://")
    with contextlib.closing(lab.store) as store:
        for run in by_run:
            store_finished(store, run, by_run[run])
        stored = store.runs()
        table = tabulate(stored, store.scores([run.id for run in stored]), "test", TASKS)
        check_tables(store, table, highest)
        check_compare(table, verdicts)
        check_library(lab, verdicts)
    check_study(by_run, verdicts)
    check_transfer(by_run, verdicts)


def test_surfaces_agree_where_texts_seeds_and_failures_differ() -> None:
    """The corpus changed, a seed was repeated, runs failed after their scores: Runs has Compare's means."""
    with contextlib.closing(Store.open("sqlite://")) as store:
        made: list[tuple[str, str, int, float, bool]] = [
            (paradigm, text, seed, base * (1 + seed / 500), True)
            for paradigm, text, base in (("mtl", "a", 0.6), ("mrn", "a", 0.7), ("mrn", "b", 0.9))
            for seed in (1, 2, 3)
        ]
        made += [("mtl", "b", seed, 0.8 * (1 + seed / 300), True) for seed in (1, 2, 3)]
        made += [("mtl", "a", 2, 0.61, True), ("mrn", "b", 4, 0.1, False), ("mtl", "a", 1, 0.99, False)]
        for paradigm, text, seed, score, succeeds in made:
            run = RunConfig.build(corpus="demo", tasks=TASKS, paradigm=paradigm, seed=seed)
            run_id = claimed_as(store, run, text)
            for split in ("dev", "test"):
                store.add_result(run_id, SplitResult(split, 1, (task_score("pos", score),), {}, {}))
            store.finish(run_id, RunState.SUCCEEDED if succeeds else RunState.FAILED)
        runs = store.runs()
        (runs_table,) = page_of(store, runs, grouped=True, sort="new", page=1, tasks=TASKS).tables
        best = runs_table.best("test", "pos")
        on_runs = {
            (str(line.config.paradigm), line.text): (line.by_seed["test", "pos"], place in best)
            for place, line in enumerate(runs_table.lines)
        }
        ended = [run for run in runs if run.state is RunState.SUCCEEDED]
        conditions = store.conditions(ended)
        on_compare = {}
        for group, of in group_by_data(ended, conditions).items():
            table = tabulate(of, store.scores([run.id for run in of]), "test", TASKS, conditions)
            for row in table.rows:
                text = group.name.partition(", ")[2]
                cell = row.cells["pos"].by_seed, (row.key, "pos") in table.bold
                on_compare[str(row.config.paradigm), text] = cell
        assert on_runs == on_compare
        assert {key for key, (_, is_bold) in on_runs.items() if is_bold} == {
            ("mrn", "text a"),
            ("mrn", "text b"),
        }
        for (paradigm, text), (seeds, _) in on_runs.items():
            mean = 100 * summary(seeds.values()).mean
            above = parse_filter(f"pos>{mean - 0.001} pos<{mean + 0.001}", store=store)
            found = {run.config.paradigm for run in runs if above.matches(run)}
            assert found == {paradigm}, text


@settings(max_examples=15, deadline=None)
@given(st.integers(0, 10_000), st.sampled_from([0.001, 0.01, 0.03]))
def test_studies_and_compare_answer_one_question_alike(number: int, noise: float) -> None:
    """Three λ, of which dev chooses: the same candidate, differences, p-values and verdicts in both."""
    layout, random = with_runs(plan := study(), plan.settings[0]), Random(number)

    def score(run: RunConfig, split: str) -> float:
        return score_of(run, split) + random.gauss(0, noise)

    scores = {
        split: {run: dict.fromkeys(run.tasks, score(run, split)) for run in layout.runs()}
        for split in ("dev", "test")
    }
    result = analyse(layout, DevByRun(scores["dev"]), FinalScores(scores["test"]))
    with contextlib.closing(Store.open("sqlite://")) as store:
        for each in planned_runs(layout, DevByRun(scores["dev"]), frozenset()):
            run = each.config
            of_splits = (
                SplitResult(split, 1, tuple(task_score(*of) for of in scores[split][run].items()), {}, {})
                for split in ("dev", "test")
            )
            finished(store, run, *of_splits)
        (answer,) = compared(stored_results(store), baseline="mtl")
    differences_shown = {(str(delta.row.config.paradigm), delta.task): delta for delta in answer.differences}
    for outcome in result.outcomes:
        for target, wanted in outcome.differences.items():
            delta = differences_shown[outcome.method.name, MEAN_OF_TASKS if target == MEAN else target]
            assert (delta.verdict, delta.seeds) == (wanted.verdict, wanted.seeds)
            assert delta.mean == pytest.approx(wanted.mean)
            assert delta.p == pytest.approx(wanted.p)
            if outcome.method.name == "mrn":
                assert outcome.candidate is not None
                assert delta.row.config.lambda_ == outcome.candidate["lambda"]


def claimed_as(store: Store, run: RunConfig, text: str) -> int:
    """A run that is trained, on that text."""
    (run_id,) = store.add_runs([run])
    assert store.claim(OWNER, run_id=run_id) is not None
    store.set_facts(run_id, run_facts(text_hash=text))
    return run_id


def scores_of(run: RunConfig, scores: Scores) -> dict[str, float]:
    """The scores of a run on those of its tasks that have one with its seed."""
    of_tasks = {task: scores[run.paradigm, task].get(run.seed) for task in run.tasks}
    return {task: score for task, score in of_tasks.items() if score is not None}


def store_finished(store: Store, run: RunConfig, scored: Mapping[str, float]) -> None:
    of_tasks = tuple(task_score(task, score) for task, score in scored.items())
    finished(store, run, *(SplitResult(split, 1, of_tasks, {}, {}) for split in ("dev", "test")))


def check_tables(store: Store, table: ResultTable, highest: set[tuple[str, str]]) -> None:
    """What is bold on Runs, on Compare and in each format of `results` is higher than each other row."""
    (runs_table,) = page_of(store, store.runs(), grouped=True, sort="new", page=1, tasks=TASKS).tables
    on_runs = {
        (str(runs_table.lines[place].config.paradigm), task)
        for task in TASKS
        for place in runs_table.best("test", task)
    }
    paradigm = {row.key: str(row.config.paradigm) for row in table.rows}
    records = score_records(table)
    in_csv = csv_text(("configuration", "task", "best"), records).splitlines()[1:]
    sheet = {
        (name.split()[0].lower(), task)
        for block in score_sheet(table, "demo").blocks
        for name, cells in block.rows
        for task, cell in zip(TASKS, cells, strict=True)
        if cell is not None and cell.bold
    }
    assert on_runs == highest
    assert {(paradigm[key], task) for key, task in table.bold} == highest
    assert sheet == highest
    assert {(str(r["configuration"]).split()[0].lower(), r["task"]) for r in records if r["best"]} == highest
    assert sum(line.endswith(",True") for line in in_csv) == len(highest)


def check_compare(table: ResultTable, verdicts: Mapping[tuple[str, str, str], str]) -> None:
    """Headline, lines, forest, the table to copy and its records, whatever the baseline; what sharing did."""
    row = {str(row.config.paradigm): row for row in table.rows}
    for b in row:
        shown = differences(table, row[b].key)
        expected = [verdicts[str(delta.row.config.paradigm), b, delta.task] for delta in shown]
        view = forest(shown, table, row[b].key)
        (block,) = difference_sheet(shown, table, row[b].key, "demo").blocks
        lines = [cells for _, cells in block.rows]
        assert [delta.verdict for delta in shown] == expected
        assert [mark.verdict for mark in view.marks] == expected
        words = [verdict_text(verdict, table.matters) for verdict in expected]
        assert [cells[2] and cells[2].text for cells in lines] == words
        assert [cells[1] and cells[1].bold for cells in lines] == [each == HIGHER for each in expected]
        assert [record["verdict"] for record in difference_records(shown, table)] == expected
        for delta, mark in zip(shown, view.marks, strict=True):
            assert delta.sentence.startswith(delta.verdict)
            assert delta.sentence in mark.hover
        symbols = [symbol for trace in forest_chart(view, {}).data for symbol in trace["marker"]["symbol"]]
        assert sum(symbol.endswith("-open") for symbol in symbols) == expected.count(UNDECIDED)
        for a in row.keys() - {b}:
            answered = answers(table, row[a].key, row[b].key)
            assert said(headline("A", "B", answered)) == {task: verdicts[a, b, task] for task in TASKS}
    steps = sharing(table)
    for mark in sharing_forest(steps, TASKS).marks:
        a, b = (str(side.config.paradigm) for side in (steps[mark.row].a, steps[mark.row].b))
        assert mark.target == MEAN_OF_TASKS or mark.verdict == verdicts[a, b, mark.target]


def said(sentence: str) -> dict[str, str]:
    """The verdicts of a headline by task."""
    body = sentence.removesuffix(".").removeprefix("A scores ").removeprefix("A against B: ")
    by_task = {}
    for part in re.split(r"; | and (?=lower than)", body):
        word, _, tasks = part.partition(" on ")
        for task in re.sub(r" \([^)]*\)", "", tasks).split(" and "):
            by_task[task] = word.removesuffix(" than B").removesuffix(" within 0.05")
    return by_task


def check_library(lab: Laboratory, verdicts: Mapping[tuple[str, str, str], str]) -> None:
    runs = lab.store.runs()
    baseline = next(run for run in runs if run.config.paradigm == "mtl")
    figure: Any = lab.plot_differences([run.id for run in runs], baseline.id)
    rows = [str(name).split()[0].lower() for name in figure.layout["yaxis"]["ticktext"]]
    for trace in figure.data:
        for place, sentence, symbol in zip(trace["y"], trace["text"], trace["marker"]["symbol"], strict=True):
            verdict = verdicts[rows[round(place)], "mtl", str(trace["name"])]
            shown = sentence.replace(" within 0.05", "")
            assert f": {verdict}, " in shown
            assert symbol.endswith("-open") == (verdict == UNDECIDED)


def check_study(
    by_run: Mapping[RunConfig, Mapping[str, float]], verdicts: Mapping[tuple[str, str, str], str]
) -> None:
    """A study compares with its reference alone: what is decided among all pairs is decided there."""
    result = analyse(LAYOUT, DevByRun(by_run), FinalScores(by_run))
    for outcome in result.outcomes:
        for task, difference in outcome.differences.items():
            if task in TASKS:
                assert_alike(difference, verdicts[outcome.method.name, result.reference, task])


def check_transfer(
    by_run: Mapping[RunConfig, Mapping[str, float]], verdicts: Mapping[tuple[str, str, str], str]
) -> None:
    """Gains ask about MTL and STL: what is decided among all pairs is decided there, and coloured so."""
    pairs_only = [(run, scored) for run, scored in by_run.items() if run.paradigm != "mrn"]
    gains = measured_gains(pairs_only, TASKS)
    cells = gains_table(gains, "points", {}).cells
    for (main, aux), gain in gains.pairs.items():
        assert_alike(gain, verdicts["mtl", "stl", main])
        cell = cast(Any, cells[TASKS.index(main)][TASKS.index(aux)])
        assert cell.grey == (gain.verdict not in (HIGHER, LOWER))
        assert f": {gain.verdict}," in cell.title.replace(" within 0.05", "")


def assert_alike(comparison: Comparison, among_all: str) -> None:
    """The verdict in a smaller family: the same, where more tests decide it."""
    if among_all != UNDECIDED:
        assert comparison.verdict == among_all
