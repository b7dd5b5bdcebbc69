"""The training data of a run: its tasks, its share of the sentences, its dev split; equal for equal seeds.

No draw looks at the tasks that a run learns. So STL, MTL and MRN runs of one seed see the same sentences, and
their scores can be paired.
"""

from __future__ import annotations

import pickle
from collections.abc import Iterable, Sequence
from dataclasses import replace
from functools import cache
from importlib import resources
from typing import Any

import numpy as np
from numpy.typing import NDArray

from core.config import RunConfig
from core.corpora.assembly import SPLITS, describe, findings
from core.corpora.controls import with_permuted
from core.corpora.layout.column_names import OTHER_COLUMNS
from core.corpora.loading import derivation_of, read
from core.corpora.overlaps import corpus_overlaps
from core.corpora.readers.conllu import CONLLU_TASKS, ONLY_TASKS
from core.corpora.sampling import draw, parts, stream
from core.corpora.types import Corpus, Sentence, Sentences
from core.errors import FIELD, ConfigError, CorpusError
from core.wording import plural

SHARE_FIELDS = ("corpus", "columns", "fraction", "fraction_draw", "dev_sentences", "label_inventory")
"""The fields that, with the tasks and the seed, decide which sentences and labels a run has."""
_DEV_SHARE = 0.1

# The `truecase` package's own loader unpickles whatever its file names; here that file may name these two.
_ALLOWED = {("builtins", "set"), ("nltk.probability", "FreqDist")}
TABLES = ("uni_dist", "backward_bi_dist", "forward_bi_dist", "trigram_dist", "word_casing_lookup")


def truecase(sentences: Iterable[Sentence]) -> Sentences:
    """The sentences, with the case of all-capital ones restored, as in the dissertation's appendix A.4.

    Only alphabetic tokens are replaced, so tokens and labels stay aligned. Each text of a pair is restored by
    itself.
    """

    def cased(sentence: Sentence) -> Sentence:
        if is_all_capitals(sentence.tokens):
            sentence = replace(sentence, tokens=_restored(sentence.tokens))
        if sentence.second is not None and is_all_capitals(sentence.second):
            sentence = replace(sentence, second=_restored(sentence.second))
        return sentence

    return Sentences.of(map(cased, sentences))


def is_all_capitals(tokens: Sequence[str]) -> bool:
    """Whether each alphabetic token is all upper case, and there is one."""
    words = [token for token in tokens if token.isalpha()]
    return bool(words) and all(word.isupper() for word in words)


def _restored(tokens: Sequence[str]) -> tuple[str, ...]:
    restored = iter(_truecaser().get_true_case_from_tokens([token for token in tokens if token.isalpha()]))
    return tuple(next(restored) if token.isalpha() else token for token in tokens)


class _TwoNamesUnpickler(pickle.Unpickler):
    """Loads the frequency tables and refuses every other name a pickle could call."""

    def find_class(self, module: str, name: str) -> Any:
        if (module, name) not in _ALLOWED:
            raise pickle.UnpicklingError(f"truecase's data names {module}.{name}, which is not allowed")
        return super().find_class(module, name)


@cache
def _truecaser() -> Any:
    """truecase's TrueCaser with its English tables: some 2 s and 340 MB, once per process."""
    from truecase import TrueCaser

    with resources.files("truecase").joinpath("data/english.dist").open("rb") as file:
        tables = _TwoNamesUnpickler(file).load()
    # Its __init__ would read the file with a plain pickle.load.
    caser = TrueCaser.__new__(TrueCaser)
    for name in TABLES:
        setattr(caser, name, tables[name])
    # The first of equally good forms is taken, and the order of a set differs between processes.
    caser.word_casing_lookup = {word: sorted(forms) for word, forms in caser.word_casing_lookup.items()}
    return caser


def on_share(config: RunConfig, tasks: Iterable[str], **others: Any) -> RunConfig:
    """The description of a run on the sentences of this one, of its seed, with those tasks."""
    names = tuple(tasks)
    share = {field: getattr(config, field) for field in ("seed", *SHARE_FIELDS)}
    return RunConfig.build(**share, tasks=names, paradigm="mtl" if len(names) > 1 else "stl", **others)


def prepare(config: RunConfig) -> Corpus:
    """The sentences and tasks of this run, with the labels that its heads have.

    Raises CorpusError where the corpus cannot be read, has no such task, or a split has no sentence for a
    task; ConfigError for a head that cannot learn IO labels.
    """
    made_by = derivation_of(config.corpus)
    corpus = read(config.corpus, config.columns)
    names = [task.name for task in corpus.tasks]
    origins = {name: name for name in names} if made_by is None else made_by.recipe.origins(names)
    for name in config.tasks:
        if name not in origins:
            whose = corpus.name if made_by is None else made_by.name
            hint = f" {ONLY_TASKS}" if name.lower() in OTHER_COLUMNS and CONLLU_TASKS.keys() & origins else ""
            raise CorpusError(f"{whose} has no task '{name}'; its tasks are {', '.join(origins)}.{hint}")
    whole, corpus = corpus, _with_parts_for(corpus, [origins[name] for name in config.tasks])
    # Drawn before other tasks are left out, so that a run's choice of tasks does not change the draw.
    fraction = config.fraction if config.fraction_draw == "once" else 1.0
    drawn = _with_dev(_with_fraction(corpus, fraction, config.seed), config.seed, config.dev_sentences)
    if made_by is not None:
        names, kept = ([part for part, _ in parts(each.split("train"))] for each in (whole, corpus))
        drawn = replace(made_by, recipe=made_by.recipe.for_parts(names, kept)).make(drawn, config.seed)
    # What the whole corpus's tasks are was found when it was read.
    corpus = _with_tasks(
        drawn if drawn is corpus else describe(drawn), config.tasks, needs_dev=config.dev_sentences != 0
    )
    if config.head == "crf_legal" and any(task.trains_io for task in corpus.tasks):
        raise ConfigError("head", f"{FIELD}: in IO labels every span begins with I-; use 'crf' or 'linear'.")
    if config.label_inventory == "corpus":
        corpus = replace(corpus, tasks=tuple(replace(task, labels=task.inventory) for task in corpus.tasks))
    if config.permuted is not None:
        corpus = with_permuted(corpus, config.permuted, config.seed)
    if config.truecase:
        corpus = _truecased(corpus)
    if config.alignment == "auto" and config.added_to is None:
        corpus = replace(corpus, overlaps=corpus_overlaps(config.corpus, config.columns, config.tasks))
    return replace(corpus, notes=corpus.notes + findings(corpus))


def check_scored(corpus: Corpus, tasks: Sequence[str]) -> None:
    """Raises CorpusError where all of these tasks are auxiliary: nothing could choose the best epoch."""
    if all(corpus.task(name).auxiliary for name in tasks):
        raise CorpusError(
            f"{corpus.name}: a run of {', '.join(tasks)} alone cannot be scored, for only training sentences "
            "are annotated; add a task that can be."
        )


def _with_parts_for(corpus: Corpus, tasks: Sequence[str]) -> Corpus:
    """The parts of a joined corpus that annotate one of these tasks; other corpora as they are."""
    train = corpus.split("train")
    needed = {part for part, which in parts(train) if train.annotated(tasks)[which].any()}
    if needed == {part for split in SPLITS for part, _ in parts(corpus.split(split))}:
        return corpus
    return corpus.with_splits({split: corpus.split(split).of_parts(needed) for split in SPLITS})


def _with_fraction(corpus: Corpus, fraction: float, seed: int) -> Corpus:
    if fraction == 1.0:
        return corpus
    train = corpus.split("train")
    kept = np.concatenate(
        [
            draw(which, max(1, round(fraction * len(which))), stream(seed, "fraction", part))[0]
            for part, which in parts(train)
        ]
    )
    note = f"Trains on {len(kept):,} of {len(train):,} training sentences, drawn with seed {seed}."
    return replace(corpus, train=train.take(kept), notes=(*corpus.notes, note))


def _with_dev(corpus: Corpus, seed: int, number: int | None) -> Corpus:
    """Holds out training sentences as dev, for each part without a dev split: so many, or a tenth."""
    train = corpus.split("train")
    with_dev = {part for part, _ in parts(corpus.split("dev"))}
    kept: list[NDArray[np.int64]] = []
    dev: list[NDArray[np.int64]] = []
    notes: list[str] = []
    for part, which in parts(train):
        if part in with_dev:
            kept.append(which)
            continue
        no_dev = f"{part or corpus.name} has no dev split"
        wanted = max(1, round(_DEV_SHARE * len(which))) if number is None else number
        if wanted == 0:
            kept.append(which)
            notes.append(f"{no_dev}, and none is held out: all its training sentences train.")
            continue
        if wanted >= len(which):
            raise CorpusError(
                f"{no_dev}, and {wanted:,} of its {plural(len(which), 'training sentence')} cannot be "
                "held out as one: none would be left to train on. Add a dev file, use a larger fraction, or "
                "set dev_sentences to a smaller number (0 holds out none)."
            )
        held_out, rest = draw(which, wanted, stream(seed, "dev", part))
        dev.append(held_out)
        kept.append(rest)
        notes.append(
            f"{no_dev}: {plural(wanted, 'training sentence')}, drawn with seed {seed}, "
            f"{'is' if wanted == 1 else 'are'} held out as one."
        )
    if not notes:
        return corpus
    return replace(
        corpus,
        train=train.take(np.concatenate(kept)),
        dev=Sentences.joined([corpus.split("dev"), *map(train.take, dev)]),
        notes=(*corpus.notes, *notes),
        dev_from_train=bool(dev),
    )


def _with_tasks(corpus: Corpus, tasks: Sequence[str], *, needs_dev: bool) -> Corpus:
    """Only these tasks, in this order, and only sentences annotated for one of them at least.

    Raises CorpusError where a task has no sentence in a split that it needs.
    """
    corpus = replace(
        corpus.with_splits({split: corpus.split(split).only(tasks) for split in SPLITS}),
        tasks=tuple(corpus.task(name) for name in tasks),
    )
    check_scored(corpus, tasks)
    for split in SPLITS:
        for task in corpus.tasks:
            if (task.auxiliary and split != "train") or (split == "dev" and not needs_dev):
                continue
            if not len(corpus.split(split).column(task.name).at):
                raise CorpusError(
                    f"{corpus.name}: no sentence of the {split} split is annotated for {task.name}; "
                    "leave the task out or add such sentences."
                )
    return corpus


def _truecased(corpus: Corpus) -> Corpus:
    changed = {split: truecase(corpus.split(split)) for split in SPLITS}
    counts = ", ".join(
        f"{sum(new != old for new, old in zip(cased, corpus.split(split), strict=True)):,} in {split}"
        for split, cased in changed.items()
    )
    note = f"Case restored in sentences all in capitals: {counts}."
    return corpus.with_splits(changed, note)
