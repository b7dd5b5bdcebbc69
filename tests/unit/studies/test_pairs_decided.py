"""Seeds until decided over the pairs of a study: which pair comes first, and what it trains."""

from __future__ import annotations

import contextlib
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

import pytest

from core.config import RunConfig
from core.evaluation.comparison import HIGHER
from core.results.plan import LOOKS
from core.store import Store
from core.studies import STUDIES
from core.studies.study import SettingRuns, with_runs
from jobs.studies import decide
from jobs.studies.pairs_decided import decide_pairs, pair_plans
from tests.deciding import workers
from tests.studying import finished

NOISE = (0.0, 0.013, -0.011, 0.006, -0.008, 0.01, -0.005)
"""What a gain varies by, in the order of seeds."""


def gain(tasks: tuple[str, ...], seed: int) -> float:
    """Chunk and POS gain from each other clearly, the others nothing."""
    return (0.04 if set(tasks) == {"chunk", "pos"} else 0.0) + NOISE[seed % len(NOISE)]


def score(run: RunConfig, _split: str) -> float:
    """The mean over a run's tasks; every task of a run has it."""
    if run.paradigm != "mtl" or len(run.tasks) != 2:
        return 0.5 + run.seed / 1000
    return 0.5 + run.seed / 1000 + gain(run.tasks, run.seed)


@pytest.fixture
def store(laboratory: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Store]:
    monkeypatch.setattr(decide, "check_text", lambda _: None)  # these runs have the text of no corpus
    with contextlib.closing(Store.open()) as opened:
        yield opened


def demo_pairs() -> list[SettingRuns]:
    """The pairs of the small version, whose first three seeds are there."""
    study = STUDIES["transfer"]
    of_demo = [each for each in study.settings if each.part == "demo" and len(each.targets) == 2]
    return [with_runs(study, setting) for setting in of_demo]


def test_the_pair_nearest_a_verdict_comes_first(store: Store) -> None:
    settings = demo_pairs()
    for run in dict.fromkeys(run for each in settings for run in each.runs()):
        finished(store, run, score=score)
    pairs = pair_plans(store, settings)
    assert len(pairs) == 6
    assert {pair.state.plan.alpha for pair in pairs} == {0.025}  # two auxiliary tasks of each main task
    assert {pairs[0].main, pairs[0].aux} == {"chunk", "pos"}
    assert pairs[0].more < pairs[-1].more

    lines: list[str] = []
    ended = decide_pairs(store, settings, lines.append, engine=workers(score), sleep=lambda _: None)
    assert all(pair.state.has_ended for pair in ended)
    first = f"{pairs[0].main} beside {pairs[0].aux}: first of four looks"
    assert lines[0].startswith(first)
    decided = {frozenset((pair.main, pair.aux)) for pair in ended if pair.state.decided_at}
    assert decided == {frozenset(("chunk", "pos"))}
    assert {at.verdict for pair in ended if pair.state.decided_at for at in pair.state.looks.values()} <= {
        HIGHER,
        "undecided",
    }
    seeds = Counter((run.config.paradigm, run.config.tasks) for run in store.runs())
    assert max(seeds.values()) == LOOKS[-1]

    # What was declared goes on: the same call trains nothing more.
    before = len(store.runs())
    decide_pairs(store, settings, lines.append, engine=workers(score), sleep=lambda _: None)
    assert len(store.runs()) == before


def test_no_look_is_begun_after_the_time(store: Store) -> None:
    settings = demo_pairs()
    for run in dict.fromkeys(run for each in settings for run in each.runs()):
        finished(store, run, score=score)
    before, lines = len(store.runs()), list[str]()
    pairs = decide_pairs(store, settings, lines.append, ends_at=store.now() - 1, engine=workers(score))
    assert not any(pair.state.has_ended for pair in pairs)
    assert len(store.runs()) == before
    assert all(line.endswith("The same command with more time goes on.") for line in lines)
