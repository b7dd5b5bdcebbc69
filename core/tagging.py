"""Tag new sentences, texts and pairs with every task of a finished run.

Imports torch only when a tagger is loaded.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, TypeAlias

from core.corpora.readers.splitting import PlacedWord, is_blank
from core.corpora.types import Sentence
from core.errors import MRNLabError
from core.events import TaskScore
from core.plain_text import spreadsheet_cell
from core.tasks import KINDS, score_task, tasks_reading
from core.tasks.answers import TaggedSentence as TaggedSentence
from core.tasks.answers import TaggedSpan as TaggedSpan
from core.tasks.answers import TextAnswer as TextAnswer
from core.tasks.answers import WordTag as WordTag
from core.tasks.scores import PlainScore
from core.tasks.spans import spans
from core.wording import all_of

if TYPE_CHECKING:
    from core.models.saved_tagger import SavedTagger

_PART = 256


Tagger: TypeAlias = "SavedTagger"
"""A trained run, ready to tag."""


def load_tagger(checkpoint: str | Path) -> Tagger:
    """The tagger in that checkpoint folder. Raises MRNLabError where the folder is gone or damaged."""
    from core.models.model_io import load

    return load(Path(checkpoint))


def joined(answers: Sequence[TaggedSentence]) -> TaggedSentence:
    """One sentence with the tasks of all answers, for example of the STL runs of a sweep."""
    return TaggedSentence(
        answers[0].tokens,
        {task: tags for answer in answers for task, tags in answer.tags.items()},
        {task: of_task for answer in answers for task, of_task in answer.answers.items()},
    )


def tag_in_parts(
    taggers: Sequence[Tagger], sentences: Sequence[Sequence[str]]
) -> Iterator[list[TaggedSentence]]:
    """Tags long texts in parts, so that progress is shown and a stop is possible. Best labels only."""
    for start in range(0, len(sentences), _PART):
        part = sentences[start : start + _PART]
        answers = [tagger.tag(part, top=1) for tagger in taggers]
        yield [joined(sentence) for sentence in zip(*answers, strict=True)]


def spans_in(
    text: str, words: Sequence[PlacedWord], tagged: TaggedSentence, schemes: Mapping[str, str]
) -> dict[str, list[TaggedSpan]]:
    """The spans that each task on spans found in a sentence, from left to right.

    `words` are the sentence's words with their places in the text.
    """
    return {
        task: [
            TaggedSpan(
                span.type,
                text[words[span.start].start : words[span.end - 1].end],
                words[span.start].start,
                words[span.end - 1].end,
                sum(tag.confidence for tag in tags[span.start : span.end]) / (span.end - span.start),
            )
            for span in spans([tag.label for tag in tags])
        ]
        for task, tags in tagged.tags.items()
        if KINDS[schemes[task]].has_spans
    }


Answered = Mapping[str, TextAnswer]
"""The answers of the tasks on one text or one pair."""


def answer_in_parts(taggers: Sequence[Tagger], texts: Sequence[Sentence]) -> Iterator[list[Answered]]:
    """The answers of the tasks on texts and pairs for whole texts, a part at a time."""
    for start in range(0, len(texts), _PART):
        part = [text_of(text) for text in texts[start : start + _PART]]
        answers = [tagger.answer(part) for tagger in taggers]
        yield [
            {task: of_task for answer in answers_of_text for task, of_task in answer.items()}
            for answers_of_text in zip(*answers, strict=True)
        ]


def text_of(sentence: Sentence) -> tuple[str, str | None]:
    """A whole text and, of a pair, the second one."""
    second = None if sentence.second is None else " ".join(sentence.second)
    return " ".join(sentence.tokens), second


def written(value: str | float) -> str:
    """The answer of a task on texts, as a file has it."""
    return value if isinstance(value, str) else f"{value:.4f}"


def check_texts(run: str, schemes: Mapping[str, str], texts: Sequence[Sentence], *, second_by: str) -> None:
    """Raises MRNLabError where a run has no task that reads these texts or pairs, or a text is empty.

    `second_by` says how a second text is given.
    """
    sides = (side for text in texts for side in (text.tokens, text.second) if side is not None)
    if any(is_blank("".join(side)) for side in sides):
        raise MRNLabError("A text has no words; write some.")
    text_tasks, pair_tasks = tasks_reading(schemes, "text", "sentence"), tasks_reading(schemes, "pair")
    paired = any(text.second is not None for text in texts)
    if not text_tasks and not pair_tasks:
        raise MRNLabError(f"{run} has no task on whole texts; it reads words ({all_of(list(schemes))}).")
    if paired and not pair_tasks:
        raise MRNLabError(f"{run} has no task on pairs, so it does not read a second text; leave it out.")
    if not paired and not text_tasks:
        raise MRNLabError(
            f"{run} reads pairs of texts ({all_of(list(pair_tasks))}); give the second {second_by}."
        )


def text_table(
    texts: Sequence[Sentence], answers: Sequence[Answered], *, confidence: bool = False
) -> list[list[str]]:
    """A row for each text, below the names of the columns.

    It has the text or both texts and, of each task, its gold label where there is any, the run's answer and,
    if asked for, the probability of a label.
    """
    paired = any(text.second is not None for text in texts)
    gold = {task for text in texts for task in text.labels}
    tasks = {task: bool(of_task.probabilities) for answer in answers[:1] for task, of_task in answer.items()}
    names = [*(("text1", "text2") if paired else ("text",))]
    for task, is_label in tasks.items():
        names += [f"{task}_gold"] * (task in gold) + [task]
        names += [f"{task}_confidence"] * (confidence and is_label)
    rows = [names]
    for text, answer in zip(texts, answers, strict=True):
        first, second = text_of(text)
        row = [first, second or ""] if paired else [first]
        for task, is_label in tasks.items():
            row += [*text.labels.get(task, ("",))] if task in gold else []
            row.append(written(answer[task].value))
            row += [f"{answer[task].probabilities[0][1]:.4f}"] if confidence and is_label else []
        rows.append(row)
    return rows


def tab_separated(rows: Iterable[Sequence[str]]) -> str:
    """The rows of `text_table`, one a line, tabs between the cells.

    A cell that a spreadsheet would take for a formula begins with an apostrophe (`unguarded_cell` takes it
    away).
    """
    return "".join("\t".join(str(spreadsheet_cell(cell)) for cell in row) + "\n" for row in rows)


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
    """One word a line, with tabs between the columns.

    They are the word, and of each task its gold label (where the text has any for the task; `_` in sentences
    that have none), the run's label and, if asked for, its probability.

    The same of tasks on sentences stands in comments before the sentence (`# intent: x`). `gold`: the tasks
    that the whole text has gold labels of, where these sentences are a part of it.
    """
    if gold is None:
        gold = {task for sentence in sentences for task in sentence.labels}
    lines: list[str] = []
    for sentence, answer in zip(sentences, tagged, strict=True):
        for task, of_task in answer.answers.items():
            if task in sentence.labels:
                lines.append(f"# {task}_gold: {sentence.labels[task][0]}")
            lines.append(f"# {task}: {written(of_task.value)}")
            if confidence:
                lines.append(f"# {task}_confidence: {of_task.probabilities[0][1]:.4f}")
        for index, word in enumerate(sentence.tokens):
            row = [word]
            for task, tags in answer.tags.items():
                if task in gold:
                    row.append(sentence.labels[task][index] if task in sentence.labels else _NO_LABEL)
                row.append(tags[index].label)
                if confidence:
                    row.append(f"{tags[index].confidence:.4f}")
            lines.append("\t".join(row))
        lines.append("")
    return "\n".join([*lines, ""]) if lines else ""


def given_scores(
    sentences: Sequence[Sentence],
    answers: Sequence[TaggedSentence | Answered],
    schemes: Mapping[str, str],
    plain_score: PlainScore = "accuracy",
) -> list[TaskScore]:
    """Scores of answers on sentences or texts against the gold labels given with them, as in training.

    Each task is scored on what has labels of it; tasks that nothing has labels of are left out.
    """
    scores = []
    for task, scheme in schemes.items():
        pairs = [
            (sentence.labels[task], labels_of(answer, task))
            for sentence, answer in zip(sentences, answers, strict=True)
            if task in sentence.labels
        ]
        if pairs:
            gold, predicted = zip(*pairs, strict=True)
            scores.append(score_task(task, scheme, gold, predicted, plain_score=plain_score, details=False))
    return scores


def labels_of(answer: TaggedSentence | Answered, task: str) -> list[str]:
    """A task's labels of the words of a sentence; its one answer on a sentence or a text."""
    if isinstance(answer, TaggedSentence):
        if task in answer.tags:
            return [tag.label for tag in answer.tags[task]]
        answer = answer.answers
    return [written(answer[task].value)]
