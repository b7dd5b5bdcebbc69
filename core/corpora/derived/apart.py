"""Every task on training sentences of its own, on as many words as one likes."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from core.corpora.derived.kind import Kind, Option, Options, same_tasks
from core.corpora.derived.sampled import sampled
from core.corpora.derived.values import SAMPLES, counts
from core.corpora.draws import parts, shuffled, stream, until, words_of
from core.corpora.types import Corpus, Sentence
from core.errors import CorpusError

__all__ = ["APART"]


def _derive(corpus: Corpus, options: Options, seed: int) -> Corpus:
    """Each training sentence dealt to one task, each task's sentences cut off where it has words enough.

    A task's sentences are dealt before any budget is looked at. So its smaller budget is a prefix of its
    larger one, and its budget changes nothing for other tasks.
    """
    names = [task.name for task in corpus.tasks]
    budgets = options.get("tokens")
    if budgets is not None and len(budgets) not in (1, len(names)):
        raise CorpusError(
            f"{corpus.name}: tokens must be one number, or one for each task ({', '.join(names)}), "
            f"not {len(budgets)}."
        )
    train: list[Sentence] = []
    sizes = []
    for place, (task, own) in enumerate(_dealt(corpus, names, seed).items()):
        if budgets is not None and own:
            budget = budgets[place % len(budgets)]
            if (words := words_of(own)) < budget:
                raise CorpusError(
                    f"{corpus.name}: {budget:,} training words were asked for {task}, and the sentences "
                    f"dealt to it have {words:,}; ask for fewer."
                )
            own = until(own, budget)
        if own:
            sizes.append(f"{task} {words_of(own):,}")
        train += own
    note = f"Each task has training sentences of its own, drawn with seed {seed}; words: {', '.join(sizes)}."
    return sampled(replace(corpus, train=tuple(train), notes=(*corpus.notes, note)), options, seed)


def _dealt(corpus: Corpus, names: Sequence[str], seed: int) -> dict[str, list[Sentence]]:
    """For each task the sentences that are its own, in random order, annotated for it alone.

    Sentences with the same tasks are dealt evenly among these; one with a single task goes to it.
    """
    dealt: dict[str, list[Sentence]] = {name: [] for name in names}
    for part, sentences in parts(corpus.train):
        turns: dict[tuple[str, ...], int] = {}
        for one in shuffled(sentences, stream(seed, "apart", part)):
            annotated = tuple(name for name in names if name in one.labels)
            turn = turns.get(annotated, 0)
            turns[annotated] = turn + 1
            task = annotated[turn % len(annotated)]
            dealt[task].append(replace(one, labels={task: one.labels[task]}))
    return dealt


APART = Kind(
    name="apart",
    description="Every task on training sentences of its own; dev and test as they are.",
    options={
        "tokens": Option(
            "training words of each task: one number, or one for each task of the base, in order", counts
        ),
        "dev": SAMPLES["dev"],
        "test": SAMPLES["test"],
    },
    tasks=same_tasks,
    derive=_derive,
)
