"""Artificial tasks beside a real one, related to it as much as one likes: ground truth for learned relations.

Artificial task t labels a word whose real label is r by a draw from the row M_t[r, :]:

| symbol | meaning                                                     |
|--------|-------------------------------------------------------------|
| c      | labels of the real task                                     |
| α_t    | chance that task t keeps the real label: the diagonal of M_t |
| M_t    | (c, c), α_t on the diagonal, (1 − α_t)/(c − 1) elsewhere    |

At α = 1 the task is the real one, at α = 1/c its labels say nothing of the real ones. Artificial tasks are
annotated on training sentences only: they are auxiliary.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from itertools import combinations, cycle, islice

import numpy as np
from numpy.typing import NDArray

from core.corpora.derived.kinds import (
    SAMPLES,
    Kind,
    Option,
    Options,
    choice,
    count,
    counts,
    sampled,
    share_list,
    text,
)
from core.corpora.sampling import shuffled, stream, until, words_of
from core.corpora.types import Corpus, Planted, Sentence, Task
from core.errors import CorpusError
from core.wording import plural

# Words looked at, 300,000 over all pairs: a pair costs 3 ms, and 1 ms more for every 1,000 words. So 5
# artificial tasks take a tenth of a second and 20 take one. Over 20,000 words for a pair change the third
# digit at most.
_ALL_WORDS = 300_000
_MOST_WORDS = 20_000
_FEWEST_WORDS = 2_000


def relatedness(labellings: Sequence[NDArray[np.integer]]) -> NDArray[np.float64]:
    """(L, L) adjusted mutual information of L labellings (N,) of the same N words, normalised by the maximum.

    1 for labellings that differ in the names of their labels only; about 0 for unrelated ones, since the
    value expected by chance is taken off. Of the first words only, fewer where there are many labellings.
    """
    # Imported here: it takes a second, and most corpora have no use for it.
    from sklearn.metrics import adjusted_mutual_info_score

    matrix = np.eye(len(labellings))
    pairs = list(combinations(range(len(labellings)), 2))
    words = min(max(_ALL_WORDS // max(len(pairs), 1), _FEWEST_WORDS), _MOST_WORDS)
    for first, second in pairs:
        matrix[first, second] = matrix[second, first] = adjusted_mutual_info_score(
            labellings[first][:words], labellings[second][:words], average_method="max"
        )
    return matrix


_TASKS = 5
_ALPHA = 0.9
_MOST_TASKS = 50


def artificial_labels(
    real: NDArray[np.int64], alpha: float, labels: int, numbers: np.random.Generator
) -> NDArray[np.int64]:
    """(N,) label numbers drawn from M for the real ones (N,), of `labels` kinds.

    Two random numbers a word, whatever α is: at one seed, a task of a larger α keeps all real labels that one
    of a smaller α keeps.
    """
    chance = numbers.random((len(real), 2))
    other = (chance[:, 1] * (labels - 1)).astype(np.int64)  # which of the labels but the real one
    return np.where(chance[:, 0] < alpha, real, other + (other >= real))


def _derive(corpus: Corpus, options: Options, seed: int) -> Corpus:
    corpus = sampled(corpus, options, seed)
    real = corpus.task(_real(corpus.name, [task.name for task in corpus.tasks], options))
    if len(real.labels) < 2:
        raise CorpusError(
            f"{corpus.name}: {real.name} has {plural(len(real.labels), 'label')}, and artificial labels can "
            "be drawn from two or more."
        )
    names = _artificial(options)
    alphas = list(islice(cycle(options.get("alpha", (_ALPHA,))), len(names)))
    own, others = _sentences(corpus, real.name, names, options, seed)
    # Every drawn sentence with the tasks that it is annotated for.
    drawn = [(sentence, (real.name,) if others else (real.name, *names)) for sentence in own]
    drawn += [(sentence, (name,)) for name, sentences in others.items() for sentence in sentences]

    number = {label: place for place, label in enumerate(real.labels)}
    truth = np.array(
        [number[label] for sentence, _ in drawn for label in sentence.labels[real.name]], dtype=np.int64
    )
    columns = {real.name: truth}
    for name, alpha in zip(names, alphas, strict=True):
        columns[name] = artificial_labels(truth, alpha, len(real.labels), stream(seed, "labels", name))
    related = np.round(relatedness(list(columns.values())), 4)
    return replace(
        corpus,
        tasks=(
            real,
            *(Task(name, "plain", real.labels, auxiliary=True, inventory=real.labels) for name in names),
        ),
        train=_annotated(drawn, columns, real.labels),
        dev=_only(corpus.dev, real.name),
        test=_only(corpus.test, real.name),
        notes=(*corpus.notes, _note(real.name, own, others, alphas, seed)),
        planted=Planted(tuple(columns), (1.0, *alphas), tuple(map(tuple, related.tolist()))),
    )


def _annotated(
    drawn: Sequence[tuple[Sentence, Sequence[str]]],
    columns: Mapping[str, NDArray[np.int64]],
    labels: Sequence[str],
) -> tuple[Sentence, ...]:
    """The drawn sentences with the labels of their tasks; `columns` number them word by word."""
    made = []
    start = 0
    for sentence, tasks in drawn:
        stop = start + len(sentence.tokens)
        named = {task: tuple(labels[place] for place in columns[task][start:stop].tolist()) for task in tasks}
        made.append(replace(sentence, labels=named))
        start = stop
    return tuple(made)


def _sentences(
    corpus: Corpus, real: str, names: Sequence[str], options: Options, seed: int
) -> tuple[list[Sentence], dict[str, list[Sentence]]]:
    """The real task's training sentences, and those of each artificial task (none where all are the same).

    Of one random order the real task takes from the front and the artificial ones, one after another, from
    the back: none of them gets others because there are more tasks, or more words for another.
    """
    annotated = [sentence for sentence in corpus.train if real in sentence.labels]
    words, tokens, samples = words_of(annotated), options.get("tokens"), options.get("samples")
    budgets: dict[str, int] = {}
    if options.get("sentences", "own") == "own":
        default = tokens or max(1, words // (len(names) + 1))
        budgets = dict(zip(names, cycle(samples or (default,)), strict=False))
    elif samples is not None:
        raise CorpusError(
            f"{corpus.name}: with sentences=same artificial tasks are on the real task's words; leave "
            "samples away."
        )
    order = shuffled(annotated, stream(seed, "simulated", ""))
    others = {}
    for name, budget in budgets.items():
        others[name] = until(reversed(order), budget)
        del order[len(order) - len(others[name]) :]
    own = order if tokens is None else until(order, tokens)
    if words_of(own) < (tokens or 1) or any(words_of(others[name]) < budgets[name] for name in others):
        asked = [f"{tokens:,} for {real}"] if tokens else []
        asked += [f"{sum(budgets.values()):,} for {plural(len(names), 'artificial task')}"] if budgets else []
        raise CorpusError(
            f"{corpus.name}: {words:,} training words are annotated for {real}, and more were asked for in "
            f"whole sentences ({' and '.join(asked)}); ask for fewer."
        )
    return own, others


def _note(
    real: str,
    own: Sequence[Sentence],
    others: Mapping[str, Sequence[Sentence]],
    alphas: Sequence[float],
    seed: int,
) -> str:
    sizes = sorted(words_of(sentences) for sentences in others.values())
    extent = f"{sizes[0]:,} words" if sizes else "the same words"
    if sizes and sizes[0] < sizes[-1]:
        extent = f"{sizes[0]:,} to {sizes[-1]:,} words each"
    shown = ", ".join(f"{alpha:g}" for alpha in dict.fromkeys(alphas))
    return (
        f"{real} has {words_of(own):,} training words; {plural(len(alphas), 'artificial task')} on {extent}, "
        f"their labels drawn with seed {seed} at α = {shown}."
    )


def _real(corpus: str, tasks: Sequence[str], options: Options) -> str:
    task: str = options.get("task", tasks[-1])
    if task not in tasks:
        raise CorpusError(f"{corpus} has no task '{task}'; its tasks are {', '.join(tasks)}.")
    return task


def _artificial(options: Options) -> list[str]:
    return [f"sim-{number}" for number in range(1, options.get("tasks", _TASKS) + 1)]


def _only(sentences: Sequence[Sentence], task: str) -> tuple[Sentence, ...]:
    """The sentences annotated for that task, with nothing but its labels."""
    return tuple(
        replace(sentence, labels={task: sentence.labels[task]})
        for sentence in sentences
        if task in sentence.labels
    )


def _tasks(base: Sequence[str], options: Options) -> Mapping[str, str]:
    real = _real("The base", base, options)
    return dict.fromkeys((real, *_artificial(options)), real)


SIMULATED = Kind(
    name="simulated",
    description="A real task beside artificial ones, related to it as much as alpha says.",
    options={
        "task": Option("the real task: by default the last of the base", text),
        "tasks": Option(f"artificial tasks: by default {_TASKS}", count(_MOST_TASKS)),
        "alpha": Option(
            "the chance that an artificial task keeps a word's real label, dealt in turn: by default "
            f"{_ALPHA}",
            share_list,
        ),
        "samples": Option(
            "training words of each artificial task, dealt in turn: by default as many as the real task has",
            counts,
        ),
        "tokens": Option("training words of the real task: by default all that are left", count()),
        "sentences": Option(
            "own: every task on sentences of its own (by default); same: all on the real task's",
            choice("own", "same"),
        ),
        "dev": SAMPLES["dev"],
        "test": SAMPLES["test"],
    },
    tasks=_tasks,
    derive=_derive,
)
