"""What filters find, and what they say where they cannot be read."""

from __future__ import annotations

import dataclasses
import time
from datetime import UTC, datetime, timedelta

import pytest

from core.config import FIELD_HELP
from core.results.filter import FIELDS, FilterError, parse_filter
from core.store import ErrorInfo, Run, RunState, Store
from tests.making import OWNER, Clock, claimed, config, split_result

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


@pytest.mark.parametrize(("day", "hours"), [("2026-10-25", 25), ("2026-03-29", 23), ("2026-06-01", 24)])
def test_a_day_has_the_hours_that_the_clocks_have(
    day: str, hours: int, store: Store, monkeypatch: pytest.MonkeyPatch
) -> None:
    (run_id,) = store.add_runs([config()])
    found = store.run(run_id)
    try:
        monkeypatch.setenv("TZ", "CET-1CEST,M3.5.0,M10.5.0/3")
        time.tzset()
        run_filter, before = parse_filter(f"created:{day}"), parse_filter(f"created<{day}")
        first = datetime.fromisoformat(day).astimezone(UTC)
        halves = [first + timedelta(minutes=30 * number) for number in range(-4, 60)]
        at = [dataclasses.replace(found, created_at=moment) for moment in halves]
        assert sum(map(run_filter.matches, at)) == 2 * hours
        assert sum(map(before.matches, at)) == 4
    finally:
        monkeypatch.undo()
        time.tzset()


@pytest.mark.parametrize(
    ("text", "ids"),
    [
        ("pos>=70", {1, 2, 3}),  # the mean of runs 1 and 2, so that both are found
        ("pos>75", {3}),
        ("test.pos<75 seed:1", {1}),
        ("dev.pos>75", {1, 2}),
        ("-pos:*", {4}),
        ("odd-name:50 archived:yes", {5}),
        ("pos>0 archived:yes", {5}),
    ],
)
def test_finds_by_the_mean_score_of_a_configuration(text: str, ids: set[int], store: Store) -> None:
    for values, dev, test in (({"seed": 1}, 0.8, 0.6), ({"seed": 2}, 0.8, 0.8), ({"epochs": 2}, 0.7, 0.9)):
        run_id = claimed(store, RunState.SUCCEEDED, **values)
        for split, score in (("dev", dev), ("test", test)):
            store.add_result(run_id, split_result(split, score))
    store.add_runs([config(epochs=3)])
    archived = claimed(store, RunState.SUCCEEDED)  # of the first configuration, whose mean it leaves alone
    result = split_result("test", 0.5)
    odd = [dataclasses.replace(score, task="odd-name") for score in result.scores[:1]]
    store.add_result(archived, dataclasses.replace(result, scores=(*result.scores, *odd)))
    store.archive([archived])
    run_filter = parse_filter(text, store=store)
    assert {run.id for run in store.runs(archived=run_filter.archived) if run_filter.matches(run)} == ids
    with pytest.raises(FilterError, match=r"Did you mean odd-name\? Tasks with scores are .*odd-name, pos\."):
        parse_filter("od-name>5", store=store)
    with pytest.raises(FilterError, match=r"no field 'train\.pos'"):
        parse_filter("train.pos>5", store=store)


@pytest.mark.parametrize(
    ("text", "position", "words"),
    [
        ("mrn lamda<0.1", 4, "no field 'lamda'. Did you mean lambda? Fields are run, state, keyword, "),
        ("lambda < 0.1", 7, "cannot read '<': write a field without spaces"),
        ("lambda<much", 0, "lambda is a number, not 'much'"),
        ("lambda:0.0*", 0, "lambda takes no '*' after a value; lambda:* finds runs that have one."),
        ("created:2026-11-01*", 0, "created takes no '*' after a value"),
        ("seed:nan", 0, "seed is a number"),
        ("mrn status:broken", 4, "state is one of queued, running, stopping, succeeded, failed, stopped, "),
        ("paradigm:mnr", 0, "paradigm is one of stl, mtl, mrn, other, not 'mnr'"),
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


def test_a_stopped_run_is_found_by_that_word_and_by_the_stored_one(store: Store) -> None:
    (run_id,) = store.add_runs([config()])
    store.request_stop(run_id)
    (run,) = store.runs()
    assert parse_filter("state:stopped").matches(run)
    assert parse_filter("state:cancelled").matches(run)
    assert not parse_filter("state:stopping").matches(run)


def test_every_field_of_a_description_can_be_asked_for(runs: list[Run]) -> None:
    assert set(FIELD_HELP) <= set(FIELDS)
    for name in FIELDS:
        assert parse_filter(f"{name}:*").matches(runs[0]) in (True, False)
        assert FIELDS[name].description


def test_archived_runs_are_read_only_where_asked_for() -> None:
    assert parse_filter("mrn keyword:paper").archived is False
    assert parse_filter("-archived:no").archived is None
