"""Predictions of a system that was trained elsewhere, stored as a run that is compared like any other."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any

from core import __version__
from core.config import OTHER, RunConfig
from core.config.fields import comma_list
from core.corpora import prepare
from core.corpora.loading import pinned_name
from core.corpora.readers.files import EXTENSIONS, read_splits
from core.corpora.readers.lines import GivenFile, read_lines
from core.corpora.types import Corpus, Sentence, Sentences, Split, Task
from core.errors import CorpusError, MRNLabError
from core.events import RunFacts, corpus_facts
from core.plain_text import shortened
from core.registry import UNKNOWN_ENCODER
from core.store import RunState, RunWithFacts, Store
from core.store.exchange import RunRecord
from core.store.types import StoredScore
from core.tasks import KINDS, score_task
from core.tasks.spans import spans
from core.wording import all_of, first_of, plural

_O = "O"
_MOST_WORDS_SHOWN = 6
Rows = list[tuple[str, ...]]
"""The labels of each sentence that a task is annotated on."""


@dataclass(frozen=True)
class Predictions:
    """The predictions of one training of a system on splits of a corpus.

    files      the content of a file for each split, `dev` or `test`, in a format that corpora are read from
    columns    the names of the columns of a CoNLL file, where their content does not tell
    fraction   the share of the training sentences that the system has learned from
    partial    sentences of the split that the file lacks count as sentences without any label
    """

    system: str
    corpus: str
    tasks: tuple[str, ...]
    seed: int
    files: Mapping[Split, GivenFile]
    columns: tuple[str, ...] | None = None
    corpus_columns: tuple[str, ...] | None = None
    fraction: float = 1.0
    pos_score: str = "accuracy"
    partial: bool = False

    @classmethod
    def of(
        cls,
        files: Mapping[Split, GivenFile],
        *,
        tasks: str | Sequence[str],
        columns: str | Sequence[str] | None = None,
        corpus_columns: str | Sequence[str] | None = None,
        **fields: Any,
    ) -> Predictions:
        """The predictions in these files; lists of names may be texts, as `pos,ner`."""
        return cls(
            files=files,
            tasks=_names(tasks),
            columns=_names(columns) or None,
            corpus_columns=_names(corpus_columns) or None,
            **fields,
        )

    @property
    def config(self) -> RunConfig:
        """The description of the run. Raises ConfigError."""
        return RunConfig.build(
            paradigm=OTHER,
            system=self.system,
            encoder=UNKNOWN_ENCODER,
            corpus=pinned_name(self.corpus),
            columns=self.corpus_columns,
            tasks=self.tasks,
            fraction=self.fraction,
            pos_score=self.pos_score,
            seed=self.seed,
        )


def _names(listed: str | Sequence[str] | None) -> tuple[str, ...]:
    return tuple(comma_list(listed) if isinstance(listed, str) else listed or ())


def add_predictions(store: Store, predictions: Predictions) -> int:
    """Scores the predictions, stores them as a finished run, and returns its number.

    Raises MRNLabError, and stores nothing, where a file cannot be read, its words are not those of the
    split, a label is none of the task's kind, or the store has predictions of this system, seed and task.
    """
    config = predictions.config
    corpus = prepare(config)
    for task in corpus.tasks:
        if task.auxiliary:
            raise CorpusError(f"{task.name} is annotated on training sentences alone, so it has no scores.")
    scores: list[StoredScore] = []
    labels: dict[tuple[str, str], tuple[Rows, Rows]] = {}
    notes: list[str] = []
    for split, file in predictions.files.items():
        answers = _Answers.read(file, predictions.columns, corpus, split)
        missing = answers.missing(partial=predictions.partial)
        if missing:
            notes.append(
                f"{file.name} lacks {plural(missing, 'sentence')} of {split}, counted as without labels."
            )
        for task in corpus.tasks:
            gold, predicted = answers.of_task(task)
            labels[split, task.name] = gold, predicted
            score = score_task(task.name, task.scheme, gold, predicted, plain_score=config.pos_score)
            scores.append(StoredScore(**vars(score), run_id=0, split=split, epoch=0))
    facts = _facts(corpus, config, notes)
    run = _finished(config, facts)
    with store.queueing_alone():
        _check_new(store, config)
        names = all_of([file.name for file in predictions.files.values()])
        note = f"Predictions of {config.system} from {names}."
        return store.import_record(RunRecord(run, (), (), scores, labels, ()), note)


def _check_new(store: Store, config: RunConfig) -> None:
    """Raises MRNLabError where the store has this system's predictions of a task with this seed."""
    for run in store.runs_of_system(str(config.system)):
        other = run.config
        if (
            run.config_problem is None
            and (other.corpus, other.seed) == (config.corpus, config.seed)
            and (other.fraction, other.pos_score) == (config.fraction, config.pos_score)
            and (both := set(other.tasks) & set(config.tasks))
        ):
            raise MRNLabError(
                f"Run {run.id} has predictions of {config.system} for {all_of(sorted(both))} with seed "
                f"{config.seed} already; delete it first, or name another --seed."
            )


def _facts(corpus: Corpus, config: RunConfig, notes: Sequence[str]) -> RunFacts:
    return RunFacts(
        **corpus_facts(corpus),
        device="",
        precision="",
        threads=0,
        versions={"mrnlab": __version__},
        tasks=corpus.task_facts(config.pos_score),
        total_steps=0,
        steps_per_epoch=0,
        features=0,
        notes=tuple(notes),
    )


def _finished(config: RunConfig, facts: RunFacts) -> RunWithFacts:
    now = datetime.now(UTC)
    return RunWithFacts(
        id=0,
        config=config,
        configuration_id=config.configuration_id,
        sweep=None,
        state=RunState.SUCCEEDED,
        created_at=now,
        started_at=now,
        finished_at=now,
        owner=None,
        heartbeat_at=None,
        step=0,
        total_steps=0,
        epoch=0.0,
        progress_at=now,
        best_epoch=None,
        checkpoint=None,
        log=None,
        error=None,
        facts=facts,
        attempt=1,
    )


@dataclass(frozen=True)
class _Answers:
    """The sentences of a file, matched to those of a split: `place` has the gold sentence of each."""

    file: GivenFile
    given: Sentences
    names: Mapping[str, str]
    """The column of the file by task."""
    split: Split
    gold: Sentences
    place: Sequence[int]

    @classmethod
    def read(cls, file: GivenFile, columns: Sequence[str] | None, corpus: Corpus, split: Split) -> _Answers:
        """Reads and matches a file. Raises CorpusError."""
        gold = corpus.split(split)
        if not gold:
            raise CorpusError(f"{corpus.name} has no {split} split; name another.")
        # As a corpus whose splits are this file: formats, label schemes and limits are those of corpora.
        given = read_splits(
            {"train": file, "test": file}, file.name, file.name, corpus.tasks[0].name, columns
        )
        names = _columns(file, given.tasks, corpus.tasks)
        sentences = given.split("train")
        return cls(
            file,
            sentences,
            names,
            split,
            gold,
            _places(file, sentences, gold, f"the {split} split of {corpus.name}"),
        )

    def missing(self, *, partial: bool) -> int:
        """The number of annotated sentences that the file lacks. Raises CorpusError unless `partial`."""
        wanted = self.gold.annotated(list(self.names))
        lacking = int(wanted.sum()) - int(wanted[list(self.place)].sum())
        if lacking and not partial:
            raise CorpusError(
                f"{self.file.name} has {plural(len(self.given), 'sentence')} and lacks {lacking:,} of the "
                f"{int(wanted.sum()):,} of {self.split}; --partial counts them as without labels."
            )
        return lacking

    def of_task(self, task: Task) -> tuple[Rows, Rows]:
        """The gold labels of the annotated sentences, and the predicted ones. Raises CorpusError."""
        column = self.gold.column(task.name)
        predicted = dict(zip(self.place, self._labels(self.names[task.name]), strict=True))
        gold = [tuple(row) for row in column.rows]
        rows = []
        for sentence, true in zip(column.at.tolist(), gold, strict=True):
            labels = predicted.get(sentence)
            if labels is None:
                labels = _without_labels(task, len(true))
            elif len(labels) != len(true):
                raise CorpusError(
                    f"{self.file.name}: {task.name} has {plural(len(labels), 'label')} where {self.split} "
                    f"has {len(true)}, in the sentence '{_shown(self.gold[sentence])}'."
                )
            _check_labels(self.file, task, labels)
            rows.append(labels)
        return gold, rows

    def _labels(self, name: str) -> Iterator[tuple[str, ...] | None]:
        return self.given.column(name).by_sentence(len(self.given))


def _without_labels(task: Task, items: int) -> tuple[str, ...]:
    """The labels of a sentence that has no prediction: no span, or a label that is none of the task's."""
    kind = KINDS[task.scheme]
    if kind.is_number:
        raise CorpusError(f"{task.name} has numbers; each text of the split needs one.")
    return (_O if kind.has_spans else "",) * items


def _check_labels(file: GivenFile, task: Task, labels: Sequence[str]) -> None:
    if KINDS[task.scheme].has_spans:
        try:
            spans(labels)
        except ValueError as error:
            raise CorpusError(f"{file.name}: {task.name} has spans, and {error}.") from None


def _columns(file: GivenFile, given: Sequence[Task], tasks: Sequence[Task]) -> dict[str, str]:
    """The column of the file for each task: that of its name, or the only one for the only task."""
    there = {task.name: task for task in given}
    if len(tasks) == len(there) == 1:
        names = {tasks[0].name: next(iter(there))}
    else:
        names = {task.name: task.name for task in tasks}
    for task in tasks:
        if names[task.name] not in there:
            raise CorpusError(
                f"{file.name} has no column {task.name}; its columns are {first_of(list(there))}. Name the "
                "columns of a CoNLL file with --columns, as tokens,_,ner."
            )
        kind, given_kind = KINDS[task.scheme], KINDS[there[names[task.name]].scheme]
        if given_kind.has_spans and not kind.has_spans:
            raise CorpusError(
                f"{file.name}: {names[task.name]} has spans, and {task.name} of the corpus none."
            )
    return names


def _places(file: GivenFile, given: Sentences, gold: Sentences, where: str) -> list[int]:
    """The gold sentence of each sentence of a file, in the order of both. Raises CorpusError."""
    places, following = [], 0
    texts = [(sentence.tokens, sentence.second) for sentence in gold]
    at: dict[tuple[tuple[str, ...], tuple[str, ...] | None], list[int]] = {}
    for index, text in enumerate(texts):
        at.setdefault(text, []).append(index)
    for number, sentence in enumerate(given):
        text = sentence.tokens, sentence.second
        place = next((index for index in at.get(text, ()) if index >= following), None)
        if place is None:
            expected = gold[following] if following < len(gold) else None
            raise CorpusError(_mismatch(file, given, number, expected, where))
        places.append(place)
        following = place + 1
    return places


def _mismatch(file: GivenFile, given: Sentences, number: int, expected: Sentence | None, where: str) -> str:
    """A sentence on the first sentence of a file that the split does not have there."""
    sentence = given[number]
    if expected is None:
        return (
            f"{file.name}: sentence {number + 1:,} ('{_shown(sentence)}') stands behind the last of {where}."
        )
    pairs = zip(sentence.tokens, expected.tokens, strict=False)
    word = next((index for index, (a, b) in enumerate(pairs) if a != b), None)
    line = _line_of(file, given, number, word or 0)
    start = f"{file.name}{f', line {line:,}' if line else ''}: sentence {number + 1:,}"
    if word is None:
        return (
            f"{start} has {plural(len(sentence.tokens), 'word')} ('{_shown(sentence)}') where {where} has "
            f"{len(expected.tokens)} ('{_shown(expected)}')."
        )
    return (
        f"{start}, word {word + 1} is '{shortened(sentence.tokens[word])}' where {where} has "
        f"'{shortened(expected.tokens[word])}'; predictions must be for the same words in the same order."
    )


def _line_of(file: GivenFile, given: Sentences, number: int, word: int) -> int | None:
    """The line of a word in a file with a word a line; None in other files."""
    if not file.name.lower().endswith(EXTENSIONS):
        return None
    words = [token for sentence in given[: number + 1] for token in sentence.tokens]
    wanted = len(words) - len(given[number].tokens) + word
    seen = 0
    for line_number, line in enumerate(read_lines(file), start=1):
        if words[seen] in line.split():
            if seen == wanted:
                return line_number
            seen += 1
    return None


def _shown(sentence: Sentence) -> str:
    words = sentence.tokens[:_MOST_WORDS_SHOWN]
    return shortened(" ".join(words) + " …" * (len(sentence.tokens) > len(words)))
