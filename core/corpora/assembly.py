"""From sentences as read to a Corpus: schemes found, spans in IOB2, labels gathered, findings told."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping, Sequence
from dataclasses import replace
from itertools import chain
from types import MappingProxyType

from core.corpora.schemes import convert, label_order, notation, scheme_of, violations
from core.corpora.types import Corpus, Scheme, Sentence, Split, Task
from core.errors import CorpusError
from core.wording import first_of, plural

SPLITS: tuple[Split, ...] = ("train", "dev", "test")

MOST_LABELS = 10_000
"""The most labels of a task: five times the finest tag sets. A column of lemmas or numbers has more."""


def assemble(
    name: str,
    splits: Mapping[Split, Sequence[Sentence]],
    notes: Sequence[str] = (),
    tag_lists: Mapping[str, Sequence[str]] = MappingProxyType({}),
) -> Corpus:
    """The corpus of these sentences as read from files, all of their spans in IOB2.

    `tag_lists` has the labels that the corpus declares for a task, whether they occur or not.

    Raises CorpusError where no label was read, or a split's labels are spans and another's are not.
    """
    names = list(dict.fromkeys(task for part in splits.values() for one in part for task in one.labels))
    if not names:
        raise CorpusError(f"{name} has words but no labels; it must have at least one column of labels.")
    columns: dict[str, dict[Split, list[tuple[str, ...]]]] = {}
    said = list(notes)
    schemes: dict[str, Scheme] = {}
    others: dict[Split, list[str]] = {split: [] for split in splits}  # tasks written in other schemes
    for task in names:
        columns[task] = {}
        for split, sentences in splits.items():
            column = [sentence.labels[task] for sentence in sentences if task in sentence.labels]
            written = notation(column)
            if written not in ("IOB2", "plain"):
                said.append(f"{task} is written in {written} in the {split} split; converted to IOB2.")
                others[split].append(task)
            columns[task][split] = convert(column, written)
        schemes[task] = _common_scheme(name, task, columns[task])
        _check_number(name, task, columns[task])
    converted = {
        split: _with_labels(sentences, {task: columns[task][split] for task in others[split]})
        for split, sentences in splits.items()
    }
    return describe(
        Corpus(
            name=name,
            tasks=tuple(
                Task(task, schemes[task], (), inventory=tuple(tag_lists.get(task, ()))) for task in names
            ),
            train=converted.get("train", ()),
            dev=converted.get("dev", ()),
            test=converted.get("test", ()),
            notes=tuple(said),
        )
    )


def _check_number(name: str, task: str, columns: Mapping[Split, Sequence[tuple[str, ...]]]) -> None:
    number = len(set(chain.from_iterable(chain.from_iterable(columns.values()))))
    if number > MOST_LABELS:
        raise CorpusError(
            f"{name}: the column {task} has {number:,} different labels and the most is {MOST_LABELS:,}; "
            "where it holds lemmas or the like, begin its name with _ to have it read over."
        )


def describe(corpus: Corpus) -> Corpus:
    """The corpus with its tasks' labels, unseen labels and violations counted anew from its sentences."""
    return replace(corpus, tasks=tuple(_described(corpus, task) for task in corpus.tasks))


def findings(corpus: Corpus) -> tuple[str, ...]:
    """Sentences on what a researcher should know of the labels: unseen ones, and forbidden sequences."""
    said = []
    for task in corpus.tasks:
        for split, labels in task.unseen.items():
            said.append(
                f"{task.name}: the {split} split has {plural(len(labels), 'label')} that training never "
                f"shows ({first_of(labels)}): none is learned."
            )
        counts = {split: number for split, number in task.illegal.items() if number}
        if counts:
            where = ", ".join(f"{number:,} in {split}" for split, number in counts.items())
            said.append(f"{task.name}: I- labels that continue no span: {where}; they are kept as they are.")
    return tuple(said)


def _described(corpus: Corpus, task: Task) -> Task:
    columns = {
        split: [one.labels[task.name] for one in corpus.split(split) if task.name in one.labels]
        for split in SPLITS
    }
    labels = {split: set(chain.from_iterable(column)) for split, column in columns.items()}
    illegal: dict[str, int] = {}
    if task.scheme == "iob2":
        illegal = {split: violations(column) for split, column in columns.items() if column}
    return replace(
        task,
        labels=label_order(labels["train"], task.scheme),
        inventory=label_order({*task.inventory, *chain.from_iterable(labels.values())}, task.scheme),
        unseen={
            split: label_order(labels[split] - labels["train"], task.scheme)
            for split in SPLITS
            if labels[split] - labels["train"]
        },
        illegal=illegal,
    )


def _common_scheme(name: str, task: str, columns: Mapping[Split, list[tuple[str, ...]]]) -> Scheme:
    """The scheme that holds in every split.

    Where training has spans, no other split may have plain labels.
    """
    training = set(chain.from_iterable(columns.get("train", ())))
    everything = set(chain.from_iterable(chain.from_iterable(columns.values())))
    scheme = scheme_of(everything)
    if scheme == "plain" and scheme_of(training) == "iob2":
        for split, column in columns.items():
            for number, labels in enumerate(column, start=1):
                for label in labels:
                    if scheme_of((label, "B-X")) == "plain":
                        raise CorpusError(
                            f"{name}, {split} split, sentence {number}: the {task} label '{label}' is not "
                            "O, B- or I- and a type, as the labels of the training split are."
                        )
    return scheme


def _with_labels(
    sentences: Sequence[Sentence], columns: Mapping[str, Sequence[tuple[str, ...]]]
) -> tuple[Sentence, ...]:
    """The sentences with these converted labels, which stand in the order of those that have the task."""
    if not columns:
        return tuple(sentences)
    rest = {task: iter(column) for task, column in columns.items()}
    return tuple(
        replace(
            sentence,
            labels={
                task: next(rest[task]) if task in rest else labels for task, labels in sentence.labels.items()
            },
        )
        for sentence in sentences
    )


# A hash of a corpus's text: whether two runs saw the same words with the same labels.


_LENGTH = 16


def text_hash(corpus: Corpus) -> str:
    """16 hexadecimal digits of SHA-256 over all words, labels and parts of a corpus, split by split.

    It is the same for the same text, wherever its files lie and however they are written. Words, columns,
    sentences and splits are separated by control characters, which text does not hold.
    """
    digest = hashlib.sha256()
    for split in SPLITS:
        digest.update(f"\x1d{split}".encode())
        for sentence in corpus.split(split):
            columns = [sentence.part, "\x1f".join(sentence.tokens)]
            for task, labels in sorted(sentence.labels.items()):
                columns += (task, "\x1f".join(labels))
            digest.update("\x1e".join(("", *columns)).encode(errors="surrogatepass"))
    return digest.hexdigest()[:_LENGTH]
