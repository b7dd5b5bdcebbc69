"""The recipes of derived corpora: their options, and the kinds `sampled`, `joined` and `apart`."""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field, fields, replace
from itertools import compress
from typing import Any, ClassVar, Self

import numpy as np
from numpy.typing import NDArray

from core.config.typed import real_number, whole_number
from core.corpora.assembly import SPLITS
from core.corpora.sampling import parts, sentences_for, stream
from core.corpora.types import Corpus, Sentences, Split
from core.errors import CorpusError

_MOST = 1_000_000_000


def option(default: Any = None, *, most: int = _MOST, choices: Sequence[str] = ()) -> Any:
    """An option of a kind. Its type says how it is read: a number, a text, or several separated by commas.

    Whole numbers go from 1 to `most`, others from 0 to 1. `choices` are the accepted texts, where few are.
    """
    return field(default=default, metadata={"most": most, "choices": choices})


@dataclass(frozen=True)
class CorpusRecipe:
    """One way to make a corpus of another. The fields are its options; every kind samples dev and test."""

    name: ClassVar[str]
    description: ClassVar[str]

    dev: int | None = option()
    test: int | None = option()

    @classmethod
    def read(cls, corpus: str, options: Mapping[str, str]) -> Self:
        """The kind with these options. Raises CorpusError, for the corpus of that name."""
        options_by_name = {field.name: field for field in fields(cls)}
        values = {}
        for key, text in options.items():
            if key not in options_by_name:
                whose = f"A corpus of the kind {cls.name}" if cls.name else "A corpus without a kind"
                raise CorpusError(
                    f"{corpus}: {whose} has no option '{key}'; it has {', '.join(options_by_name)}."
                )
            metadata = options_by_name[key].metadata
            values[key], expected = _value(
                str(options_by_name[key].type), text, metadata["most"], metadata["choices"]
            )
            if values[key] is None:
                raise CorpusError(f"{corpus}: {key} must be {expected}, not '{text}'.")
        return cls(**values)

    def origins(self, base: Sequence[str]) -> Mapping[str, str]:
        """Each task of the made corpus and the task of the base that it comes from. Raises CorpusError."""
        return {task: task for task in base}

    @property
    def auxiliary(self) -> Sequence[str]:
        """The tasks that it adds to train on, which have no scores."""
        return ()

    def for_parts(self, names: Sequence[str], kept: Collection[str]) -> CorpusRecipe:
        """The recipe for a joined base that had the parts of these names and has the ones kept."""
        return self

    def make(self, corpus: Corpus, seed: int) -> Corpus:
        """The corpus with a seed, its labels not counted yet. It draws of each part of a joined base apart.

        Here: at most as many sentences of each split as its option says, in their order. A smaller sample is
        part of a larger one with the same seed. Raises CorpusError.
        """
        kept: dict[Split, Sentences] = {}
        notes = []
        for split in SPLITS:
            whole = kept[split] = corpus.split(split)
            if not (most := self._most(split)):
                continue
            by_part = parts(whole)
            if len(most) not in (1, len(by_part)):
                raise CorpusError(
                    f"{corpus.name}: {split} must be one number, or one for each joined corpus "
                    f"({', '.join(part for part, _ in by_part)}), not {len(most)}."
                )
            sample = [np.zeros(0, dtype=np.int64)]
            for index, (part, which) in enumerate(by_part):
                order = stream(seed, f"sample {split}", part).permutation(len(which))
                sample.append(which[np.sort(order[: most[index % len(most)]])])
            kept[split] = whole.take(np.concatenate(sample))
            if len(kept[split]) < len(whole):
                notes.append(
                    f"Uses {len(kept[split]):,} of {len(whole):,} {split} sentences, drawn with seed {seed}."
                )
        return corpus.with_splits(kept, *notes)

    def _most(self, split: Split) -> tuple[int, ...]:
        """The most sentences of that split, of each part alike or part by part; empty for all."""
        most = getattr(self, split, None)
        return most if isinstance(most, tuple) else () if most is None else (most,)


def _value(type_: str, text: str, most: int, choices: Sequence[str]) -> tuple[Any, str]:
    """The value of an option, None where the text is not valid; and a phrase for the accepted values."""
    if type_ == "tuple[str, ...]":
        names = tuple(part.strip() for part in text.split(","))
        return names if all(names) else None, "names separated by commas"
    if type_ == "tuple[float, ...]":
        shares = [real_number(part) for part in text.split(",")]
        fits = all(share is not None and 0 <= share <= 1 for share in shares)
        return tuple(shares) if fits else None, "numbers from 0 to 1, separated by commas"
    if "int" in type_:
        several = type_.startswith("tuple")
        numbers = [whole_number(part) for part in (text.split(",") if several else [text])]
        fits = all(number is not None and 1 <= number <= most for number in numbers)
        expected = f"whole numbers from 1 to {most:,}, separated by commas"
        if several:
            return tuple(numbers) if fits else None, expected
        return numbers[0] if fits else None, f"a whole number from 1 to {most:,}"
    if choices:
        return text if text in choices else None, f"one of {', '.join(choices)}"
    return text or None, "a name"


@dataclass(frozen=True)
class Sampled(CorpusRecipe):
    """The corpus as it is, or samples of its splits."""

    name = ""
    description = "The corpus as it is, or samples of its splits."

    train: int | None = option()


@dataclass(frozen=True)
class Joined(CorpusRecipe):
    """Several corpora as one. The bases of any kind are joined when they are read; this one only samples.

    train    the most training sentences of each corpus, or one number for all
    """

    name = "joined"
    description = (
        "All tasks of several corpora (A+B), each on its own sentences; a task that several have is named "
        "task@corpus."
    )

    train: tuple[int, ...] = option(())

    def for_parts(self, names: Sequence[str], kept: Collection[str]) -> CorpusRecipe:
        if len(self.train) != len(names):
            return self
        sizes = zip(names, self.train, strict=True)
        return replace(self, train=tuple(size for name, size in sizes if name in kept))


@dataclass(frozen=True)
class Apart(CorpusRecipe):
    """Every task on training sentences of its own.

    tokens   training words of each task, or one number
    tasks    the tasks that sentences are dealt to; all of the base where empty
    """

    name = "apart"
    description = "Every task on training sentences of its own; dev and test as they are."

    tokens: tuple[int, ...] = option(())
    tasks: tuple[str, ...] = option(())

    def origins(self, base: Sequence[str]) -> Mapping[str, str]:
        if unknown := [task for task in self.tasks if task not in base]:
            raise CorpusError(f"The base has no task '{unknown[0]}'; its tasks are {', '.join(base)}.")
        return super().origins(self.tasks or base)

    def make(self, corpus: Corpus, seed: int) -> Corpus:
        """Each training sentence dealt to one task, each task's sentences cut off where it has words enough.

        A task's sentences are dealt before any budget is looked at. So its smaller budget is a prefix of its
        larger one, and its budget changes nothing for other tasks.
        """
        names = list(self.origins([task.name for task in corpus.tasks]))
        if len(self.tokens) not in (0, 1, len(names)):
            raise CorpusError(
                f"{corpus.name}: tokens must be one number, or one for each task ({', '.join(names)}), "
                f"not {len(self.tokens)}."
            )
        whole = corpus.split("train")
        train = [whole.only([])]
        sizes = []
        for index, (task, which) in enumerate(_dealt(whole, names, seed).items()):
            words = int(whole.words[which].sum())
            if self.tokens and len(which):
                budget = self.tokens[index % len(self.tokens)]
                if words < budget:
                    raise CorpusError(
                        f"{corpus.name}: {budget:,} training words were asked for {task}, and the sentences "
                        f"dealt to it have {words:,}; ask for fewer."
                    )
                which = which[: sentences_for(whole.words[which], budget)]
            if len(which):
                sizes.append(f"{task} {int(whole.words[which].sum()):,}")
                train.append(whole.take(which).only([task]))
        note = (
            f"Each task has training sentences of its own, drawn with seed {seed}; words: {', '.join(sizes)}."
        )
        tasks = tuple(task for task in corpus.tasks if task.name in names)
        notes = (*corpus.notes, note)
        return super().make(replace(corpus, tasks=tasks, train=Sentences.joined(train), notes=notes), seed)


def _dealt(train: Sentences, names: Sequence[str], seed: int) -> dict[str, NDArray[np.int64]]:
    """Deals the sentences out: for each task its sentences, in random order.

    Sentences with the same tasks are dealt evenly among these; one with a single task goes to it.
    """
    dealt: dict[str, list[int]] = {name: [] for name in names}
    annotated = np.stack([train.annotated([name]) for name in names], axis=1)
    for part, which in parts(train):
        turns: Counter[tuple[str, ...]] = Counter()
        for sentence in which[stream(seed, "apart", part).permutation(len(which))].tolist():
            tasks = tuple(compress(names, annotated[sentence]))
            if tasks:
                dealt[tasks[turns[tasks] % len(tasks)]].append(sentence)
                turns[tasks] += 1
    return {name: np.array(sentences, dtype=np.int64) for name, sentences in dealt.items()}
