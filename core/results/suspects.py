"""Gold suspects: places where nearly all seeds of all methods predict the same, and not what is annotated.

What all models get wrong alike looks like wrong gold, so agreement alone does not order them (`_suspicion`).
Nothing here changes an annotation. A place is a word, a text, or for spans the words of all annotated and
predicted spans that overlap and differ.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from core.corpora.types import Sentence
from core.errors import ConfigError, MRNLabError
from core.plain_text import shortened
from core.results.samples import by_configuration, succeeded_one_per_seed
from core.results.scored_text import Labels, ScoredText, scored_text
from core.results.stored import Results
from core.store import Run, Store
from core.tasks import TaskKind
from core.tasks.packed import Numbering, Packed, offsets
from core.tasks.spans import FlatSpans, Ints, span_pair
from core.wording import first_of

AGREE = 0.9
"""The least share of agreeing runs of a suspect, the mean over methods of their shares of seeds."""
SUSPECT_COLUMNS = (
    "data", "task", "split", "agree", "runs", "sentence", "start", "end", "words", "gold", "predicted",
    "related", "text",
)  # fmt: skip


@dataclass(frozen=True)
class Suspect:
    """A place whose annotation the runs agree to contradict.

    sentence    the index among the split's sentences that are annotated for the task, from 0
    start, end  its words, `end` exclusive; the whole text for a label of a text
    gold, predicted   the labels of these words, or of the text
    agree       the mean over methods of the share of their seeds that predict exactly this, in [0, 1]
    runs        the number of runs
    related     by other task the annotated labels of these words and those that most of its runs predict
    """

    sentence: int
    start: int
    end: int
    gold: tuple[str, ...]
    predicted: tuple[str, ...]
    agree: float
    runs: int
    words: Sentence
    related: Mapping[str, tuple[tuple[str, ...], tuple[str, ...]]]

    @property
    def related_text(self) -> str:
        """`pos NNP VB (annotated NN VB), chunk B-NP I-NP`."""
        return ", ".join(
            f"{task} {' '.join(predicted)}" + ("" if gold == predicted else f" (annotated {' '.join(gold)})")
            for task, (gold, predicted) in self.related.items()
        )


@dataclass(frozen=True)
class Suspects:
    """The suspects of a task, those that look most like a wrong annotation first."""

    data: str
    task: str
    split: str
    kind: TaskKind
    places: tuple[Suspect, ...]

    @property
    def records(self) -> list[dict[str, object]]:
        """A record of SUSPECT_COLUMNS for each."""
        return [
            {
                "data": self.data,
                "task": self.task,
                "split": self.split,
                "agree": each.agree,
                "runs": each.runs,
                "sentence": each.sentence,
                "start": each.start,
                "end": each.end,
                "words": " ".join(words_of(each.words)[each.start : each.end]),
                "gold": " ".join(each.gold),
                "predicted": " ".join(each.predicted),
                "related": each.related_text,
                "text": " ".join(words_of(each.words)),
            }
            for each in self.places
        ]


def words_of(sentence: Sentence) -> tuple[str, ...]:
    """The words of a sentence, of a pair those of both texts."""
    return (*sentence.tokens, *(sentence.second or ()))


def suspects(
    store: Store,
    results: Results,
    split: str = "test",
    *,
    tasks: Collection[str] | None = None,
    agree: float = AGREE,
) -> list[Suspects]:
    """The suspects of each data and task with predictions of two runs or more on the same sentences.

    One run a seed counts. Raises ConfigError for a task without predictions and a share outside (0.5, 1],
    MRNLabError where no task has predictions of two runs; CorpusError where the words are not known.
    """
    if not 0.5 < agree <= 1:
        raise ConfigError("agree", f"agree: {agree:g} is not a share above 0.5, up to 1.")
    of_tasks, problems, stored_tasks = list[Suspects](), list[str](), dict[str, None]()
    for group, runs in results.groups.items():
        methods = [succeeded_one_per_seed(of, results.conditions) for of in by_configuration(runs).values()]
        votes, unfit = _votes_of(store, methods, split)
        stored_tasks |= dict.fromkeys((*votes, *unfit))
        problems += [text for task, text in unfit.items() if tasks is None or task in tasks]
        wanted = [task for task in votes if tasks is None or task in tasks]
        other, _ = _votes_of(store, methods, _OTHER[split]) if wanted else ({}, {})
        of_tasks += [_suspects(group.name, task, split, votes, other.get(task), agree) for task in wanted]
    if unknown := [task for task in tasks or () if task not in stored_tasks]:
        raise ConfigError(
            "task",
            f"task: no {split} predictions on '{shortened(unknown[0])}' are stored; "
            f"{f'name {first_of([*stored_tasks])}' if stored_tasks else 'older runs have none'}.",
        )
    if not of_tasks:
        raise MRNLabError(
            problems[0]
            if problems
            else f"None of these runs has {split} predictions stored; a run must have finished."
        )
    return of_tasks


def suspects_of(
    store: Store, data: str, methods: Sequence[Sequence[Run]], split: str, task: str, agree: float = AGREE
) -> Suspects:
    """The suspects of a task in the predictions of these methods' runs, one a seed. Raises as `suspects`."""
    votes, unfit = _votes_of(store, methods, split)
    if task not in votes:
        raise MRNLabError(unfit.get(task, f"No {split} predictions on {task} are stored; train it again."))
    other, _ = _votes_of(store, methods, _OTHER[split])
    return _suspects(data, task, split, votes, other.get(task), agree)


_OTHER = {"dev": "test", "test": "dev"}


@dataclass(frozen=True)
class _Votes:
    """The predictions of all runs on a task: label numbers (R, N), and weights of runs, which sum to 1."""

    text: ScoredText
    gold: Packed
    predicted: NDArray[np.int64]
    weights: NDArray[np.float64]

    @cached_property
    def modal(self) -> NDArray[np.int64]:
        """(N,) the label of most weight of each word or text."""
        votes = np.zeros((len(self.gold.names), self.predicted.shape[1]))
        for labels, weight in zip(self.predicted, self.weights, strict=True):
            votes[labels, np.arange(len(labels))] += weight
        modal: NDArray[np.int64] = votes.argmax(axis=0)
        return modal

    @cached_property
    def words(self) -> list[str]:
        """(N,) the words of a task that labels words."""
        return [word for row in self.text.sentences.tokens for word in row]

    @cached_property
    def sentences(self) -> dict[tuple[tuple[str, ...], int], int]:
        """The indices of the sentences by their words, and which of those with the same words it is."""
        times: Counter[tuple[str, ...]] = Counter()
        places = {}
        for index, words in enumerate(self.text.sentences.tokens):
            places[words, times[words]] = index
            times[words] += 1
        return places


def _stored(
    store: Store, methods: Sequence[Sequence[Run]], split: str
) -> dict[str, list[tuple[int, Run, Labels, Labels]]]:
    """By task the number of the method, the run, and its gold and predicted labels."""
    stored: dict[str, list[tuple[int, Run, Labels, Labels]]] = defaultdict(list)
    for number, runs in enumerate(methods):
        for run in runs:
            for task, labels in store.predictions(run.id, split).items():
                stored[task].append((number, run, *labels))
    return stored


def _votes_of(
    store: Store, methods: Sequence[Sequence[Run]], split: str
) -> tuple[dict[str, _Votes], dict[str, str]]:
    """The votes by task, and by task of which predictions show no suspects the reason."""
    votes, unfit = {}, {}
    for task, of_task in _stored(store, methods, split).items():
        try:
            votes[task] = _votes(task, split, of_task)
        except MRNLabError as error:
            unfit[task] = str(error)
    return votes, unfit


def _votes(task: str, split: str, of_task: Sequence[tuple[int, Run, Labels, Labels]]) -> _Votes:
    """Raises MRNLabError where the predictions of these runs cannot show suspects."""
    _, run, gold, _ = of_task[0]
    if len(of_task) < 2:
        raise MRNLabError(
            f"On {task} only run {run.id} has {split} predictions; suspects are places on which several runs "
            "agree."
        )
    if any(of_run != gold for _, _, of_run, _ in of_task):
        raise MRNLabError(
            f"On {task} the runs were scored on different {split} sentences; name runs on the same ones."
        )
    text = scored_text(run, split, task, gold)
    if text.kinds[task].is_number:
        raise MRNLabError(f"{task} predicts numbers, which have no suspects.")
    names = Numbering[str]()
    numbers = [
        np.array([names[label] for row in side for label in row], dtype=np.int64)
        for side in (gold, *(predicted for *_, predicted in of_task))
    ]
    sizes = Counter(number for number, *_ in of_task)
    weights = np.array([1 / (len(sizes) * sizes[number]) for number, *_ in of_task])
    borders = offsets(np.array(list(map(len, gold)), dtype=np.int64))
    return _Votes(text, Packed(tuple(names), numbers[0], borders), np.stack(numbers[1:]), weights)


@dataclass(frozen=True)
class _Places:
    """Places where the label of most weight is not as annotated.

    starts, ends (k,)   their words among all of the split, or their texts
    agree (k,)          the weight of the runs that predict exactly this
    """

    starts: Ints
    ends: Ints
    agree: NDArray[np.float64]


def _places(votes: _Votes, task: str) -> _Places:
    gold, modal = votes.gold, votes.modal
    starts = np.flatnonzero(gold.numbers != modal)
    ends = starts + 1
    if votes.text.kinds[task].has_spans:
        starts, ends = _regions(*span_pair(gold, modal)[1:])
    # Of each run, how many labels before a word are those that most predict.
    alike = np.cumsum(votes.predicted == modal, axis=1)
    alike = np.concatenate([np.zeros((len(alike), 1), dtype=alike.dtype), alike], axis=1)
    return _Places(starts, ends, votes.weights @ (alike[:, ends] - alike[:, starts] == ends - starts))


def _suspects(
    data: str, task: str, split: str, votes: Mapping[str, _Votes], other: _Votes | None, agree: float
) -> Suspects:
    """The suspects of a task; `other` are the votes on the other split, where there are any."""
    of_task = votes[task]
    gold, modal, text = of_task.gold, of_task.modal, of_task.text
    places = _places(of_task, task)
    sure = np.flatnonzero(places.agree >= agree - 1e-9)
    order = np.argsort(-_suspicion(task, of_task, places, other)[sure], kind="stable")
    shown = []
    for place in sure[order].tolist():
        start, end = int(places.starts[place]), int(places.ends[place])
        index = int(np.searchsorted(gold.offsets, start, side="right")) - 1
        sentence, first = text.sentences[index], int(gold.offsets[index])
        is_of_words = text.kinds[task].reads == "words"
        at = (start - first, end - first) if is_of_words else (0, len(words_of(sentence)))
        shown.append(
            Suspect(
                index,
                *at,
                gold=_labels(gold.names, gold.numbers[start:end]),
                predicted=_labels(gold.names, modal[start:end]),
                agree=round(float(places.agree[place]), 9),
                runs=len(of_task.weights),
                words=sentence,
                related=_related(task, votes, index, *at),
            )
        )
    return Suspects(data, task, split, text.kinds[task], tuple(shown))


_AGREEMENT = 5.0
"""How much agreement counts, from none of the runs to all; its sum with logarithms is measured in
`tests.benchmarks.suspects`."""


def _suspicion(task: str, votes: _Votes, places: _Places, other: _Votes | None) -> NDArray[np.float64]:
    """(k,) how much each place looks like a wrong annotation and not like a mistake that models make.

    The sum of the agreement, weighted, and of three logarithms, with half a place added to each count: the
    odds, by what training shows of the words that differ, of their predicted labels over the annotated ones;
    how rarely models take these labels for the same others on the other split, where no annotation of these
    places counts (without it, elsewhere on this one); how rarely they contradict any of its words elsewhere
    on both splits. Of texts the words do not count.
    """
    confused = Counter(_confusion(votes, *each) for each in _ranges(places))
    itself, held = 1, confused
    of_other = None if other is None else _places(other, task)
    if other is not None and of_other is not None:
        itself, held = 0, Counter(_confusion(other, *each) for each in _ranges(of_other))
    suspicion = _AGREEMENT * places.agree
    suspicion -= np.log(
        [held[_confusion(votes, *each)] - itself + 0.5 for each in _ranges(places)] or np.zeros(0)
    )
    if votes.text.kinds[task].reads != "words":
        return suspicion
    contradicted, times = Counter[str](), Counter[str]()
    for side, of_side in ((votes, places), (other, of_other)):
        if side is not None and of_side is not None:
            words = side.words
            times.update(words)
            for start, end in _ranges(of_side):
                contradicted.update(set(words[start:end]))
    words, training = votes.words, _word_labels(votes.text, task)
    for index, (start, end) in enumerate(_ranges(places)):
        rates = [(contradicted[word] - 0.5) / times[word] for word in words[start:end]]
        suspicion[index] += np.mean(_word_odds(votes, training, start, end)) - np.log(max(rates))
    return suspicion


def _ranges(places: _Places) -> list[tuple[int, int]]:
    return list(zip(places.starts.tolist(), places.ends.tolist(), strict=True))


def _confusion(votes: _Votes, start: int, end: int) -> tuple[tuple[str, ...], tuple[str, ...]]:
    """The annotated and the predicted labels of a place."""
    gold = votes.gold
    return _labels(gold.names, gold.numbers[start:end]), _labels(gold.names, votes.modal[start:end])


def _word_labels(text: ScoredText, task: str) -> Counter[tuple[str, str]]:
    """How often training shows each word with each label."""
    rows = zip(text.training.tokens, text.training.column(task).rows, strict=True)
    return Counter(pair for words, labels in rows for pair in zip(words, labels, strict=True))


def _word_odds(votes: _Votes, training: Counter[tuple[str, str]], start: int, end: int) -> list[float]:
    """The log-odds of the predicted label over the annotated one for each word of a place that differs."""
    words, (gold, predicted) = votes.words[start:end], _confusion(votes, start, end)
    return [
        float(np.log((training[word, guess] + 0.5) / (training[word, true] + 0.5)))
        for word, true, guess in zip(words, gold, predicted, strict=True)
        if true != guess
    ]


def _regions(true: FlatSpans, guess: FlatSpans) -> tuple[Ints, Ints]:
    """The first words and the ends of regions in which spans of both sides overlap and differ."""
    is_common, is_right = true.among(guess), guess.among(true)
    starts = np.concatenate([true.start[~is_common], guess.start[~is_right]])
    ends = np.concatenate([true.end[~is_common], guess.end[~is_right]])
    order = np.argsort(starts, kind="stable")
    regions: list[list[int]] = []
    for start, end in zip(starts[order].tolist(), ends[order].tolist(), strict=True):
        if regions and start < regions[-1][1]:
            regions[-1][1] = max(regions[-1][1], end)
        else:
            regions.append([start, end])
    made = np.array(regions, dtype=np.int64).reshape(-1, 2)
    return made[:, 0], made[:, 1]


def _labels(names: Sequence[str], numbers: NDArray[Any]) -> tuple[str, ...]:
    return tuple(names[number] for number in numbers.tolist())


def _related(
    task: str, votes: Mapping[str, _Votes], index: int, start: int, end: int
) -> dict[str, tuple[tuple[str, ...], tuple[str, ...]]]:
    """The labels of other tasks at these words, annotated and predicted by most; of the same sentence."""
    keys = list(votes[task].sentences)
    related = {}
    for name, other in votes.items():
        place = None if name == task else other.sentences.get(keys[index])
        if place is None:
            continue
        first, last = other.gold.offsets[place : place + 2].tolist()
        if other.text.kinds[name].reads == "words":
            first, last = first + start, first + end
        labels = (other.gold.numbers[first:last], other.modal[first:last])
        related[name] = (_labels(other.gold.names, labels[0]), _labels(other.gold.names, labels[1]))
    return related


def suspects_conll(of_tasks: Sequence[Suspects]) -> str:
    """The sentences of suspects as CoNLL for an annotator: word, annotated label, predicted label or `_`.

    Sentences with the surest suspects come first, each with a comment for each suspect. Raises MRNLabError
    for tasks on texts, which have no column of words.
    """
    lines: list[str] = []
    for of_task in of_tasks:
        if of_task.kind.reads != "words":
            raise MRNLabError(f"{of_task.task} labels whole texts, which CoNLL has no place for; write csv.")
        by_sentence: dict[int, list[Suspect]] = defaultdict(list)
        for each in of_task.places:
            by_sentence[each.sentence].append(each)
        for number, inside in by_sentence.items():
            lines.append(f"# {of_task.task}, {of_task.split} sentence {number}")
            predicted = ["_"] * len(inside[0].words.tokens)
            for each in inside:
                lines.append(f"# words {each.start} to {each.end - 1}: {each.agree:.2f} of {each.runs} runs")
                predicted[each.start : each.end] = each.predicted
            rows = zip(inside[0].words.tokens, inside[0].words.labels[of_task.task], predicted, strict=True)
            lines += ["\t".join(row) for row in rows]
            lines.append("")
    return "\n".join([*lines, ""]) if lines else ""
