"""Trainings that are cut off and go on: what they record, and that it is what one whole training records."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np

from core.checkpoints import Checkpoint
from core.checkpoints.shared_storage import Artefacts
from core.config import RunConfig
from core.corpora.types import Corpus
from core.events import Event, Note, Saved, Snapshot, SplitResult
from core.metrics import EpochMetrics, StepMetrics
from core.training.trainer import Outcome, train
from tests.toys import config as toy_config

STEPS = 15


class Cut(BaseException):
    """The process ends here."""


class Record:
    """What a store would have: events are lost unless they were settled, and the first value stays."""

    def __init__(self) -> None:
        self.waiting: list[Event] = []
        self.numbers: dict[tuple[str, int, tuple[str, str]], float] = {}
        self.snapshots: dict[int, Snapshot] = {}
        self.results: dict[str, SplitResult] = {}
        self.notes: list[Note] = []
        self.saved: list[Saved] = []

    def settle(self) -> None:
        for event in self.waiting:
            match event:
                case StepMetrics() | EpochMetrics():
                    for key, value in event.values.items():
                        self.numbers.setdefault((type(event).__name__, event.step, key), value)
                case Snapshot():
                    self.snapshots[event.step] = event
                case SplitResult():
                    self.results[event.split] = event
                case Saved():
                    self.saved.append(event)
                case Note() if event.step is None or event not in self.notes:
                    self.notes.append(event)
        self.waiting = []

    @property
    def last_step(self) -> int:
        return max((step for _, step, _ in self.numbers), default=0)


class Laboratory:
    """Trains one configuration again and again, each time until it is cut off."""

    def __init__(
        self,
        config: RunConfig,
        folder: Path,
        data: Corpus,
        every: float = 0.0,
        shared: Artefacts | None = None,
    ) -> None:
        self.config, self.folder, self.data, self.every = config, folder, data, every
        self.shared = shared
        self.record = Record()
        self.attempts = self.steps = 0

    def attempt(
        self, tell: Callable[[Event], None] = lambda event: None, stop_at: int | None = None
    ) -> Outcome:
        """One attempt, with a clock that counts steps: states are due every so many of them."""

        def sink(event: Event) -> None:
            tell(event)
            self.record.waiting.append(event)

        def stepping() -> bool:
            self.steps += 1
            return self.steps == stop_at

        self.record.waiting = []  # what the former attempt had not settled is lost
        self.attempts += 1
        checkpoint = Checkpoint(
            self.folder,
            attempt=self.attempts,
            recorded=self.record.last_step,
            every_s=self.every,
            settle=self.record.settle,
            clock=lambda: self.steps,
            shared=self.shared,
        )
        ended = train(self.config, self.data, sink=sink, checkpoint=checkpoint, should_stop=stepping)
        self.record.settle()
        return ended

    def until_done(self, tell: Callable[[Event], None]) -> tuple[Outcome, int]:
        """Attempts until one is not cut off; how many were."""
        for number in range(200):
            try:
                return self.attempt(tell), number
            except Cut:
                continue
        raise AssertionError("it never ended")


def cut_at(kind: type[Any]) -> Callable[[Event], None]:
    """Cuts the process off when it tells something of that kind."""

    def tell(event: Event) -> None:
        if isinstance(event, kind):
            raise Cut

    return tell


def files(folder: Path) -> dict[str, bytes]:
    """The bytes of each file, by its path in the folder."""
    return {str(path.relative_to(folder)): path.read_bytes() for path in folder.rglob("*") if path.is_file()}


def assert_same(pieces: Laboratory, expected: Laboratory) -> None:
    """Everything that was recorded and saved is equal, bit for bit."""
    assert pieces.record.numbers == expected.record.numbers
    assert pieces.record.results == expected.record.results
    assert pieces.record.snapshots.keys() == expected.record.snapshots.keys()
    for step, snapshot in expected.record.snapshots.items():
        for mode in ("task", "label", "feature_factor", "feature_diagonal"):
            same = getattr(pieces.record.snapshots[step].relations, mode)
            np.testing.assert_array_equal(same, getattr(snapshot.relations, mode))
    of_its_course = [note for note in expected.record.notes if note.step is not None]
    assert [note for note in pieces.record.notes if note.step is not None] == of_its_course
    assert files(pieces.folder) == files(expected.folder)


def cut_at_every_state(
    config: RunConfig, data: Corpus, folder: Path, every: int = 4
) -> tuple[Laboratory, Outcome, int]:
    """Trains at once, and cut off at each state that is saved: both are the same. The first, its outcome, and
    how often the other was cut off.
    """
    whole, pieces = (
        Laboratory(config, folder / "whole", data),
        Laboratory(config, folder / "pieces", data, every),
    )
    outcome = whole.attempt()
    ended, cuts = pieces.until_done(cut_at(Saved))
    assert ended.steps == outcome.steps
    assert_same(pieces, whole)
    return whole, outcome, cuts


def toy(encoder: str, **changes: Any) -> RunConfig:
    """MTL on the toy corpus."""
    return toy_config(encoder, **{"paradigm": "mtl"} | changes)
