"""Toy runs that are trained without a store, and what they said."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import TypeVar

from core.checkpoints import Checkpoint
from core.config import RunConfig
from core.corpora.types import Corpus
from core.records import Event, RunFacts, SplitResult
from core.tagging import TaggedSentence, labels_of, load_tagger
from core.training.trainer import Outcome, train

Kind = TypeVar("Kind")


@dataclass(frozen=True)
class ToyRun:
    """A training's events, how it ended, and the folder of its model."""

    checkpoint: Path
    events: list[Event]
    outcome: Outcome

    def of(self, kind: type[Kind]) -> list[Kind]:
        """The events of that kind."""
        return [event for event in self.events if isinstance(event, kind)]

    @property
    def facts(self) -> RunFacts:
        (facts,) = self.of(RunFacts)
        return facts

    @property
    def test(self) -> SplitResult:
        (result,) = (result for result in self.of(SplitResult) if result.split == "test")
        return result


def train_toy(config: RunConfig, corpus: Corpus, folder: Path) -> ToyRun:
    """Trains it into that folder, which its checkpoint then is."""
    events: list[Event] = []
    outcome = train(config, corpus, sink=events.append, checkpoint=Checkpoint(folder))
    return ToyRun(folder, events, outcome)


def assert_tags_as_tested(run: ToyRun, corpus: Corpus) -> list[TaggedSentence]:
    """The saved model gives the test sentences the labels that the run gave them; what it says of them."""
    tagged = load_tagger(run.checkpoint).tag([sentence.tokens for sentence in corpus.test])
    for task, labels in run.test.predictions.items():
        assert [labels_of(sentence, task) for sentence in tagged] == [
            list(of_sentence) for of_sentence in labels
        ]
    return tagged
