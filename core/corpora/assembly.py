"""From sentences as read to a Corpus: schemes detected, spans in IOB2, labels gathered; and its hash."""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import replace
from itertools import chain
from types import MappingProxyType

from core.corpora.readers import FEATURE
from core.corpora.reading import ColumnReading, Reading, Taken, read_labels, read_spans
from core.corpora.types import Corpus, Scheme, Sentence, Split, Task
from core.errors import CorpusError
from core.tasks import KINDS, score_task
from core.tasks.schemes import OddLabel, inside, read_column
from core.wording import all_of, first_of

SPLITS: tuple[Split, ...] = ("train", "dev", "test")

MOST_LABELS = 10_000
"""The most labels of a task: five times the finest tag sets. A column of lemmas or numbers has more."""


_TAKEN: dict[Scheme, Taken] = {
    "plain": "labels",
    "sentence": "sentence label",
    "text": "text label",
    "pair": "pair label",
    "score": "number",
}
Place = Callable[[Split, int, int], str]
"""The function that gives a word's location in the files from its split, sentence and word index, from 0."""


def assemble(
    name: str,
    splits: Mapping[Split, Sequence[Sentence]],
    notes: Sequence[str] = (),
    tag_lists: Mapping[str, Sequence[str]] = MappingProxyType({}),
    schemes: Mapping[str, Scheme] = MappingProxyType({}),
    locate: Place | None = None,
) -> Corpus:
    """The corpus of these sentences as read from files, all of their spans in IOB2.

    `tag_lists` has the labels that the corpus declares for a task, whether they occur or not; `schemes` the
    kinds of tasks that are known. Those of other tasks, on words, show in their labels. `notes` are those on
    its files, to which those on its columns are added, and `locate` gives the location of a label.

    Raises CorpusError where no label was read, or nearly all labels of a column are those of spans and one is
    not.
    """
    names = list(dict.fromkeys(task for sentence in chain(*splits.values()) for task in sentence.labels))
    if not names:
        raise CorpusError(f"{name} has words but no labels; it must have at least one column of labels.")
    tasks = []
    readings = []
    converted = {split: [dict(s.labels) for s in sentences] for split, sentences in splits.items()}
    for task in names:
        annotated = {split: [row for row in rows if task in row] for split, rows in converted.items()}
        written = {split: [row[task] for row in rows] for split, rows in annotated.items()}
        scheme, reading = schemes.get(task), None
        if scheme is None:
            scheme, reading = _read_words(name, task, splits, annotated, written, locate)
        if not KINDS[scheme].is_number:
            task_labels = (row[task] for row in chain(*annotated.values()) if task in row)
            _check_labels(name, task, set(chain.from_iterable(task_labels)))
        readings.append(reading or read_labels(task, _TAKEN[scheme], written))
        tasks.append(Task(task, scheme, (), inventory=tuple(tag_lists.get(task, ()))))
    made = {
        split: tuple(
            replace(sentence, labels=labels)
            for sentence, labels in zip(sentences, converted[split], strict=True)
        )
        for split, sentences in splits.items()
    }
    read = Reading(name, {}, "", tuple(readings), tuple(notes))
    return describe(
        Corpus(
            name, tuple(tasks), made.get("train", ()), made.get("dev", ()), made.get("test", ()),
            read.all_notes, readings=(read,),
        )
    )  # fmt: skip


def _read_words(
    name: str,
    task: str,
    splits: Mapping[Split, Sequence[Sentence]],
    annotated: Mapping[Split, Sequence[dict[str, tuple[str, ...]]]],
    written: Mapping[Split, Sequence[tuple[str, ...]]],
    locate: Place | None,
) -> tuple[Scheme, ColumnReading | None]:
    """The kind of a task on words.

    Labels of spans are converted in `annotated`; a sentence with a word without a label loses the labels of
    the task.
    """
    try:
        column = read_column(written)
    except OddLabel as odd:
        split = next(split for split in splits if split == odd.split)
        numbers = [number for number, s in enumerate(splits[split]) if task in s.labels]
        sentence = numbers[odd.sentence]
        where = (
            f"{name}, {split} split, sentence {sentence + 1}"
            if locate is None
            else locate(split, sentence, odd.word)
        )
        is_first = (odd.sentence, odd.word) == (0, 0)
        header = " If this line names the columns, delete it." if is_first else ""
        raise CorpusError(f"{where}: {odd} It is in the column {task}.{header}") from None
    if column is None:
        return "plain", None
    for split, rows in annotated.items():
        for row, labels in zip(rows, column.labels[split], strict=True):
            if labels is None:
                del row[task]
            else:
                row[task] = labels
    return "iob2", read_spans(task, written, column)


def describe(corpus: Corpus) -> Corpus:
    """The corpus with its tasks' labels, unseen labels and violations counted anew from its sentences."""
    return replace(corpus, tasks=tuple(_described(corpus, task) for task in corpus.tasks))


def findings(corpus: Corpus) -> tuple[str, ...]:
    """Sentences on problems of the labels that a researcher should know: unseen ones, forbidden sequences."""
    notes = []
    for task in corpus.tasks:
        kind = KINDS[task.scheme]
        if len(task.labels) == 1 and not (kind.is_number or kind.has_spans or task.unseen):
            notes.append(
                f"{task.name} has one label ({task.labels[0]}): there is nothing to tell apart, and its "
                "accuracy is 100% by construction."
            )
        if task.unseen:
            where = all_of([f"{first_of(labels)} in {split}" for split, labels in task.unseen.items()])
            notes.append(f"{task.name}: training never shows {where}. The model cannot predict them.")
        notes += [undefined_note(task.name, split, why) for split, why in _undefined(corpus, task).items()]
        counts = {split: number for split, number in task.illegal.items() if number}
        if counts:
            where = ", ".join(f"{number:,} in {split}" for split, number in counts.items())
            notes.append(f"{task.name}: I- labels that continue no span: {where}; they are kept as they are.")
    return tuple(notes)


def undefined_note(task: str, split: str, reason: str) -> str:
    """A sentence on a score that the gold labels of a split leave undefined."""
    return f"{task}: its {split} score is undefined: {reason}."


def _undefined(corpus: Corpus, task: Task) -> dict[Split, str]:
    """Why a perfect prediction would have no score, for each of dev and test where that is so."""
    reasons: dict[Split, str] = {}
    for split in SPLITS[1:]:
        column = [s.labels[task.name] for s in corpus.split(split) if task.name in s.labels]
        if len(set(chain.from_iterable(column))) == 1:
            score = score_task(task.name, task.scheme, column, column, details=False)
            if not score.is_defined:
                reasons[split] = score.undefined_because(f"the {split} split")
    return reasons


def _described(corpus: Corpus, task: Task) -> Task:
    kind = KINDS[task.scheme]
    columns = {
        split: [s.labels[task.name] for s in corpus.split(split) if task.name in s.labels] for split in SPLITS
    }
    labels = {split: set(chain.from_iterable(column)) for split, column in columns.items()}
    if task.trains_io:
        labels = {split: set(map(inside, kinds)) for split, kinds in labels.items()}
    in_iob2 = SPLITS[1:] if task.trains_io else SPLITS if kind.has_spans else ()
    unseen = {} if kind.is_number else {split: kind.rows(labels[split] - labels["train"]) for split in SPLITS}
    return replace(
        task,
        labels=kind.rows(labels["train"]),
        inventory=kind.rows({*task.inventory, *chain.from_iterable(labels.values())}),
        unseen={split: names for split, names in unseen.items() if names},
        illegal={split: kind.forbidden(columns[split]) for split in in_iob2 if columns[split]},
        scale=kind.scale(columns["train"]),
    )


def _check_labels(name: str, task: str, labels: Collection[str]) -> None:
    """Raises CorpusError where labels are too many."""
    if len(labels) > MOST_LABELS:
        raise CorpusError(
            f"{name}: the column {task} has {len(labels):,} different labels and the most is {MOST_LABELS:,}"
            "; where it holds lemmas or the like, begin its name with _ to skip it."
        )


def text_hash(corpus: Corpus) -> str:
    """16 hexadecimal digits of SHA-256 over all words, labels and parts of a corpus, split by split.

    It is the same for the same text, wherever its files lie and however they are written. Words, columns,
    sentences and splits are separated by control characters, which text does not hold. Tasks that CoNLL-U
    files did not offer once are left out: runs of that time know the text by its hash.
    """
    digest = hashlib.sha256()
    for split in SPLITS:
        digest.update(f"\x1d{split}".encode())
        for sentence in corpus.split(split):
            columns = [sentence.part, "\x1f".join(sentence.tokens)]
            if sentence.second is not None:
                columns.append("\x1f".join(sentence.second))
            for task, labels in sorted(sentence.labels.items()):
                if task != "deprel" and not task.startswith(FEATURE):
                    columns += (task, "\x1f".join(labels))
            digest.update("\x1e".join(("", *columns)).encode(errors="surrogatepass"))
    return digest.hexdigest()[:16]
