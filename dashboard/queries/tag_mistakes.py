"""Mistakes against gold labels: counted by kind, and the test sentences that hold some."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from core.corpora.types import Sentence
from core.errors import CorpusError
from core.evaluation.mistakes import KINDS, mistakes
from core.evaluation.scores import PlainScore
from core.tagged_file import given_scores
from dashboard.queries.tag_systems import Answer
from dashboard.text import all_of, plural

__all__ = ["CheckedSentence", "Marked", "checked", "kinds_in_words", "marked"]


@dataclass(frozen=True)
class Marked:
    """How one system did on one task: its score and its mistakes by kind."""

    who: str
    task: str
    score_name: str
    score: float
    words: int
    kinds: Mapping[str, int]


@dataclass(frozen=True)
class CheckedSentence:
    """A sentence of the test split with how many mistakes the stored predictions make on each task."""

    sentence: Sentence
    wrong: Mapping[str, int]


def marked(
    answers: Sequence[Answer], sentences: Sequence[Sentence], plain_score: PlainScore = "accuracy"
) -> list[Marked]:
    """Scores and mistakes of each answer against the gold labels, task by task, by the scorer of training."""
    rows = []
    for answer in answers:
        scores = given_scores(sentences, answer.sentences, answer.schemes, plain_score)
        for score in scores:
            counts = Counter(
                mistake.kind
                for sentence, tagged in zip(sentences, answer.sentences, strict=True)
                if score.task in sentence.labels
                for mistake in mistakes(
                    sentence.labels[score.task],
                    [tag.label for tag in tagged.tags[score.task]],
                    answer.schemes[score.task],
                )
            )
            kinds = {kind: counts[kind] for kind in KINDS if counts[kind]}
            rows.append(Marked(answer.who, score.task, score.score_name, score.score, score.tokens, kinds))
    return rows


def kinds_in_words(kinds: Mapping[str, int]) -> str:
    """`2 wrong labels, 1 missed`; `all right` where there is none."""
    plurals = {"missed": "missed", "invented": "invented", "wrong boundary": "wrong boundaries"}
    told = [
        plural(number, kind, plurals.get(kind)) if "and" not in kind else f"{number} {kind}"
        for kind, number in kinds.items()
    ]
    return all_of(told) or "all right"


def checked(
    sentences: Sequence[Sentence],
    stored: Mapping[str, tuple[Sequence[Sequence[str]], Sequence[Sequence[str]]]],
    schemes: Mapping[str, str],
) -> list[CheckedSentence]:
    """The test sentences with the mistakes of the predictions stored when the run ended.

    `stored` has per task the gold and the predicted labels of the sentences that are annotated for it.
    Raises CorpusError where they are not those of these sentences: the corpus has changed since.
    """
    wrong: list[dict[str, int]] = [{} for _ in sentences]
    for task, (gold, predicted) in stored.items():
        annotated = [place for place, one in enumerate(sentences) if task in one.labels]
        same = len(annotated) == len(gold) and all(
            len(sentences[place].tokens) == len(labels) for place, labels in zip(annotated, gold, strict=True)
        )
        if not same:
            raise CorpusError(
                f"The test sentences of {task} are not those that the run was tested on; the corpus has "
                "changed since. Train the run again to see its mistakes."
            )
        for place, true, guess in zip(annotated, gold, predicted, strict=True):
            if list(true) != list(guess):
                wrong[place][task] = len(mistakes(true, guess, schemes[task]))
    return [CheckedSentence(one, counts) for one, counts in zip(sentences, wrong, strict=True)]
