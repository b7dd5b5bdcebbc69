"""Tag new sentences with every task of a finished run. Imports torch only when a tagger is loaded."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Protocol

from core.corpora.types import Sentence
from core.evaluation.scores import PlainScore, score_task
from core.records import TaggedSentence as TaggedSentence
from core.records import TaskScore
from core.records import WordTag as WordTag

_PART = 256


class Tagger(Protocol):
    """A trained run, ready to tag. By task: the scheme of its labels, `iob2` or `plain`, and the labels."""

    @property
    def schemes(self) -> Mapping[str, str]: ...

    @property
    def labels(self) -> Mapping[str, Sequence[str]]: ...

    @property
    def notes(self) -> Sequence[str]:
        """What a reader of its answers should know, a sentence each."""
        ...

    def tag(self, sentences: Sequence[Sequence[str]], top: int = 3) -> list[TaggedSentence]:
        """Every task's labels for every word of every sentence, however long."""
        ...


def load_tagger(checkpoint: str | Path) -> Tagger:
    """The tagger in that checkpoint folder. Raises MRNLabError where the folder is gone or damaged."""
    from core.models.model_io import load

    return load(Path(checkpoint))


def joined(answers: Sequence[TaggedSentence]) -> TaggedSentence:
    """One sentence with the tasks of all these, as of the STL runs of one launch."""
    return TaggedSentence(
        answers[0].tokens, {task: tags for answer in answers for task, tags in answer.tags.items()}
    )


def tag_in_parts(
    taggers: Sequence[Tagger], sentences: Sequence[Sequence[str]]
) -> Iterator[list[TaggedSentence]]:
    """Long texts a part at a time, so that one can tell how far it is and stop. Best labels only."""
    for start in range(0, len(sentences), _PART):
        part = sentences[start : start + _PART]
        answers = [tagger.tag(part, top=1) for tagger in taggers]
        yield [joined(sentence) for sentence in zip(*answers, strict=True)]


_NO_LABEL = "_"


def column_names(tasks: Sequence[str], gold: Sequence[str], *, confidence: bool) -> tuple[str, ...]:
    """The columns that `conll_text` writes, from left to right."""
    names = ["tokens"]
    for task in tasks:
        names += [f"{task}_gold"] * (task in gold) + [task] + [f"{task}_confidence"] * confidence
    return tuple(names)


def conll_text(
    sentences: Sequence[Sentence],
    tagged: Sequence[TaggedSentence],
    *,
    gold: Collection[str] | None = None,
    confidence: bool = False,
) -> str:
    """A word a line, tabs between the columns: the word, and of each task its gold label (where the text has
    any for the task; `_` in sentences that have none), the run's label and, if asked for, how sure it is.

    `gold`: the tasks that the whole text has gold labels of, where these sentences are a part of it.
    """
    if gold is None:
        gold = {task for sentence in sentences for task in sentence.labels}
    lines: list[str] = []
    for sentence, answer in zip(sentences, tagged, strict=True):
        for place, word in enumerate(sentence.tokens):
            row = [word]
            for task, tags in answer.tags.items():
                if task in gold:
                    row.append(sentence.labels[task][place] if task in sentence.labels else _NO_LABEL)
                row.append(tags[place].label)
                if confidence:
                    row.append(f"{tags[place].confidence:.4f}")
            lines.append("\t".join(row))
        lines.append("")
    return "\n".join([*lines, ""]) if lines else ""


def given_scores(
    sentences: Sequence[Sentence],
    tagged: Sequence[TaggedSentence],
    schemes: Mapping[str, str],
    plain_score: PlainScore = "accuracy",
) -> list[TaskScore]:
    """Scores against the gold labels that came with the text, by the scorer of training.

    Each task is scored on the sentences that have labels of it; tasks that no sentence has are left out.
    """
    scores = []
    for task, scheme in schemes.items():
        pairs = [
            (sentence.labels[task], [tag.label for tag in answer.tags[task]])
            for sentence, answer in zip(sentences, tagged, strict=True)
            if task in sentence.labels
        ]
        if pairs:
            gold, predicted = zip(*pairs, strict=True)
            scores.append(score_task(task, scheme, gold, predicted, plain_score=plain_score, details=False))
    return scores
