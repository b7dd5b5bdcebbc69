"""From sentences as read to a Corpus: schemes detected, spans in IOB2, labels gathered; and its hash."""

from __future__ import annotations

import hashlib
import re
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from itertools import chain, islice, repeat
from types import MappingProxyType

from core.corpora.layout.doubts import LAYERS, has_layers
from core.corpora.layout.gold import only_labelled, untrained, without_codes
from core.corpora.layout.names import name_numbers
from core.corpora.layout.report import read_labels, read_spans
from core.corpora.readers.conllu import FEATURE
from core.corpora.reading import Reading
from core.corpora.repeats import repeats
from core.corpora.types import SPLITS as SPLITS
from core.corpora.types import Column, Corpus, Scheme, Sentence, Sentences, Split, Task
from core.errors import CorpusError
from core.tasks import KINDS, score_task
from core.tasks.packed import all_counts
from core.tasks.schemes import OddLabel, SpanColumn, inside, read_column
from core.wording import all_of, first_of

MOST_LABELS = 10_000
"""The most labels of a task: five times the finest tag sets. A column of lemmas or numbers has more."""


_OF_WORDS = ("plain", "iob2")

TEXT_VERSION = "-2"
"""The end of a text hash with the labels of `_LATER` tasks."""
_SENTENCES_AT_ONCE = 1000
_LATER = re.compile(rf"deprel$|{FEATURE}")

Place = Callable[[Split, int, int], str]
"""The function that gives a word's location in the files from its split, sentence and word index, from 0."""


def assemble(
    name: str,
    splits: Mapping[Split, Iterable[Sentence]],
    notes: Sequence[str] = (),
    tag_lists: Mapping[str, Sequence[str]] = MappingProxyType({}),
    schemes: Mapping[str, Scheme] = MappingProxyType({}),
    locate: Place | None = None,
    files: Mapping[Split, str] = MappingProxyType({}),
) -> Corpus:
    """The corpus of these sentences as read from files, all of their spans in IOB2.

    `tag_lists` has the labels that the corpus declares for a task, whether they occur or not; `schemes` the
    kinds of tasks that are known. Those of other tasks, on words, show in their labels. `notes` are those on
    its files, to which those on its columns are added, `locate` gives the location of a label, and `files`
    has the names of the splits' files. Codes for no label are taken away, and texts and splits without labels
    left out, as the notes say.

    Raises CorpusError where no label was read, or nearly all labels of a column are those of spans and one is
    not.
    """
    packed = {split: Sentences.of(sentences) for split, sentences in splits.items()}
    names = list(dict.fromkeys(chain.from_iterable(sentences.labels for sentences in packed.values())))
    if not names:
        raise CorpusError(f"{name} has words but no labels; it must have at least one column of labels.")
    of_texts = {task: schemes[task] for task in names if task in schemes and schemes[task] not in _OF_WORDS}
    without = {task: without_codes(packed, task) for task in of_texts}
    tasks: list[Task] = []
    readings = name_numbers(packed, of_texts)
    skipped = [column.name for column in readings]
    for task in [task for task in names if task not in skipped]:
        scheme, reading = schemes.get(task), None
        columns = {split: sentences.column(task) for split, sentences in packed.items()}
        written = {split: column.rows for split, column in columns.items()}
        if scheme is None:
            scheme = "plain"
            if (spans := _spans(name, task, columns, locate)) is not None:
                scheme, reading = "iob2", read_spans(task, written, spans)
                for split, column in columns.items():
                    at = column.at[~spans.lacking[split]]
                    packed[split] = packed[split].with_column(task, Column(at, spans.labels[split]))
        if not KINDS[scheme].is_number:
            _check_labels(name, task, all_counts(each.column(task).rows for each in packed.values()))
        if (without_training := untrained(packed, task)) is not None:
            packed = {split: sentences.without([task]) for split, sentences in packed.items()}
            readings.append(without_training)
            continue
        readings.append(reading or read_labels(task, KINDS[scheme], written, without.get(task)))
        tasks.append(Task(task, scheme, (), inventory=tuple(tag_lists.get(task, ()))))
    titles = dict(files)
    left_out = only_labelled(name, packed, titles)
    read = Reading(
        name, {str(split): title for split, title in titles.items()}, "", tuple(readings), (*notes, *left_out)
    )
    train, dev, test = (packed.get(split, ()) for split in SPLITS)
    return describe(Corpus(name, tuple(tasks), train, dev, test, read.all_notes, readings=(read,)))


def _spans(
    name: str, task: str, columns: Mapping[Split, Column], locate: Place | None
) -> SpanColumn[Split] | None:
    """The spans of a task on words in IOB2; None where its labels are labels of words. Raises CorpusError."""
    try:
        return read_column({split: column.rows for split, column in columns.items()})
    except OddLabel as odd:
        split = next(split for split in columns if split == odd.split)
        sentence = int(columns[split].at[odd.sentence])
        where = (
            f"{name}, {split} split, sentence {sentence + 1}"
            if locate is None
            else locate(split, sentence, odd.word)
        )
        is_first = (odd.sentence, odd.word) == (0, 0)
        if has_layers(odd.label):
            raise CorpusError(f"{where}: '{odd.label}' in the column {task} {LAYERS}.") from None
        header = " If this line names the columns, delete it." if is_first else ""
        raise CorpusError(f"{where}: {odd} It is in the column {task}.{header}") from None


def describe(corpus: Corpus) -> Corpus:
    """The corpus with its tasks' labels, unseen labels and violations counted anew from its sentences."""
    return replace(corpus, tasks=tuple(_described(corpus, task) for task in corpus.tasks))


def findings(corpus: Corpus) -> tuple[str, ...]:
    """Sentences on problems that a researcher should know: labels never seen, repeated sentences."""
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
        notes += [
            f"{task.name}: no sentence of the {split} split is annotated for it; leave the task out or add "
            "such sentences."
            for split in SPLITS[1:]
            if _lacks_labels(corpus, task, split)
        ]
        counts = {split: number for split, number in task.illegal.items() if number}
        if counts:
            where = ", ".join(f"{number:,} in {split}" for split, number in counts.items())
            notes.append(f"{task.name}: I- labels that continue no span: {where}; they are kept as they are.")
    return (*notes, *(repeat.sentence for repeat in repeats(corpus)))


def undefined_note(task: str, split: str, reason: str) -> str:
    """A sentence on a score that the gold labels of a split leave undefined."""
    return f"{task}: its {split} score is undefined: {reason}."


def _undefined(corpus: Corpus, task: Task) -> dict[Split, str]:
    """Why a perfect prediction would have no score, for each of dev and test where that is so."""
    reasons: dict[Split, str] = {}
    for split in SPLITS[1:]:
        column = corpus.split(split).column(task.name).rows
        if len(column.counts()) == 1:
            score = score_task(task.name, task.scheme, column, column, details=False)
            if not score.is_defined:
                reasons[split] = score.undefined_because(f"the {split} split")
    return reasons


def _lacks_labels(corpus: Corpus, task: Task, split: Split) -> bool:
    """Whether a split that the task is scored on has no label of it, so that a run is refused."""
    train, scored = corpus.split("train"), corpus.split(split)
    if task.auxiliary or len(scored.column(task.name).at):
        return False
    wanted, here = train.by_traits(lambda traits: traits.part), scored.by_traits(lambda traits: traits.part)
    # Of a part without a dev split, training sentences are held out.
    return set(wanted[train.annotated([task.name])]) <= set(here)


def _described(corpus: Corpus, task: Task) -> Task:
    kind = KINDS[task.scheme]
    columns = {split: corpus.split(split).column(task.name).rows for split in SPLITS}
    labels = {split: set(column.counts()) for split, column in columns.items()}
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
    """Raises CorpusError if there are too many labels."""
    if len(labels) > MOST_LABELS:
        raise CorpusError(
            f"{name}: the column {task} has {len(labels):,} different labels and the most is {MOST_LABELS:,}"
            "; where it holds lemmas or the like, begin its name with _ to skip it."
        )


def text_hash(corpus: Corpus) -> str:
    """16 hexadecimal digits of SHA-256 over all words, labels and parts of a corpus, split by split.

    It is the same for the same text, wherever its files lie and however they are written. Words, columns,
    sentences and splits are separated by control characters, which text does not hold. Of a corpus with
    `deprel` or features of CoNLL-U, which earlier versions left out (`older_text_hash`), it ends in
    TEXT_VERSION.
    """
    return _text_hash(corpus) + TEXT_VERSION * has_later_tasks(_task_names(corpus))


def older_text_hash(corpus: Corpus) -> str:
    """The text hash of earlier versions, without tasks that CoNLL-U files did not offer at first."""
    return _text_hash(corpus, without=_LATER)


def has_later_tasks(tasks: Iterable[str]) -> bool:
    """Whether one of these tasks is in no text hash of earlier versions."""
    return any(map(_LATER.match, tasks))


def _task_names(corpus: Corpus) -> set[str]:
    return {task for split in SPLITS for task in corpus.split(split).labels}


def _text_hash(corpus: Corpus, without: re.Pattern[str] | None = None) -> str:
    digest = hashlib.sha256()
    for split in SPLITS:
        digest.update(f"\x1d{split}".encode())
        sentences = corpus.split(split)
        tasks = [task for task in sorted(sentences.labels) if without is None or not without.match(task)]
        columns = [("\x1e", sentences.second)]
        columns += [(f"\x1e{task}\x1e", sentences.labels[task]) for task in tasks]
        parts = sentences.by_traits(lambda traits: f"\x1e{traits.part}\x1e").tolist()
        rows: list[Iterable[str]] = [parts, map("\x1f".join, sentences.tokens)]
        rows += [_joined(name, column, len(sentences)) for name, column in columns]
        by_sentence = zip(*rows, strict=True)
        while some := "".join(chain.from_iterable(islice(by_sentence, _SENTENCES_AT_ONCE))):
            digest.update(some.encode(errors="surrogatepass"))
    return digest.hexdigest()[:16]


def _joined(name: str, column: Column, sentences: int) -> Iterator[str]:
    """The labels of each of so many sentences behind their name; nothing where it has none."""
    if not len(column.at):
        return repeat("", sentences)
    return ("" if row is None else name + "\x1f".join(row) for row in column.by_sentence(sentences))
