"""A file tagged in the background: what it gives, that it stops, that errors are not lost."""

from __future__ import annotations

import threading
from collections.abc import Mapping, Sequence

import pytest

from core.corpora.free_text import GivenText
from core.corpora.types import Sentence
from core.errors import MRNLabError
from core.tagging import TaggedSentence, WordTag
from dashboard.tag.models import FileTagging


class Capitals:
    """Tags words in capitals as X; waits before each part until it may go on."""

    schemes: Mapping[str, str] = {"case": "plain"}
    labels: Mapping[str, Sequence[str]] = {"case": ("X", "y")}

    def __init__(self) -> None:
        self.parts = 0
        self.may_go_on = threading.Semaphore(0)

    def tag(self, sentences: Sequence[Sequence[str]], top: int = 3) -> list[TaggedSentence]:
        self.may_go_on.acquire()
        self.parts += 1
        answers = []
        for words in sentences:
            labels = ["X" if word.isupper() else "y" for word in words]
            tags = tuple(WordTag(label, 0.5, ((label, 0.5),)[:top]) for label in labels)
            answers.append(TaggedSentence(tuple(words), {"case": tags}))
        return answers


def _given(number: int) -> GivenText:
    return GivenText(tuple(Sentence(("EU", "calls"), {"case": ("X", "X")}) for _ in range(number)))


def test_every_sentence_is_tagged_and_scored() -> None:
    tagger = Capitals()
    batch = FileTagging(_given(600), lambda: [tagger], "accuracy")
    assert batch.running
    assert batch.seconds_left is None
    for _ in range(3):
        tagger.may_go_on.release()
    tagged = batch.result()
    assert tagged is not None
    assert (batch.done, batch.total, tagger.parts) == (600, 600, 3)
    assert not batch.running
    assert tagged.texts[0].decode().splitlines()[:3] == ["EU\tX\tX", "calls\tX\ty", ""]
    assert tagged.texts[1].decode().splitlines()[0] == "EU\tX\tX\t0.5000"
    assert tagged.columns == (
        ("tokens", "case_gold", "case"),
        ("tokens", "case_gold", "case", "case_confidence"),
    )
    (score,) = tagged.scores
    assert (score.score, score.tokens) == (0.5, 1200)


def test_it_stops_after_the_part_that_it_is_at() -> None:
    tagger = Capitals()
    batch = FileTagging(_given(300), lambda: [tagger], "accuracy")
    batch.stop()
    tagger.may_go_on.release()
    assert batch.result() is None
    assert tagger.parts == 1


def test_an_error_is_whoever_looks_to_tell() -> None:
    def gone() -> Sequence[Capitals]:
        raise MRNLabError("The checkpoint is gone.")

    batch = FileTagging(_given(1), gone, "accuracy")
    with pytest.raises(MRNLabError, match="is gone"):
        batch.result()
