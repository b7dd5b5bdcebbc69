"""Reports on long runs: a file of at most ten megabytes, which says what it does not show."""

from __future__ import annotations

import contextlib
import re
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest

from core.errors import MRNLabError
from core.events import Event, Snapshot, SplitResult, TaskFacts
from core.metrics import TOTAL, EpochMetrics
from core.mrn.relations import Relations
from core.report import PARTS, Report, ReportAsked
from core.store import Store
from core.tasks import score_task
from dashboard.report import build as building
from dashboard.report.build import MOST_BYTES, build
from dashboard.report.training import DETAILS
from tests.making import config, finished, run_facts

_TAGS = tuple(f"TAG{number}" for number in range(300))
_KINDS = {"pos": ("plain", _TAGS, "accuracy"), "ner": ("iob2", ("O", "B-PER"), "f1_conll")}
_NAMES = {f"{task}:{label}": task for task, (_, labels, _) in _KINDS.items() for label in labels}
_SNAPSHOTS, _EPOCHS = 80, 1_000


def _fill(store: Store) -> tuple[int, ...]:
    """Two seeds of MRN with 302 labels, 1,000 epochs and 80 snapshots."""
    facts = run_facts(
        total_steps=_EPOCHS,
        tasks=tuple(
            TaskFacts(task, kind, labels, score, train_sentences=40, train_tokens=400)
            for task, (kind, labels, score) in _KINDS.items()
        ),
        label_names=tuple(_NAMES),
        label_owners=tuple((task,) for task in _NAMES.values()),
    )
    runs = []
    for seed in (1, 2):
        random = np.random.default_rng(seed)
        results = (_result(split, random) for split in ("dev", "test"))
        events: list[Event] = [facts, *_epochs(random), *_snapshots(random), *results]
        runs.append(finished(store, config(epochs=_EPOCHS, seed=seed), *events))
    return tuple(runs)


def _epochs(random: np.random.Generator) -> Iterator[EpochMetrics]:
    for epoch, score in enumerate(random.random(_EPOCHS), start=1):
        values = {(task, "score"): float(score) for task in (*_KINDS, TOTAL)}
        yield EpochMetrics(epoch, epoch, float(epoch), values)


def _snapshots(random: np.random.Generator) -> Iterator[Snapshot]:
    factors = random.normal(size=(len(_NAMES), 8))
    for step in np.linspace(1, _EPOCHS, _SNAPSHOTS).astype(int).tolist():
        factors += 0.1 * random.normal(size=factors.shape)
        labels = factors @ factors.T + np.eye(len(factors))
        features = random.normal(size=(16, 3))
        yield Snapshot(step, step, Relations(labels[:2, :2], labels, features, feature_diagonal=0.1))


def _result(split: str, random: np.random.Generator) -> SplitResult:
    gold = {task: [[labels[-1], labels[0]] for _ in range(40)] for task, (_, labels, _) in _KINDS.items()}
    predicted = {
        task: [[str(random.choice(labels[-2:])), labels[0]] for _ in range(40)]
        for task, (_, labels, _) in _KINDS.items()
    }
    scores = (
        score_task(task, kind, gold[task], predicted[task], details=True)
        for task, (kind, _, _) in _KINDS.items()
    )
    return SplitResult(split, 1, tuple(scores), predicted, gold)


@pytest.fixture(scope="module")
def asked(tmp_path_factory: pytest.TempPathFactory) -> ReportAsked:
    """A report on these runs; no test changes them."""
    home = tmp_path_factory.mktemp("long")
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("MRNLAB_HOME", str(home))
        with contextlib.closing(Store.open(f"sqlite:///{home / 'runs.db'}")) as store:
            return ReportAsked(store.url, _fill(store))


@pytest.fixture
def store(asked: ReportAsked, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Iterator[Store]:
    """Their store."""
    monkeypatch.setenv("MRNLAB_HOME", str(tmp_path))
    with contextlib.closing(Store.open(asked.url)) as opened:
        yield opened


def size(report: Report) -> int:
    return len(report.html.encode())


def test_a_long_training_is_thinned_to_ten_megabytes(store: Store, asked: ReportAsked) -> None:
    report = build(store, asked)
    assert size(report) <= MOST_BYTES
    assert not {"relations", "curves"} & report.missing.keys()
    assert f"Thinned: {DETAILS[1].steps} of the {_SNAPSHOTS} stored steps are shown." in report.html
    assert f"Thinned: about {DETAILS[1].points} points a line." in report.html


def test_what_is_too_large_after_that_is_left_out_with_the_reason(
    store: Store, asked: ReportAsked, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(building, "MOST_BYTES", 2_000_000)
    report = build(store, ReportAsked(asked.url, asked.runs, parts=("answer", "curves", "relations")))
    assert size(report) <= 2_000_000
    assert report.missing.keys() == {"relations"}
    assert re.fullmatch(
        r"It would take \d\.\d MB, and a report has at most 2\. Choose fewer runs\.",
        report.missing["relations"],
    )
    assert f"Thinned: about {DETAILS[-1].points} points a line." in report.html
    drawn = re.findall(r'id="drawn-(\d+)"', report.html)
    things = re.findall(r'\{"component":', report.html)
    assert [int(number) for number in drawn] == list(range(len(things)))
    assert len(drawn) == 1, "the chart of curves"


def test_without_room_for_any_part_there_is_no_report(
    store: Store, asked: ReportAsked, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(building, "MOST_BYTES", 1_000)
    with pytest.raises(MRNLabError, match=r"The figures of these 2 runs take 0\.0 MB.*Choose fewer runs"):
        build(store, ReportAsked(asked.url, asked.runs, parts=tuple(PARTS)[:2]))
