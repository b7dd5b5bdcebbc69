"""The strict reader of texts and pairs of texts: TSV, CSV and JSONL files with named columns.

`text` is a text; `text1` and `text2` are those of a pair. Every other column is a task, but for those left
out: `id`, `idx`, a name that begins with `_`, a column without a name, one of several whose values hardly
repeat. `score`, or a name that ends with `_score`, is a column of numbers; all others hold labels. A task of
the column `label` or `score` is named as the corpus. Errors name the line.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import lru_cache
from itertools import chain, islice
from pathlib import Path
from typing import Any

from core.config.typed import real_number
from core.corpora.assembly import assemble
from core.corpora.layout.cells import refusal
from core.corpora.layout.column_names import (
    IGNORED,
    LABEL,
    LABEL_NAMES,
    SCORE,
    SEPARATORS,
    WORD_NAMES,
    is_left_out,
    is_text_column,
    task_name,
    text_columns,
    text_tasks,
)
from core.corpora.layout.doubts import ONE_LABEL
from core.corpora.layout.fields import Field, Layout
from core.corpora.layout.gold import without_codes
from core.corpora.layout.no_label import is_blank
from core.corpora.layout.report import reported
from core.corpora.layout.rules import beside_texts, cells_of_texts
from core.corpora.readers.lines import MOST_CHARACTERS, Source
from core.corpora.readers.text_rows import (
    CSV,
    JSONL,
    TSV,
    Row,
    beginning,
    check_characters,
    check_names,
    errors_located,
    read_rows,
    refuse,
    shown,
)
from core.corpora.reading import MANY
from core.corpora.types import Corpus, Scheme, Sentence, Sentences, Split
from core.errors import CorpusError
from core.tasks import KINDS
from core.wording import all_of, plural

TITLE = "texts in named columns"
ENDINGS = (TSV, CSV, JSONL)
"""The endings of files of texts."""

_OF_ANNOTATORS = re.compile(r"label\d+|annotator_labels")
"""The names of the columns of single annotators, beside `gold_label`."""
_ROWS_SEEN = 1000
_ANSWER = "answer"
_ANSWERS = ("accept", "reject", "ignore")
"""What annotators answer to the labels that Prodigy shows them."""

MOST_SCORE = 1e6
"""The largest score, either side of 0. The squares of its gradients, which optimisers keep, fit float32."""


def holds_texts(source: Source) -> bool:
    """Whether a file is one of texts: by its ending, or of TSV by its beginning."""
    ending = Path(source.name).suffix.lower()
    if ending != TSV:
        return ending in ENDINGS
    lines = re.split("\r\n|\n|\r", beginning(source))
    return _names_texts([line.split("\t") for line in lines])


def _names_texts(rows: Sequence[Sequence[str]]) -> bool:
    """Whether the first row of a TSV file names columns of texts.

    A file of words may begin with the word `text`: it has blank lines, or its other columns repeat the label
    of that word, and no word has a space inside.
    """
    names = [name.strip().lower() for name in rows[0]]
    first = next((index for index, name in enumerate(names) if is_text_column(name)), None)
    if len(names) < 2 or first is None or not WORD_NAMES.isdisjoint(names):
        return False
    others = [row for row in rows[1:] if len(row) == len(names)]
    if any(" " in row[first].strip() for row in others):
        return True
    ends = [not any(map(str.strip, row)) for row in rows]
    has_blank_line = any(blank and not all(ends[index:]) for index, blank in enumerate(ends))
    repeats = any(
        row[index] == name for row in others for index, name in enumerate(rows[0]) if index != first
    )
    return not (has_blank_line or repeats)


def read_text_files(files: Mapping[Split, Source], name: str, text_task: str, notes: list[str]) -> Corpus:
    """The corpus of files of texts or pairs, training first; `text_task` as in `read_texts`."""
    splits: dict[Split, Sequence[Sentence]] = {}
    training: Layout | None = None
    left_out: dict[str, None] = {}
    for split, file in files.items():
        splits[split], layout = read_texts(file, text_task, training)
        training = training or layout
        left_out |= dict.fromkeys(layout.left_out_shown)
    assert training is not None
    if left_out:
        notes.append(f"Columns left out: {', '.join(column or 'one without a name' for column in left_out)}.")
    titles = {split: file.name for split, file in files.items()}
    corpus = assemble(name, splits, notes, schemes=training.task_schemes, files=titles)
    first = corpus.train[:3]
    rows = [(" ".join(each.tokens), " ".join(each.second or ())) for each in first]
    examples = dict(zip(training.texts, zip(*rows, strict=True), strict=False))
    # Why columns are left out is in the note.
    return reported(corpus, replace(training, left_out=dict.fromkeys(training.left_out, "")), TITLE, examples)


def read_texts(source: Source, corpus: str, training: Layout | None = None) -> tuple[Sentences, Layout]:
    """The texts of a file and its layout, which must have the texts and tasks of `training`, where given.

    `corpus` is the name of the task of a column `label` or `score`. Raises CorpusError with file, line and
    what was expected.
    """
    names, rows = read_rows(source)
    has_answers, rows = _has_answers(names, rows)
    first = list(islice(rows, _ROWS_SEEN))
    rows = chain(first, rows)
    columns = zip(*(values for _, values in first), strict=True) if first else ([] for _ in names)
    fields = [Field(name, False, "text", seen) for name, seen in zip(names, columns, strict=True)]
    if training is not None:
        has_answers = _ANSWER in names and _ANSWER in training.left_out
    with errors_located(source, 1):
        layout = _layout(fields, corpus, training, has_answers=has_answers)
    sentences, unaccepted = _sentences(source, rows, layout, has_answers=has_answers)
    reasons = dict(layout.left_out)
    if has_answers:
        reasons[_ANSWER] = f"with {plural(unaccepted, 'row')} of {source.name} that are not accepted"
    rare = _rare(sentences, layout, corpus) if training is None else []
    reasons |= dict.fromkeys(rare, "its values hardly repeat")
    schemes = {column: scheme for column, scheme in layout.schemes.items() if column not in rare}
    kept = sentences.without([layout.tasks[column] for column in rare])
    tasks = text_tasks(schemes, corpus)
    return kept, replace(layout, schemes=schemes, tasks=tasks, left_out=reasons)


def _has_answers(names: Sequence[str], rows: Iterator[Row]) -> tuple[bool, Iterator[Row]]:
    """Whether the first row says if an annotator accepts its label, as Prodigy writes it; and all rows."""
    if _ANSWER not in names or LABEL not in names or (first := next(rows, None)) is None:
        return False, rows
    return first[1][names.index(_ANSWER)] in _ANSWERS, chain([first], rows)


def _rare(sentences: Sentences, layout: Layout, corpus: str) -> list[str]:
    """The columns of labels whose values hardly repeat, as titles do; none where all are like that."""
    rare = []
    for column, task in layout.tasks.items():
        is_named = "label" in column.lower() or column.lower() in LABEL_NAMES or column == task_name(corpus)
        kinds = len(sentences.column(task).rows.counts())
        if kinds > max(MANY, len(sentences) / 2) and not (is_named or layout.schemes[column] == "score"):
            rare.append(column)
    return rare if len(rare) < len(layout.tasks) else []


@dataclass(frozen=True)
class AskedTexts:
    """Texts to be answered, with gold labels of some tasks where the file has any.

    It also has the names of the columns left out.
    """

    texts: Sequence[Sentence]
    left_out: tuple[str, ...]

    @property
    def gold(self) -> tuple[str, ...]:
        """The tasks that some text has a gold label of."""
        return tuple(Sentences.of(self.texts).labels)


def read_asked(source: Source, schemes: Mapping[str, str]) -> AskedTexts:
    """The texts of a file that a run is asked about; `schemes` has its tasks, each with its stored kind.

    A column named as a task of the run holds gold labels of it, empty where a row has none. So does `label`
    or `score`, where the run has one such task. Raises CorpusError as `read_texts`.
    """
    names, rows = read_rows(source)
    with errors_located(source, 1):
        texts = text_columns(names)
    reads = ("text", "sentence") if len(texts) == 1 else ("pair",)
    kinds = {task: KINDS[scheme] for task, scheme in schemes.items() if KINDS[scheme].reads in reads}
    has_answers, rows = _has_answers(names, rows)
    tasks = {name: name for name in names if name in kinds}
    for name in (LABEL, SCORE):
        fitting = [task for task, kind in kinds.items() if kind.is_number == (name == SCORE)]
        if name in names and name not in tasks and len(fitting) == 1 and fitting[0] not in tasks:
            tasks[name] = fitting[0]
    layout = Layout(
        tuple(names), texts=texts, tasks=tasks,
        schemes={name: kinds[task].scheme for name, task in tasks.items()},
    )  # fmt: skip
    with errors_located(source, 1):
        check_names(names, (*texts, *tasks))
    has_answers &= _ANSWER not in tasks
    sentences, _ = _sentences(source, rows, layout, has_answers=has_answers, unlabelled=True)
    asked: dict[Split, Sentences] = {"train": sentences}
    for task in tasks.values():
        without_codes(asked, task)
    return AskedTexts(asked["train"], tuple(filter(None, layout.left_out_shown)))


def _sentences(
    source: Source, rows: Iterator[Row], layout: Layout, *, has_answers: bool, unlabelled: bool = False
) -> tuple[Sentences, int]:
    """The rows as texts, and how many have a label that is not accepted; they are left out.

    With `unlabelled` they are kept, without a label.
    """
    unaccepted = 0

    def sentences() -> Iterator[Sentence]:
        nonlocal unaccepted
        for number, values in rows:
            row = dict(zip(layout.columns, values, strict=True))
            with errors_located(source, number):
                accepted = not has_answers or _is_accepted(row[_ANSWER])
                sentence = text_sentence(row, layout)
            unaccepted += not accepted
            if accepted or unlabelled:
                yield sentence if accepted else replace(sentence, labels={})

    read = Sentences.of(sentences())
    if not read and unaccepted:
        raise CorpusError(
            f"{source}: none of {plural(unaccepted, 'row')} has the {_ANSWER} {_ANSWERS[0]}; accept some."
        )
    if not read:
        refuse(source, 1, "names the columns, and no text follows; expected a text on each further line.")
    return read, unaccepted


# What is wrong with a line is a ValueError from here on: `errors_located` adds the file and the line.


def _is_accepted(answer: Any) -> bool:
    if answer not in _ANSWERS:
        raise ValueError(
            f"{_ANSWER} is '{shown(str(answer))}'; expected accept, reject or ignore, as in the first row."
        )
    return bool(answer == _ANSWERS[0])


def _layout(fields: Sequence[Field], corpus: str, training: Layout | None, *, has_answers: bool) -> Layout:
    """The roles of the columns, which the training file tells."""
    names = tuple(each.name for each in fields)
    texts = text_columns(names)
    without = {_ANSWER} if has_answers else set[str]()
    if training is not None:
        without = {name for name, reason in training.left_out.items() if name in names}
    elif "gold_label" in names:
        without |= set(filter(_OF_ANNOTATORS.fullmatch, names))
    seen = [
        each if training is None else replace(each, seen=()) for each in fields if each.name not in without
    ]
    schemes, reasons = beside_texts(seen, texts, in_file=True)
    reasons |= {**dict.fromkeys(without, ""), **(training.left_out if training else {})}
    check_names(names, (*texts, *schemes))
    if unfit := [name for name in schemes if SEPARATORS.search(name)]:
        raise ValueError(f"the name '{shown(unfit[0])}' of a column has a comma or the like; change it.")
    if not schemes:
        _check_labels(fields, texts, training)
        return Layout(names, texts=texts, left_out=reasons)  # of hidden gold
    numbers = [name for name, scheme in schemes.items() if scheme == "score"]
    if numbers and len(texts) == 1:
        raise ValueError(
            f"the column {numbers[0]} would hold numbers of pairs, and there is one text; expected text1 and "
            "text2, or a name that does not end with score."
        )
    layout = Layout(names, "", texts, schemes, text_tasks(schemes, corpus), reasons)
    if training is not None:
        _check_like(layout, training)
    return layout


def _check_labels(fields: Sequence[Field], texts: Sequence[str], training: Layout | None) -> None:
    """Raises ValueError where no column holds labels, unless the file is one of hidden gold."""
    cells = cells_of_texts(fields)
    for column in (name for name in cells if not (name in texts or is_left_out(name))):
        if training is None or column in training.left_out:
            raise ValueError(refusal(column, cells[column]))
    if training is None or training.texts != tuple(texts):
        raise ValueError(f"expected a column of labels beside {all_of(texts)}, such as label; found none.")


def _check_like(layout: Layout, training: Layout) -> None:
    """Refuses columns that have not the same texts and tasks as training."""
    here, there = (dict.fromkeys((*each.texts, *each.schemes)) for each in (layout, training))
    if missing := [name for name in there if name not in here]:
        raise ValueError(f"has no column {shown(missing[0])}, which the training file has.")
    if more := [name for name in here if name not in there]:
        raise ValueError(
            f"has a column {shown(more[0])}, which the training file has not; begin its name with {IGNORED} "
            "to skip it."
        )


def text_sentence(row: Mapping[str, Any], layout: Layout) -> Sentence:
    """The text or pair of a row, with the labels that it has.

    Raises ValueError where a value is none of its column.
    """
    first, *second = [_words(name, row[name]) for name in layout.texts]
    labels = {}
    for name, scheme in layout.schemes.items():
        assert scheme is not None
        if (label := _label(name, row[name], scheme)) is not None:
            labels[layout.tasks[name]] = (label,)
    return Sentence(first, labels, whole=True, second=second[0] if second else None)


def _words(name: str, value: Any) -> tuple[str, ...]:
    """The words of a text, separated by spaces."""
    if not isinstance(value, str):
        raise ValueError(f"{name} is not a text.")
    if len(value) > MOST_CHARACTERS:
        raise ValueError(f"{name} has {len(value):,} characters and the most is {MOST_CHARACTERS:,}.")
    check_characters(name, value)
    words = tuple(value.split())
    if not words:
        raise ValueError(f"{name} is empty; write a text, or delete the row.")
    return words


def _label(name: str, value: Any, scheme: Scheme) -> str | None:
    """A label, or a number, as it is written; None where there is none."""
    if isinstance(value, str):
        return _checked_label(name, value, scheme)
    if is_blank(value):
        return None
    if isinstance(value, (bool, int, float)):
        return _checked_label(name, json.dumps(value), scheme)
    if isinstance(value, list):
        raise ValueError(
            f"{name} holds a list, and {ONE_LABEL}; write one label in each row, or a column of 0 and 1 for "
            "each label."
        )
    raise ValueError(f"{name} must be a text or a number.")


@lru_cache  # of each row, and there are few labels
def _checked_label(name: str, value: str, scheme: Scheme) -> str | None:
    label = value.strip()
    if not label:
        return None
    check_characters(name, label)
    if any(character < " " for character in label):
        raise ValueError(f"{name} holds a line end or another control character.")
    if KINDS[scheme].is_number:
        if (score := real_number(label)) is None:
            raise ValueError(f"{name} must be a number, not '{shown(label)}'.")
        if abs(score) > MOST_SCORE:
            limits = f"{-MOST_SCORE:,.0f} and {MOST_SCORE:,.0f}"
            raise ValueError(f"{name} must lie between {limits}, not '{shown(label)}'; rescale it.")
    return label
