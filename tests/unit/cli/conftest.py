"""A laboratory at a terminal, in which no worker is started, and a small corpus."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Iterator
from functools import partial
from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner

from core.corpora import prepare
from core.store import Store
from jobs.cli import app, study
from jobs.studies.follow import follow
from jobs.worker import pool
from tests.making import config, epoch_metrics, finished, run_facts, snapshot, split_result, step_metrics
from tests.studying import Workers


class Laboratory:
    """A store in the test's own MRNLAB_HOME, and a terminal."""

    def __init__(self) -> None:
        self.store = Store.open()
        self.started = 0

    def call(self, *arguments: str) -> Any:
        return CliRunner().invoke(app, list(arguments), catch_exceptions=False)

    def answer(self, *arguments: str) -> str:
        """Standard output of a call that must succeed."""
        result = self.call(*arguments)
        assert result.exit_code == 0, result.stderr
        return str(result.stdout)

    def json(self, *arguments: str) -> Any:
        return json.loads(self.answer(*arguments, "--json"))

    def refusal(self, *arguments: str) -> str:
        """The one sentence of a call that must be refused, and must change nothing."""
        before = self.store.runs()
        result = self.call(*arguments)
        assert result.exit_code == 2, (result.stdout, result.stderr)
        assert result.stdout == ""
        (sentence,) = result.stderr.splitlines()
        assert self.store.runs() == before
        return str(sentence)

    def finished(self, **values: Any) -> int:
        """A run that succeeded, with all that one leaves behind."""
        steps = [event for step in (1, 2) for event in (step_metrics(step), snapshot(step, seed=step))]
        score = 0.7 + values.get("seed", 1) / 100
        results = [split_result(split, score) for split in ("dev", "test")]
        return finished(self.store, config(**values), run_facts(), *steps, epoch_metrics(2, 1, 0.5), *results)


def launch_arguments(corpus: Path, *more: str) -> tuple[str, ...]:
    return ("launch", "--corpus", str(corpus), "--columns", "tokens,ner,toy", "--tasks", "ner,toy", *more)


@pytest.fixture
def lab(laboratory: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Laboratory]:
    """A laboratory in which no worker is started."""
    made = Laboratory()

    def count(*_arguments: object) -> object:
        made.started += 1
        return subprocess.Popen([sys.executable, "-c", ""])

    monkeypatch.setattr(pool, "start", count)
    yield made
    made.store.close()


@pytest.fixture
def studies_are_trained(monkeypatch: pytest.MonkeyPatch) -> None:
    """Workers that really train the runs of a study, in this process."""
    from core.training.trainer import train

    engine = Workers(at_once=30, train=train, prepare=prepare)
    monkeypatch.setattr(study, "follow", partial(follow, engine=engine, sleep=lambda _: None))
