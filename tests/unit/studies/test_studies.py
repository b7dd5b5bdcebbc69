"""Studies run to their end in a real store, with workers that train at once."""

from __future__ import annotations

import contextlib
import os
import threading
from collections import Counter
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from itertools import groupby
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from core.config import RunConfig
from core.errors import MRNLabError, TrainingError
from core.store import RunState, Store
from core.studies import STUDIES, Setting
from core.studies.study import DevByRun, next_runs
from jobs.queue import maintenance
from jobs.queue.submit import check
from jobs.studies.follow import follow, start_study
from jobs.studies.progress import (
    SettingCounts,
    StudyOptions,
    StudyRuns,
    counts_by_setting,
    settings_with_runs,
)
from tests.making import NoWorkers
from tests.small_training import Ended
from tests.studying import Workers, finished, scored, setting, study, train


@pytest.mark.parametrize("name", STUDIES)
def test_every_registered_study_makes_runs_on_the_corpora_that_it_names(name: str) -> None:
    """So a store that has no run on these has no run of the study, which is then not built."""
    made = STUDIES[name]
    assert made.name == name
    for setting_runs in StudyOptions(name).settings():
        assert next_runs(setting_runs, DevByRun({}), ())
        runs = setting_runs.runs()
        assert {run.corpus for run in runs} <= made.corpora
        assert set(setting_runs.setting.targets) <= {task for run in runs for task in run.tasks}


ALL = 3 + 6 + 6 + 1
"""MTL and STL (two tasks) with three seeds, three strengths of MRN with two, one of them with the third."""


class Terminal:
    """Runs the toy study."""

    def __init__(self, store: Store, *settings: Setting) -> None:
        self.store = store
        self.study = study(*settings)
        self.settings = settings_with_runs(self.study, self.study.settings)
        self.lines: list[str] = []

    def follow(self, **options: Any) -> bool:
        self.lines.clear()
        defaults: dict[str, Any] = {"engine": Workers(), "sleep": lambda _: None}
        return follow(self.store, self.settings, self.lines.append, **(defaults | options))

    def counts_by_setting(self) -> list[SettingCounts]:
        progress = StudyRuns(self.store, self.settings, may_read=False).look()
        return counts_by_setting(self.store, progress)

    def descriptions(self) -> Counter[str]:
        return Counter(run.config.to_json() for run in self.store.runs())


class TestFollow:
    def test_killed_and_started_again_it_goes_on(self, store: Store) -> None:
        left = iter([None] * 3)

        def interrupted(_seconds: float) -> None:
            if next(left, "over") == "over":
                raise KeyboardInterrupt

        terminal = Terminal(store)
        with pytest.raises(KeyboardInterrupt):
            terminal.follow(sleep=interrupted, engine=Workers(at_once=1))
        assert 0 < len(store.runs()) < ALL
        assert terminal.follow()
        assert len(store.runs()) == ALL
        assert set(terminal.descriptions().values()) == {1}

    def test_started_twice_at_once_it_queues_each_run_once(
        self, store: Store, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        """Another command queues the same runs while ours checks them."""
        terminal, other = Terminal(store), Terminal(store)

        def interrupted(_seconds: float) -> None:
            raise KeyboardInterrupt

        def check_meanwhile(configs: list[RunConfig]) -> tuple[str, ...]:
            monkeypatch.setattr("jobs.studies.follow.check", check)
            with pytest.raises(KeyboardInterrupt):
                other.follow(engine=NoWorkers(), sleep=interrupted)
            assert store.counts()[RunState.QUEUED] > 0
            return check(configs)

        monkeypatch.setattr("jobs.studies.follow.check", check_meanwhile)
        assert terminal.follow()
        assert len(store.runs()) == ALL
        assert set(terminal.descriptions().values()) == {1}

    def test_runs_launched_by_hand_count_and_stopped_ones_are_queued_again(self, store: Store) -> None:
        terminal = Terminal(store)
        (mtl,) = terminal.settings[0].candidates["mtl"]
        finished(store, mtl.runs[2][0], "mine")
        newest = finished(store, mtl.runs[2][0], "mine")
        queued, stopped = store.add_runs([*mtl.runs[3], *mtl.runs[1]])
        store.request_stop(stopped)
        runs = StudyRuns(store, terminal.settings).look()
        assert runs.succeeded[mtl.runs[2][0]].id == newest
        assert [run.id for run in runs.active.values()] == [queued]
        assert terminal.follow()
        assert len(store.runs()) == ALL + 1
        assert store.run(newest).sweep == "mine"
        assert store.state(queued) is RunState.SUCCEEDED
        assert store.run(stopped).attempt == 2

    def test_a_task_without_development_words_has_no_development_score(self, store: Store) -> None:
        terminal = Terminal(store)
        (mtl,) = terminal.settings[0].candidates["mtl"]
        (run,) = mtl.runs[1]
        pos, ner = scored(run, "dev").scores
        number = finished(store, run)
        store.add_result(number, replace(scored(run, "dev"), scores=(pos, replace(ner, score=0.0, tokens=0))))
        assert StudyRuns(store, terminal.settings).look().dev.by_run == {run: {"pos": pos.score}}

    def test_what_fails_is_told_once_and_left(self, store: Store) -> None:
        def fails(config: Any, *args: Any, **options: Any) -> Ended:
            if config.lambda_ == 0.1 and config.seed == 2:
                raise TrainingError("The loss is not a number.")
            return train(config, *args, **options)

        terminal = Terminal(store)
        assert not terminal.follow(engine=Workers(train=fails))
        (failed,) = store.runs(states={RunState.FAILED})
        (line,) = [line for line in terminal.lines if "not a number" in line]
        assert f"`mrnlab retry {failed.id}`" in line
        (result,) = StudyRuns(store, terminal.settings).results()
        assert (result.outcome("mrn").chosen, result.outcome("mrn").failed) == ("λ=0.01", 1)
        before = len(store.runs())
        assert not terminal.follow()
        assert len(store.runs()) == before

    def test_lost_runs_are_queued_again_but_not_for_ever(self, store: Store) -> None:
        def dies(config: Any, *args: Any, **options: Any) -> Ended:
            if config.lambda_ == 1:
                (run,) = store.runs(states={RunState.RUNNING})
                store.mark_lost(run.id, f"The worker of run {run.id} stopped answering 70 s ago.")
            return train(config, *args, **options)

        terminal = Terminal(store)
        assert not terminal.follow(engine=Workers(train=dies))
        lost = store.runs(states={RunState.LOST})
        assert len(lost) == 2
        assert {run.attempt for run in lost} == {3}
        assert terminal.follow()  # asked for again, they are tried again
        assert not store.runs(states={RunState.LOST})

    def test_a_setting_that_cannot_be_run_is_left_out(self, store: Store, tmp_path: Path) -> None:
        small = replace(setting("small"), methods=("mtl",))
        terminal = Terminal(store, setting("gone", corpus=str(tmp_path / "gone")), small)
        assert not terminal.follow()
        assert len(store.runs()) == 3
        (line,) = [line for line in terminal.lines if line.startswith("gone is left out")]
        assert str(tmp_path / "gone") in line

    def test_settings_are_queued_one_after_another(self, store: Store) -> None:
        settings = [
            replace(setting(f"s{place}", fraction=0.1 * place), methods=("mtl",)) for place in range(1, 4)
        ]
        terminal = Terminal(store, *settings)
        seen = []

        def look(_seconds: float) -> None:
            seen.append(len(store.runs(states={RunState.QUEUED})))

        assert terminal.follow(sleep=look)
        assert len(store.runs()) == 3 * 3
        assert max(seen) <= 2 * 3
        ended = [line.split()[0] for line in terminal.lines if "is done" in line]
        assert ended == ["s1", "s2", "s3"]

    def test_workers_that_never_start(self, store: Store, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setattr(maintenance, "FIRST_REST_S", 0.01)

        class Vain(Workers):
            def ensure_workers(self, store: Store) -> int:
                return 1

        with pytest.raises(MRNLabError, match="workers ended right after their start"):
            Terminal(store).follow(engine=Vain())


class TestOutstanding:
    def test_counts_what_is_to_come(self, store: Store) -> None:
        terminal = Terminal(store, setting("one"), setting("two"), setting("three", fraction=0.5))
        plan = terminal.counts_by_setting()
        # The second shares all runs with the first.
        counts = [(part.setting, part.search, part.final) for part in plan]
        assert counts == [("one", 6, 10), ("two", 0, 0), ("three", 6, 10)]
        assert [part.seconds for part in plan] == [None, 0, None]  # no past run tells
        finished(store, terminal.settings[0].candidates["mrn"][0].runs[1][0])
        left, *_ = terminal.counts_by_setting()
        assert (left.search, left.done, left.runs) == (5, 1, 16)


def test_two_pages_that_start_a_study_leave_one_process(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(STUDIES, "toy", study())
    both, started = threading.Barrier(2), []

    def start(command: Sequence[str], _store_url: str) -> SimpleNamespace:
        with contextlib.suppress(threading.BrokenBarrierError):
            both.wait(timeout=1)  # where both come here, neither has seen the other's
        started.append(command)
        return SimpleNamespace(pid=os.getpid(), poll=lambda: None)

    monkeypatch.setattr("jobs.studies.followers.start", start)
    with contextlib.closing(Store.open()) as store, ThreadPoolExecutor(2) as pages:
        assert list(pages.map(lambda version: start_study(store, version), [StudyOptions("toy")] * 2)) == [
            [],
            [],
        ]
        assert len(started) == 1
        queued = [run.config for run in store.runs()]
        assert len(queued) == len(set(queued)) > 0


def test_settings_of_a_part_stand_together_and_no_part_has_a_comma() -> None:
    """A report goes through settings part by part, and lists of parts are separated by commas."""
    for name, registered in STUDIES.items():
        parts = [part for part, _ in groupby(each.part for each in registered.settings)]
        assert tuple(parts) == registered.parts(), name
        assert "," not in "".join(parts), name
