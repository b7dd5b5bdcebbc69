"""A file that is tagged in the background of the page, so that one can watch it and stop it."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass

from core.corpora.given import GivenText
from core.evaluation.scores import PlainScore
from core.tagged_file import column_names, conll_text, given_scores
from core.tagging import TaggedSentence, Tagger, tag_in_parts
from core.training.events import TaskScore

__all__ = ["Batch", "Tagged"]


@dataclass(frozen=True)
class Tagged:
    """A tagged file: the columns and the text without and with probabilities, and scores against its gold
    labels.
    """

    columns: tuple[tuple[str, ...], tuple[str, ...]]
    texts: tuple[bytes, bytes]
    scores: tuple[TaskScore, ...]


class Batch:
    """Tags sentences in a thread of its own, which begins at once. `taggers` may wait for them to load."""

    def __init__(
        self,
        given: GivenText,
        taggers: Callable[[], Sequence[Tagger]],
        plain_score: PlainScore,
    ) -> None:
        self.total = len(given.sentences)
        self.done = 0
        self._given = given
        self._plain_score = plain_score
        self._taggers = taggers
        self._stop = threading.Event()
        self._began = time.monotonic()
        pool = ThreadPoolExecutor(1, thread_name_prefix="tag-file")
        self._result = pool.submit(self._tag)
        pool.shutdown(wait=False)

    @property
    def running(self) -> bool:
        """Whether it still works."""
        return not self._result.done()

    @property
    def seconds_left(self) -> float | None:
        """By its pace so far; None before there is one."""
        if not self.done:
            return None
        return (time.monotonic() - self._began) / self.done * (self.total - self.done)

    def stop(self) -> None:
        """Ends after the part that it is at; what was tagged is dropped."""
        self._stop.set()

    def result(self) -> Tagged | None:
        """What came of it, waiting for its end; None where it was stopped. Raises what went wrong."""
        return self._result.result()

    def _tag(self) -> Tagged | None:
        taggers = self._taggers()
        sentences = self._given.sentences
        answers: list[TaggedSentence] = []
        for part in tag_in_parts(taggers, [one.tokens for one in sentences]):
            answers += part
            self.done = len(answers)
            if self._stop.is_set():
                return None
        schemes = {task: scheme for tagger in taggers for task, scheme in tagger.schemes.items()}
        gold = self._given.gold
        return Tagged(
            (
                column_names(list(schemes), gold, confidence=False),
                column_names(list(schemes), gold, confidence=True),
            ),
            (
                conll_text(sentences, answers).encode(),
                conll_text(sentences, answers, confidence=True).encode(),
            ),
            tuple(given_scores(sentences, answers, schemes, self._plain_score)),
        )
