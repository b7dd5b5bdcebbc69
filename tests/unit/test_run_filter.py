"""What filters find, and what they say where they cannot be read."""

from __future__ import annotations

from datetime import UTC, datetime

import pytest

from core.config import FIELD_HELP
from core.store import ErrorInfo, Run, RunState, Store
from jobs.run_filter import FIELDS, FilterError, parse_filter
from tests.making import OWNER, Clock, claimed, config

DAY = 86_400.0


@pytest.fixture(scope="module")
def runs() -> list[Run]:
    """Five runs, a day apart; the last one is archived."""
    clock = Clock(datetime(2026, 11, 1, 12, tzinfo=UTC).timestamp())
    store = Store.open("sqlite://", clock=clock)
    first = claimed(store, lambda_=0.01, encoder="bert-base-cased")
    clock.now += 600
    store.finish(first, RunState.SUCCEEDED, owner=OWNER)
    clock.now += DAY
    second = claimed(store, lambda_=0.1, seed=2)
    store.finish(second, RunState.FAILED, error=ErrorInfo("OutOfMemoryError", "CUDA out of memory.", ""))
    clock.now += DAY
    store.add_runs([config(paradigm="mtl", corpus="/data/My Corpus")], sweep="Try it, 2026-11-03")
    clock.now += DAY
    store.add_runs([config(paradigm="stl", tasks=("ner",), fraction=0.05)])
    clock.now += DAY
    last = claimed(store, RunState.LOST, paradigm="mtl", corpus="apart:demo?tokens=300")
    store.add_keywords([first, last], ["paper", "to check"])
    store.archive([last])
    listed = store.runs(archived=None)
    store.close()
    return listed


@pytest.mark.parametrize(
    ("text", "ids"),
    [
        ("", {1, 2, 3, 4, 5}),
        ("mrn", {1, 2}),
        ("MRN -0.1", {1}),
        ("1", {1, 2}),  # the run, and the run whose note names it
        ("corpus", {3}),
        ('"my corpus"', {3}),
        ("paradigm:mrn,stl", {1, 2, 4}),
        ("paradigm:mrn lambda<0.1 status:succeeded", {1}),
        ("lambda:*", {1, 2}),
        ("λ>=0.1", {2}),
        ("lambda!=0.1", {1, 3, 4, 5}),
        ("lambda:0.10", {2}),
        ("state:active", {3, 4}),
        ("state:running,lost", {3, 4, 5}),
        ("encoder:BERT*", {1}),
        ("encoder:bert", set()),
        ('encoder:"bert*"', set()),
        ("-encoder:minilm", {1}),
        ("tasks:ner,chunk", {1, 2, 3, 4, 5}),
        ("-tasks:pos", {4}),
        ("corpus:demo", {1, 2, 4}),
        ('corpus:"My Corpus"', {3}),
        ("corpus:apart:demo?tokens=300", {5}),
        ("keyword:to-check", {1, 5}),
        ("keyword:* archived:no", {1}),
        ("tag:* archived:no", {1}),
        ("archived:yes", {5}),
        ("error:memory", {2}),
        ("sweep:try", {3}),
        ("run>2 run<=4", {3, 4}),
        ("created>2026-11-03 -created>2026-11-05", {3, 4}),
        ("created:2026-11-01", {1}),
        ("created<2d", {4, 5}),
        ("ended:*", {1, 2, 5}),
        ("minutes>=10", {1}),
        ("fraction<1", {4}),
        ("truecase:no seed:2", {2}),
    ],
)
def test_finds(text: str, ids: set[int], runs: list[Run]) -> None:
    run_filter = parse_filter(text, datetime(2026, 11, 5, 14, tzinfo=UTC))
    assert {run.id for run in runs if run_filter.matches(run)} == ids


@pytest.mark.parametrize(
    ("text", "position", "words"),
    [
        ("mrn lamda<0.1", 4, "no field 'lamda'. Did you mean lambda? Fields are run, state, keyword, "),
        ("lambda < 0.1", 7, "without spaces"),
        ("lambda<much", 0, "lambda is a number, not 'much'"),
        ("seed:nan", 0, "seed is a number"),
        ("mrn status:broken", 4, "state is one of queued, running, "),
        ("paradigm:mnr", 0, "paradigm is one of stl, mtl, mrn, not 'mnr'"),
        ("encoder<bert", 0, "encoder has no order; write encoder:value"),
        ("created>yesterday", 0, "created>2026-11-01"),
        ("archived:maybe", 0, "yes or no"),
        ("keyword:paper,", 0, "needs a value"),
        ("mrn keyword: paper", 4, "needs a value"),
        ('mrn "to check', 4, "not closed"),
        ("mrn -", 4, "a minus needs"),
    ],
)
def test_says_what_is_wrong_and_where(text: str, position: int, words: str) -> None:
    with pytest.raises(FilterError) as refused:
        parse_filter(text)
    assert refused.value.position == position
    assert words in str(refused.value)
    assert f"Character {position + 1}:" in str(refused.value)


def test_every_field_of_a_description_can_be_asked_for(runs: list[Run]) -> None:
    assert set(FIELD_HELP) <= set(FIELDS)
    for name in FIELDS:
        assert parse_filter(f"{name}:*").matches(runs[0]) in (True, False)
        assert FIELDS[name].description


def test_archived_runs_are_read_only_where_asked_for() -> None:
    assert parse_filter("mrn keyword:paper").archived is False
    assert parse_filter("-archived:no").archived is None
