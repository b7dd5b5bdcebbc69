"""The runs that Compare shows, with their scores and sentences.

They are those chosen, else those of the newest sweep, else all on the newest corpus, and never on two
corpora.

Predictions never change within an attempt of a run, so each is read once for all sessions.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace

import streamlit as st

from core.config import RunConfig
from core.corpora import prepare
from core.corpora.types import Sentence
from core.evaluation.mistakes import Labels
from core.results.comparisons import Difference, Tested, run_pairs
from core.results.methods import by_method, method_key
from core.results.samples import TEXT, alike, by_configuration, group_by_data, readable
from core.results.series import Baseline, Series, baselines, number_series
from core.results.table import ResultTable, tabulate
from core.store.types import ACTIVE, Run, RunState
from core.tasks import TaskKind, kind_of
from core.wording import all_of, plural
from dashboard.compare.mistake_views import Counted, counted, tested
from dashboard.shared import resources
from dashboard.shared.newcomers import try_it
from dashboard.shared.queue import none_done
from dashboard.shared.run_picker import pick_runs
from dashboard.shared.selection import choice, choose, chosen, newest_sweep, segments, set_parameter
from dashboard.shared.states import show_note
from dashboard.text import escape

_MOST_ROWS, _PAIR = 40, 2
_MOST_CHIPS = 12
"""Configurations of the newest sweep up to which each has a chip."""
_EVERY = "every"
"""In the address: all runs are compared, not those of the newest sweep alone."""
_ROWS = {"methods": "Best of each method", "every": "Every row"}
_NEWEST = 2000
"""Where nothing is chosen, the newest finished runs are compared, up to this number."""


@dataclass(frozen=True)
class ComparedRuns:
    """The runs compared, all on the same data, with the name of the data and the split of the scores.

    `chosen` are the runs of the reader's choice or of the newest sweep on any data; else `runs`. With
    `every_row` all configurations are compared, else methods, of whose candidates dev chose one.
    """

    runs: list[Run]
    name: str
    split: str
    chosen: list[Run]
    every_row: bool = False


def pick_compared_runs() -> ComparedRuns | None:
    """The widgets; None where none of the runs has finished yet, which the page then says."""
    store = resources.store()
    asked = store.runs(chosen()) if chosen() else _newest_sweep()
    done = [run for run in asked if run.state is RunState.SUCCEEDED]
    shown = sorted(run.id for run in done) if len(by_configuration(done)) <= _MOST_CHIPS else []
    row = st.container(horizontal=True, vertical_alignment="bottom")
    with row:
        picked = pick_runs(
            key="compare_runs", suitable=lambda run: run.state is RunState.SUCCEEDED, instead=lambda _: shown
        )
    if asked and not done:
        none_done([run.id for run in asked])
        if picked is not None and not chosen():
            _all_runs_button()
        return None
    if picked is None:
        try_it("No run has finished yet. One click trains MRN, MTL and STL to compare.")
        return None
    if not chosen():
        picked = []  # the chips are of the newest sweep
    elif not picked:
        return None
    of_sweep = [run.id for run in done]
    every = picked or (
        store.runs(of_sweep) if of_sweep else store.runs(states={RunState.SUCCEEDED}, limit=_NEWEST)
    )
    conditions = store.conditions(every)
    runs, left_out = readable(every, conditions)
    if left_out:
        show_note(escape(left_out))
    if not runs:
        return None
    groups = {group.name: (group, on_data) for group, on_data in group_by_data(runs, conditions).items()}
    name = next(iter(groups))
    if len(groups) > 1:
        with row:
            name = choice(
                "Data",
                groups.keys(),
                key="data",
                width=320,
                help="Runs on other text, or on another share of it, are not mixed in one table.",
            )
    group, on_data = groups[name]
    rows = list(by_configuration(sorted(on_data, key=lambda run: -run.id)).values())
    compared, older = list(itertools.chain(*rows[:_MOST_ROWS])), max(0, len(rows) - _MOST_ROWS)
    with st.container(horizontal=True, vertical_alignment="center"):
        split = segments("Scores on", {"test": "Test split", "dev": "Dev split"}, key="on")
        every_row = _has_candidates(rows[:_MOST_ROWS]) and segments("Rows", _ROWS, key="rows") == "every"
        st.caption(_described(name, picked, on_data, older, is_sweep=bool(asked)), width="content")
        if asked:
            _all_runs_button()
    if group.note:
        show_note(escape(group.note))
    return ComparedRuns(compared, name, split, runs if asked else compared, every_row)


def _has_candidates(rows: Sequence[Sequence[Run]]) -> bool:
    """Whether some of the configurations, each with its runs, may be candidates of one method."""
    return len({method_key(runs[0].config) for runs in rows}) < len(rows)


def _newest_sweep() -> list[Run]:
    """The runs of the newest sweep that has begun, if they are compared where none is chosen.

    They are while it trains, and where it has configurations to compare, unless all runs are asked for.
    """
    if st.query_params.get(_EVERY):
        return []
    newest = resources.store().runs(limit=_NEWEST)
    begun = set(newest_sweep(newest, _NEWEST))
    name = next((run.sweep for run in newest if run.id in begun), None)
    runs = [run for run in newest if run.id in begun or (name and run.sweep == name)]
    done = readable([run for run in runs if run.state is RunState.SUCCEEDED])[0]
    is_compared = any(run.state in ACTIVE for run in runs) or len(by_configuration(done)) > 1
    return runs if is_compared else []


def _all_runs_button() -> None:
    """Draws the button that compares all runs on the newest data."""
    st.button("All runs", type="tertiary", icon=":material/select_all:", on_click=take_all)


def take_all() -> None:
    """Compares all runs on the newest data; a callback."""
    choose(())
    set_parameter(_EVERY, "true")


def go_on_comparing(compared: ComparedRuns, before: Sequence[int], launched: Sequence[int]) -> None:
    """Goes on comparing what was compared, with the launched runs as they end.

    `before` are the runs that the reader had chosen before that sweep, which is the newest now.
    """
    if not before and compared.chosen is compared.runs:
        take_all()
    else:
        choose(tuple(dict.fromkeys((*(before or (run.id for run in compared.chosen)), *launched))))


def _described(
    name: str, picked: Sequence[Run], on_data: Sequence[Run], older: int, *, is_sweep: bool
) -> str:
    """Which runs are compared, and which of the chosen ones are not."""
    if older:
        return (
            f"The newest {_MOST_ROWS} of {_MOST_ROWS + older:,} configurations on {escape(name)}; choose "
            "runs to see others."
        )
    asked = resources.store().runs(chosen())
    stored = len(readable(asked, resources.store().conditions(asked))[0])
    if not picked and is_sweep:
        return f"The newest sweep: {_runs_text(on_data)} on {escape(name)}."
    if not picked:
        return f"All {_runs_text(on_data)} on {escape(name)}."
    reasons = [
        f"{count:,} {words[count > 1]}"
        for count, words in (
            (len(picked) - len(on_data), ("is on other data", "are on other data")),
            (stored - len(picked), ("has not succeeded", "have not succeeded")),
        )
        if count > 0
    ]
    if not reasons:
        return f"{_runs_text(on_data)} on {escape(name)}."
    return f"{len(on_data)} of {plural(max(stored, len(picked)), 'chosen run')}; {all_of(reasons)}."


def _runs_text(runs: Sequence[Run]) -> str:
    """`20 runs (STL: one per task)`: chips count a seed of STL once."""
    stl = {run.config.tasks for run in runs if run.config.paradigm == "stl"}
    return plural(len(runs), "run") + " (STL: one per task)" * (len(stl) > 1)


def table_of(compared: ComparedRuns) -> ResultTable:
    """The table of scores, with a row a method unless every row is asked for.

    Reports, which are megabytes, are not read.
    """
    store, runs = resources.store(), compared.runs
    scores = store.scores([run.id for run in runs], with_reports=False)
    table = tabulate(runs, scores, compared.split, resources.task_order(), store.conditions(runs))
    return table if compared.every_row else by_method(table)


def with_costs(table: ResultTable, compared: ComparedRuns) -> ResultTable:
    """The table with what its rows cost, for which facts are read."""
    store, ids = resources.store(), [run.id for run in compared.runs]
    scores = store.scores(ids, with_reports=False)
    costs = {
        row.key: row.cost
        for row in tabulate(
            store.runs_with_facts(ids), scores, table.split, table.tasks, store.conditions(compared.runs)
        ).rows
    }
    return replace(table, rows=tuple(replace(row, cost=costs[row.key]) for row in table.rows))


def series_of(compared: ComparedRuns) -> list[Series]:
    """The configurations of the chosen runs that differ in one number alone.

    Without a choice, those with three values or more. Of the table's corpus only runs on its text count.
    """
    on_text = _on_text(compared)
    least = _PAIR + (compared.chosen is compared.runs)
    all_series = number_series(on_text, resources.store().conditions(on_text))
    return [of for of in all_series if len(of.runs) >= least]


def baselines_of(series: Series, compared: ComparedRuns) -> list[Baseline]:
    """What the series can be compared with, of the same runs."""
    on_text = _on_text(compared)
    return baselines(series, on_text, resources.store().conditions(on_text))


def _on_text(compared: ComparedRuns) -> list[Run]:
    """The chosen runs, without those on another text of the table's corpus."""
    conditions = resources.store().conditions(compared.chosen)
    tabled, corpus = {run.id for run in compared.runs}, compared.runs[0].config.corpus
    on_corpus = [run for run in compared.chosen if run.config.corpus == corpus]
    groups = alike(on_corpus, conditions, TEXT).values()
    other_text = {run.id for of in groups if tabled.isdisjoint(run.id for run in of) for run in of}
    return [run for run in compared.chosen if run.id not in other_text]


def sentence_tests(
    differences: Iterable[Difference], table: ResultTable, runs: Iterable[Run]
) -> list[Tested]:
    """The test over sentences of each difference."""
    by_id = {run.id: run for run in runs}
    return [
        _test(
            tuple((by_id[a], by_id[b]) for a, b in run_pairs(delta)),
            table.split,
            delta.task,
            table.scored_by[delta.task],
        )
        for delta in differences
    ]


@st.cache_resource(max_entries=5000, show_spinner=False, hash_funcs=resources.BY_RUN)
def _test(pairs: tuple[tuple[Run, Run], ...], split: str, task: str, score_name: str) -> Tested:
    def of(run: Run) -> Counted | None:
        return _counted(run, split, task, score_name)

    return tested([(of(a), of(b)) for a, b in pairs])


@st.cache_resource(max_entries=5000, show_spinner=False, hash_funcs=resources.BY_RUN)
def _counted(run: Run, split: str, task: str, score_name: str) -> Counted | None:
    stored = resources.store().predictions(run.id, split, task).get(task)
    return None if stored is None else counted(score_name, *stored)


def task_kind(table: ResultTable, task: str) -> TaskKind:
    """The kind of a task, which is the same in all runs of a table."""
    run_id = next(
        run_id for row in table.rows if task in row.cells for run_id in row.cells[task].run_ids.values()
    )
    return kind_of(resources.store().run(run_id).task_facts, task, table.scored_by[task])


@st.cache_resource(max_entries=24, show_spinner=False, hash_funcs=resources.BY_RUN)
def labels(run: Run, split: str, task: str) -> tuple[Labels, Labels] | None:
    """The gold and predicted labels of a run; None where they are not stored."""
    return resources.store().predictions(run.id, split, task).get(task)


def examples(config: RunConfig, split: str, task: str, gold: Labels) -> list[Sentence] | None:
    """The sentences, texts or pairs that a run was scored on; None where the corpus has changed.

    Raises CorpusError where it cannot be read.
    """
    # Without truecasing, which takes long and changes no annotation.
    annotated = _annotated(config.with_(truecase=False).to_json(), split, task)
    same = [list(sentence.labels[task]) for sentence in annotated] == [list(labels) for labels in gold]
    return annotated if same else None


@st.cache_resource(max_entries=4, show_spinner="Reading the corpus")
def _annotated(config: str, split: str, task: str) -> list[Sentence]:
    corpus = prepare(RunConfig.from_json(config))
    sentences = corpus.dev if split == "dev" else corpus.test
    return [sentence for sentence in sentences if task in sentence.labels]
