"""mrnlab decide: what it prints, what goes on, what is refused in one sentence."""

from __future__ import annotations

from functools import partial

import pytest

from core.evaluation.looks import look_levels
from jobs.cli import decide as verb
from jobs.studies.decide import decide
from tests.deciding import score_of, workers
from tests.making import config
from tests.studying import finished
from tests.unit.cli.conftest import Laboratory


@pytest.fixture
def pair(lab: Laboratory, monkeypatch: pytest.MonkeyPatch) -> tuple[str, str]:
    """A run of MRN and one of MTL, and workers that train at once."""
    monkeypatch.setattr(verb, "decide", partial(decide, engine=workers(), sleep=lambda _: None))
    runs = [config(paradigm=each, seed=1) for each in ("mrn", "mtl")]
    first, second = (finished(lab.store, run, score=score_of) for run in runs)
    return str(first), str(second)


def test_seeds_are_added_until_it_is_decided(lab: Laboratory, pair: tuple[str, str]) -> None:
    result = lab.call("decide", *pair, "--looks", "3,5,8")
    assert result.exit_code == 0
    assert "looks at 3, 5, 8 seeds, shape obrien-fleming, alpha 0.05 over 2 differences" in result.stderr
    head, _, *rows = result.stdout.splitlines()
    assert head.endswith(" less MTL")
    assert [" ".join(row.split()).partition(" +")[0] for row in rows] == [
        f"{task} second of three looks: higher," for task in ("pos", "ner")
    ]
    assert " against MTL: pos, second of three looks: higher" in lab.call("results").stderr
    # The same command, and the shorter one, train nothing more.
    for again in (("--looks", "3,5,8"), ()):
        assert lab.answer("decide", *pair, *again) == result.stdout
    assert len(lab.store.runs()) == 10


def test_a_dry_run_declares_nothing(lab: Laboratory, pair: tuple[str, str]) -> None:
    lines = lab.answer("decide", *pair, "--dry-run", "--most-seeds", "10").splitlines()
    assert [line.split()[:3] for line in lines if line.split()[:1] in (["5"], ["8"], ["10"])] == [
        [str(look), f"{level:.3g}", runs]
        for look, level, runs in zip((5, 8, 10), look_levels((5, 8, 10), 0.025), "864", strict=True)
    ]
    assert lab.store.plans() == []
    document = lab.json("decide", *pair, "--dry-run")
    assert [look["runs"] for look in document["to_come"]] == [8, 6, 8, 16]
    assert document["plan"]["seeds"][:3] == [1, 2, 3]
    assert lab.started == 0
    assert len(lab.store.runs()) == 2


def test_after_its_time_it_exits_1_and_goes_on_when_asked(
    lab: Laboratory, pair: tuple[str, str], monkeypatch: pytest.MonkeyPatch
) -> None:
    with monkeypatch.context() as patch:
        patch.setattr("jobs.studies.decide._is_over", lambda *_: True)
        first = lab.call("decide", *pair, "--minutes", "5", "--looks", "3,5,8")
    assert first.exit_code == 1
    assert "The time is over" in first.stderr
    assert "before the first of three looks: 3 seeds" in first.stdout
    assert "higher" in lab.answer("decide", *pair)


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (("--looks", "8,5"), "Looks at 8, 5 seeds: each look needs more seeds than the one before it"),
        (("--looks", "1,5"), "one seed has no spread"),
        (("--looks", ","), "is no list of numbers of seeds"),
        (("--looks", "5,x"), "'5,x' is no list of numbers of seeds"),
        (("--matters", "-0.1"), "matters: -0.1 is no difference of scores; name points from 0 to 100"),
        (("--matters", "nan"), "matters: nan is no difference of scores"),
        (("--matters", "much"), "matters: 'much' is no number of points"),
        (("--minutes", "0"), "minutes: '0' is not a number above 0"),
        (("--minutes", "nan"), "minutes: 'nan' is not a number above 0"),
        (("--alpha", "2"), "alpha: 2 is no probability"),
        (("--shape", "flat"), "--shape: 'flat' is not one of obrien-fleming, pocock"),
        (("--shape", "pocock"), "the first look needs at least 8 seeds"),
        (("--most-seeds", "1"), "--most-seeds: '1' is not a whole number from 2"),
        (("--task", "chunk"), "have no test score of chunk in common; their common tasks: pos, ner"),
        (("--task", ","), "names no task"),
    ],
)
def test_bad_input_is_refused_in_one_sentence(
    lab: Laboratory, pair: tuple[str, str], arguments: tuple[str, ...], words: str
) -> None:
    assert words in lab.refusal("decide", *pair, *arguments)
    assert lab.store.plans() == []


def test_runs_that_cannot_be_compared(lab: Laboratory, pair: tuple[str, str]) -> None:
    assert "is the baseline itself" in lab.refusal("decide", pair[0], pair[0])
    elsewhere = finished(lab.store, config(corpus="other", paradigm="mtl"))
    assert "only scores on the same text can be compared" in lab.refusal("decide", pair[0], str(elsewhere))
    (queued,) = lab.store.add_runs([config(paradigm="mtl", seed=9)])
    assert f"Run {queued} has no test score" in lab.refusal("decide", pair[0], str(queued))
    assert "There is no run 99" in lab.refusal("decide", "99", pair[0])


def test_another_plan_for_the_same_difference_is_refused(lab: Laboratory, pair: tuple[str, str]) -> None:
    lab.answer("decide", *pair, "--looks", "3,5,8")
    sentence = lab.refusal("decide", *pair, "--looks", "3,6,9")
    assert "was declared before: looks at 3, 5, 8 seeds" in sentence
    assert "was declared before" in lab.refusal("decide", *reversed(pair))
