"""A file tagged part by part: what it gives, and that it tells how far it is."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from core.corpora.free_text import GivenText
from core.corpora.types import Sentence
from core.tagging import TaggedSentence, WordTag
from dashboard.tag.models import tagged_file


class Capitals:
    """Tags words in capitals as X."""

    schemes: Mapping[str, str] = {"case": "plain"}
    labels: Mapping[str, Sequence[str]] = {"case": ("X", "y")}

    def tag(self, sentences: Sequence[Sequence[str]], top: int = 3) -> list[TaggedSentence]:
        answers = []
        for words in sentences:
            labels = ["X" if word.isupper() else "y" for word in words]
            tags = tuple(WordTag(label, 0.5, ((label, 0.5),)[:top]) for label in labels)
            answers.append(TaggedSentence(tuple(words), {"case": tags}))
        return answers


def test_every_sentence_is_tagged_and_scored() -> None:
    given = GivenText(tuple(Sentence(("EU", "calls"), {"case": ("X", "X")}) for _ in range(600)))
    done: list[int] = []
    tagged = tagged_file(given, [Capitals()], "accuracy", done.append)
    assert len(done) == 3
    assert done[-1] == 600
    assert tagged.texts[0].decode().splitlines()[:3] == ["EU\tX\tX", "calls\tX\ty", ""]
    assert tagged.texts[1].decode().splitlines()[0] == "EU\tX\tX\t0.5000"
    assert tagged.columns == (
        ("tokens", "case_gold", "case"),
        ("tokens", "case_gold", "case", "case_confidence"),
    )
    (score,) = tagged.scores
    assert (score.score, score.tokens) == (0.5, 1200)
