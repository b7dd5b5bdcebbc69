"""Where a row of a table scores higher than its baseline: by bucket, by kind of error, by scheme of F1."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from core.corpora.loading import tasks_of
from core.corpora.types import Sentences
from core.errors import ConfigError, CorpusError, MRNLabError
from core.evaluation.buckets import (
    Bucket,
    BucketedText,
    Items,
    TaskText,
    bucket_counts,
    shown,
    span_types,
)
from core.evaluation.span_differences import FigureDifference, kind_differences, scheme_differences
from core.evaluation.where import BucketDifference, PairedItems, bucket_differences, where_headline
from core.plain_text import shortened
from core.results.compared import compared
from core.results.comparisons import Difference, run_pairs
from core.results.scored_text import Labels, ScoredText, scored_text
from core.results.stored import Results
from core.results.table import MEAN_OF_TASKS
from core.store import Run, Store
from core.tasks.packed import packed
from core.tasks.span_errors import SpanErrors, span_errors
from core.tasks.spans import numbered
from core.wording import first_of, plural

ERRORS, SCHEME = "errors", "F1 scheme"
"""What stands for a feature where a row is a kind of error, or a scheme of F1."""
WHERE_COLUMNS = (
    "data", "configuration", "baseline", "task", "split", "feature", "bucket", "items", "a", "b",
    "difference", "low", "high", "seeds", "p_sentences_holm", "p_holm", "verdict", "explained_by",
)  # fmt: skip


@dataclass(frozen=True)
class BucketSentence:
    """A sentence in which one of two rows makes fewer errors with the items of a bucket.

    sentence      the index among the split's sentences that are annotated for the task, from 0
    fewer, more   the seeds with which the row makes fewer errors there than the baseline, and more
    run_ids       the runs of row and baseline with the first seed of the larger of both numbers
    """

    sentence: int
    fewer: int
    more: int
    run_ids: tuple[int, int]


@dataclass(frozen=True)
class ErrorsByBucket:
    """The errors of a baseline less those of a row, (K, S, B) by seed, sentence and bucket.

    `run_ids` (K) are the runs of row and baseline. Of sentences that differ from seed to seed the first seed
    counts alone.
    """

    run_ids: tuple[tuple[int, int], ...]
    buckets: tuple[Bucket, ...]
    fewer_errors: NDArray[np.float32]

    def sentences_in(self, bucket: Bucket) -> list[BucketSentence]:
        """The sentences in which both err unlike often in this bucket, those of most seeds first."""
        less = self.fewer_errors[:, :, self.buckets.index(bucket)]
        fewer, more = (less > 0).sum(axis=0), (less < 0).sum(axis=0)
        places = np.flatnonzero(fewer + more)
        most = np.abs(fewer - more)[places]
        order = np.lexsort((-np.abs(less.sum(axis=0))[places], -most))
        shown = []
        for place in places[order].tolist():
            first = np.argmax(less[:, place] > 0 if fewer[place] >= more[place] else less[:, place] < 0)
            shown.append(BucketSentence(place, int(fewer[place]), int(more[place]), self.run_ids[int(first)]))
        return shown


@dataclass(frozen=True)
class Where:
    """The difference of a row from a baseline on a task, taken apart.

    `items` is what is counted: spans, words or texts. `buckets` are empty, with a note, where the words are
    not known; `kinds` and `schemes` are those of spans. `errors` shows which sentences a difference is in;
    None without buckets.
    """

    data: str
    split: str
    delta: Difference
    items: str
    buckets: tuple[BucketDifference, ...]
    kinds: tuple[FigureDifference, ...] = ()
    schemes: tuple[FigureDifference, ...] = ()
    notes: tuple[str, ...] = ()
    errors: ErrorsByBucket | None = None

    @property
    def headline(self) -> str:
        """Where the row gains and loses, and what is known of the other buckets."""
        return " ".join(filter(None, self.headlines))

    @property
    def headlines(self) -> tuple[str, str]:
        """Both sentences of `headline`; the second may be empty."""
        names = self.delta.row.name, self.delta.base.name
        if not self.buckets:
            return f"On {self.delta.task} there are no buckets to compare {' and '.join(names)} in.", ""
        return where_headline(self.delta.task, *names, self.buckets)

    @property
    def records(self) -> list[dict[str, object]]:
        """A record of WHERE_COLUMNS for each bucket, kind of error and scheme: scores and shares in [0, 1].

        `p_holm` is of other seeds and other sentences for buckets, of other seeds for errors and schemes.
        """
        whose = {
            "data": self.data,
            "configuration": self.delta.row.name,
            "baseline": self.delta.base.name,
            "task": self.delta.task,
            "split": self.split,
        }
        records: list[dict[str, object]] = []
        for each in self.buckets:
            low, high = each.interval or (None, None)
            records.append(
                {
                    "feature": each.bucket.feature,
                    "bucket": each.bucket.name,
                    "items": each.items,
                    "a": each.a,
                    "b": each.b,
                    "difference": each.paired.mean,
                    "low": low,
                    "high": high,
                    "seeds": each.paired.n,
                    "p_sentences_holm": each.p,
                    "p_holm": each.joint,
                    "verdict": each.verdict,
                    "explained_by": each.explained_by and each.explained_by.phrase,
                }
            )
        for feature, figures in ((ERRORS, self.kinds), (SCHEME, self.schemes)):
            for figure in figures:
                comparison = figure.comparison
                low, high = comparison.interval or (None, None)
                records.append(
                    {
                        "feature": feature,
                        "bucket": figure.name,
                        "a": figure.a,
                        "b": figure.b,
                        "difference": comparison.mean,
                        "low": low,
                        "high": high,
                        "seeds": comparison.seeds,
                        "p_holm": comparison.p,
                        "verdict": comparison.verdict,
                    }
                )
        return [dict.fromkeys(WHERE_COLUMNS) | whose | record for record in records]


def where(
    store: Store,
    results: Results,
    split: str = "test",
    *,
    baseline: str | None = None,
    tasks: Collection[str] | None = None,
    by: Sequence[str] = (),
    every_row: bool = False,
) -> list[Where]:
    """Where each row of each data differs from its baseline, task by task (`core.results.compared`).

    `by` are columns of the corpus whose values are buckets too, also those that were not trained. What cannot
    be taken apart is left out. Raises ConfigError for a task without scores and a baseline that is no row,
    MRNLabError where nothing can be taken apart: no common seed, no predictions, another text.
    """
    if tasks is not None and MEAN_OF_TASKS in tasks:
        raise ConfigError("task", f"task: '{MEAN_OF_TASKS}' has no words; name a task.")
    answered = compared(results, split, baseline=baseline, tasks=tasks, every_row=every_row)
    runs = {run.id: run for group in results.groups.values() for run in group}
    apart, problems = [], list[str]()
    for each in answered:
        for delta in each.differences:
            if delta.task == MEAN_OF_TASKS:
                continue
            try:
                apart.append(
                    where_of(store, delta, each.table.scored_by[delta.task], runs, each.data, split, by)
                )
            except NothingToTakeApart as error:
                problems.append(str(error))
    if not apart:
        raise MRNLabError(
            problems[0]
            if problems
            else f"There are no two rows with {split} scores on the same data to compare."
        )
    return apart


class NothingToTakeApart(MRNLabError):
    """Two rows have no predictions of a common seed on a task."""


def where_of(
    store: Store,
    delta: Difference,
    score_name: str,
    runs: Mapping[int, Run],
    data: str,
    split: str,
    by: Sequence[str] = (),
) -> Where:
    """Where that difference comes from.

    Raises NothingToTakeApart for rows without common seed or stored predictions; ConfigError for a column
    `by` that the corpus has not.
    """
    task = delta.task
    pairs, notes = _pairs(store, delta, runs, split)
    is_span = score_name == "f1_conll"
    items = "spans" if is_span else "words"
    buckets: tuple[BucketDifference, ...] = ()
    errors_by_bucket = None
    try:
        texts = _texts(pairs, split, task, by)
    except CorpusError as error:
        if not is_span:
            raise NothingToTakeApart(str(error)) from None
        notes.append(f"There are no buckets. {error}")
    else:
        items = items if texts[0].kind.reads == "words" else texts[0].kind.items
        is_alike = all(pair.gold == pairs[0].gold for pair in pairs)
        buckets, errors_by_bucket = _by_bucket(pairs, texts, score_name, is_alike=is_alike)
        if not is_alike:
            notes.append(
                f"The {split} sentences differ from seed to seed, so there is no test over sentences, and "
                "nothing is decided."
            )
    kinds, schemes = _by_kind(pairs) if is_span else ((), ())
    return Where(data, split, delta, items, buckets, kinds, schemes, tuple(notes), errors_by_bucket)


def _pairs(
    store: Store, delta: Difference, runs: Mapping[int, Run], split: str
) -> tuple[list[_Pair], list[str]]:
    """The runs of both rows by seed, and notes on the seeds that are left out or alone."""
    task, names = delta.task, f"{delta.row.name} and {delta.base.name}"
    ids = run_pairs(delta)
    if not ids:
        raise NothingToTakeApart(f"{names} have no seed in common on {task}.")
    pairs = [pair for a, b in ids if (pair := _pair(store, runs[a], runs[b], split, task)) is not None]
    if not pairs:
        raise NothingToTakeApart(
            f"No {split} predictions of {names} on {task} are stored for a common seed; train them again."
        )
    if any(pair.gold != pair.base_gold for pair in pairs):
        raise NothingToTakeApart(f"{names} were scored on different {split} sentences of {task}.")
    notes = []
    if len(pairs) < len(ids):
        notes.append(f"{plural(len(ids) - len(pairs), 'seed')} left out: no predictions are stored.")
    if len(pairs) == 1:
        notes.append("One seed in common: nothing is decided.")
    return pairs, notes


def _by_bucket(
    pairs: Sequence[_Pair], texts: Sequence[BucketedText], score_name: str, *, is_alike: bool
) -> tuple[tuple[BucketDifference, ...], ErrorsByBucket]:
    """The differences by bucket, and the errors of each sentence.

    `is_alike`: all seeds were scored on the same sentences; if not, the errors are those of the first.
    """
    of_pairs = list(zip(texts, pairs, strict=True))
    items_a = [text.items(pair.gold, pair.predicted, score_name) for text, pair in of_pairs]
    items_b = [text.items(pair.gold, pair.base_predicted, score_name) for text, pair in of_pairs]
    seeds = [pair.run.config.seed for pair in pairs]
    lengths = [len(text.text.tokens) for text in texts]
    paired = PairedItems(texts[0].buckets, seeds, items_a, items_b, lengths, is_alike)
    counted = slice(len(pairs) if is_alike else 1)
    less = [
        _bucket_errors(text, of_base, pair.gold, pair.base_predicted)
        - _bucket_errors(text, of_row, pair.gold, pair.predicted)
        for (text, pair), of_row, of_base in zip(
            of_pairs[counted], items_a[counted], items_b[counted], strict=True
        )
    ]
    run_ids = tuple((pair.run.id, pair.base.id) for pair in pairs[counted])
    return tuple(bucket_differences(paired)), ErrorsByBucket(run_ids, texts[0].buckets, np.stack(less))


def _by_kind(
    pairs: Sequence[_Pair],
) -> tuple[tuple[FigureDifference, ...], tuple[FigureDifference, ...]]:
    """The differences by kind of error, and by scheme of F1."""
    errors = {pair.run.config.seed: _errors(pair.gold, pair.predicted) for pair in pairs}
    base_errors = {pair.run.config.seed: _errors(pair.gold, pair.base_predicted) for pair in pairs}
    return tuple(kind_differences(errors, base_errors)), tuple(scheme_differences(errors, base_errors))


def _bucket_errors(text: BucketedText, items: Items, gold: Labels, predicted: Labels) -> NDArray[np.float32]:
    """(S, B) errors with the items of each bucket: labels missed, and wrong ones; of numbers how far off."""
    of_errors = items
    if text.kind.is_number:
        far = [abs(float(true) - float(guess)) for (true,), (guess,) in zip(gold, predicted, strict=True)]
        of_errors = items._replace(values=np.array(far, dtype=np.float64)[:, None])
    counts = bucket_counts(of_errors, len(text.text.tokens), len(text.buckets))[:, :-1].astype(np.float32)
    if text.kind.is_number:
        return counts[:, :, 0]
    errors: NDArray[np.float32] = counts[:, :, 0] + counts[:, :, 1] - 2 * counts[:, :, 2]
    return errors


@dataclass(frozen=True)
class _Pair:
    """The stored labels of two runs with the same seed on a task."""

    run: Run
    base: Run
    gold: Labels
    predicted: Labels
    base_gold: Labels
    base_predicted: Labels


def _pair(store: Store, run: Run, base: Run, split: str, task: str) -> _Pair | None:
    """None where the labels of one are not stored."""
    sides = [store.predictions(each.id, split, task).get(task) for each in (run, base)]
    if sides[0] is None or sides[1] is None:
        return None
    return _Pair(run, base, *sides[0], *sides[1])


def _texts(pairs: Sequence[_Pair], split: str, task: str, by: Sequence[str]) -> list[BucketedText]:
    """The sentences of each pair; those that trained on the same sentences share them."""
    config = pairs[0].run.config
    columns = tasks_of(config.corpus, config.columns) if by else ()
    if unknown := [name for name in by if name not in columns]:
        raise ConfigError(
            "by",
            f"by: {config.corpus} has no column '{shortened(unknown[0])}'; name {first_of(list(columns))}.",
        )
    texts: list[BucketedText] = []
    of_seed = True
    for pair in pairs:
        if not of_seed and pair.gold == pairs[0].gold:
            texts.append(texts[0])
            continue
        text = scored_text(pair.run, split, task, pair.gold, by)
        of_seed = text.of_seed
        texts.append(_bucketed(text, task, by))
    return texts


def _bucketed(text: ScoredText, task: str, by: Sequence[str]) -> BucketedText:
    kind = text.kinds[task]
    columns = {}
    for name in by:
        rows = text.sentences.column(name).by_sentence(len(text.sentences))
        columns[name] = [row and span_types(row) if text.kinds[name].has_spans else row for row in rows]
    return BucketedText(
        _task_text(text.sentences, task), kind, shown(_task_text(text.training, task), kind), columns
    )


def _task_text(sentences: Sentences, task: str) -> TaskText:
    tokens = sentences.tokens
    if len(sentences.second.at):
        tokens = packed((*sentence.tokens, *(sentence.second or ())) for sentence in sentences)
    return TaskText(tokens, sentences.column(task).rows)


def _errors(gold: Labels, predicted: Labels) -> SpanErrors:
    return span_errors(*numbered(gold, predicted))
