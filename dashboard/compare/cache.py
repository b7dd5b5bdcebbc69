"""What Compare keeps of predictions: counts by sentence, tests, confusions, and the words of a corpus.

Predictions never change within an attempt of a run, so each is read once for all sessions.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

import streamlit as st

from core.config import RunConfig
from core.corpora import prepare
from core.evaluation.confusion import Confusion, confusion
from core.paths import database_url
from core.store.records import Run
from dashboard.compare.closer_views import Counted, counted, tested
from dashboard.compare.views import Difference, Tested, pairs
from dashboard.shared import resources
from jobs.results import ResultTable

Labels = Sequence[Sequence[str]]
_Named = tuple[int, int]
"""A run's number and attempt."""


def sentence_tests(
    found: Iterable[Difference], table: ResultTable, baseline: str, runs: Iterable[Run]
) -> dict[tuple[str, str], Tested]:
    """The test over sentences of each difference, by row and task."""
    attempts = {run.id: run.attempt for run in runs}
    base = table.row(baseline)
    return {
        (one.row.key, one.task): _test(
            database_url(),
            table.split,
            one.task,
            table.scored_by[one.task],
            tuple(((a, attempts[a]), (b, attempts[b])) for a, b in pairs(one, base)),
        )
        for one in found
    }


def predictions_needed(found: Iterable[Difference], table: ResultTable, baseline: str) -> int:
    """How many predictions, of a run on a task, the tests of these differences read."""
    base = table.row(baseline)
    return len({(run_id, one.task) for one in found for pair in pairs(one, base) for run_id in pair})


@st.cache_resource(max_entries=5000, show_spinner=False)
def _test(
    url: str, split: str, task: str, score_name: str, named: tuple[tuple[_Named, _Named], ...]
) -> Tested:
    return tested(
        [
            (_counted(url, a, split, task, score_name), _counted(url, b, split, task, score_name))
            for a, b in named
        ]
    )


@st.cache_resource(max_entries=5000, show_spinner=False)
def _counted(url: str, named: _Named, split: str, task: str, score_name: str) -> Counted | None:
    known = resources.store().predictions(named[0], split, task).get(task)
    return None if known is None else counted(score_name, *known)


def confusions(runs: Iterable[Run], split: str, task: str, scheme: str) -> list[Confusion]:
    """The confusions of each of these runs whose predictions are stored."""
    found = (_confusion(database_url(), (run.id, run.attempt), split, task, scheme) for run in runs)
    return [one for one in found if one is not None]


@st.cache_resource(max_entries=2000, show_spinner=False)
def _confusion(url: str, named: _Named, split: str, task: str, scheme: str) -> Confusion | None:
    known = resources.store().predictions(named[0], split, task).get(task)
    return None if known is None else confusion(scheme, *known)


def labels(run: Run, split: str, task: str) -> tuple[Labels, Labels] | None:
    """The gold and predicted labels of a run; None where they are not stored."""
    return _labels(database_url(), (run.id, run.attempt), split, task)


@st.cache_resource(max_entries=24, show_spinner=False)
def _labels(url: str, named: _Named, split: str, task: str) -> tuple[Labels, Labels] | None:
    return resources.store().predictions(named[0], split, task).get(task)


def words(config: RunConfig, split: str, task: str, gold: Labels) -> list[tuple[str, ...]] | None:
    """The words of the sentences that a run was scored on; None where the corpus is no longer the same.

    Raises CorpusError where it cannot be read.
    """
    # As it is written: truecasing takes long, and changes what is read, not what is annotated.
    found = _annotated(config.with_(truecase=False).to_json(), split, task)
    return (
        [words for words, _ in found] if [list(own) for _, own in found] == [list(g) for g in gold] else None
    )


@st.cache_resource(max_entries=4, show_spinner="Reading the corpus")
def _annotated(config: str, split: str, task: str) -> list[tuple[tuple[str, ...], tuple[str, ...]]]:
    corpus = prepare(RunConfig.from_json(config))
    sentences = corpus.dev if split == "dev" else corpus.test
    return [(one.tokens, one.labels[task]) for one in sentences if task in one.labels]
