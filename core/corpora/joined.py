"""Several corpora as one, each with sentences of its own."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import replace

from core.corpora.assembly import describe
from core.corpora.conll import conll2000, conll2003
from core.corpora.demo import demo_pos_a, demo_pos_b
from core.corpora.types import Corpus, Sentence, Split
from core.errors import CorpusError

__all__ = ["both_pos", "demo_both_pos", "join", "join_all"]


def both_pos() -> Corpus:
    """The POS tags of CoNLL-2003 and of CoNLL-2000 as two tasks."""
    return join("both-pos", {"pos-2003": (conll2003(), "pos"), "pos-2000": (conll2000(), "pos")})


def demo_both_pos() -> Corpus:
    """The two demo POS corpora as two tasks."""
    return join("demo-both-pos", {"pos-a": (demo_pos_a(), "pos"), "pos-b": (demo_pos_b(), "pos")})


def join_all(corpora: Sequence[Corpus]) -> Corpus:
    """One corpus of all tasks of all these. A task that several of them have is named `task@corpus`.

    Raises CorpusError where two corpora have one name.
    """
    for name, number in Counter(corpus.name for corpus in corpora).items():
        if number > 1:
            raise CorpusError(f"Two of the corpora to join are called {name}; name one, or rename a folder.")
    owners = Counter(task.name for corpus in corpora for task in corpus.tasks)
    return join(
        "+".join(corpus.name for corpus in corpora),
        {
            f"{task.name}@{corpus.name}" if owners[task.name] > 1 else task.name: (corpus, task.name)
            for corpus in corpora
            for task in corpus.tasks
        },
    )


def join(name: str, parts: Mapping[str, tuple[Corpus, str]]) -> Corpus:
    """One corpus of the sentences of all parts.

    `parts` maps a new task's name to a corpus and the task there. Each sentence keeps those of its corpus's
    tasks, and remembers the corpus as its `part`.
    """
    corpora = {corpus.name: corpus for corpus, _ in parts.values()}
    renamed: dict[str, list[tuple[str, str]]] = {}
    for new, (corpus, old) in parts.items():
        renamed.setdefault(corpus.name, []).append((new, old))

    def sentences(split: Split) -> tuple[Sentence, ...]:
        kept = (
            Sentence(
                one.tokens,
                {new: one.labels[old] for new, old in renamed[part] if old in one.labels},
                part,
            )
            for part, corpus in corpora.items()
            for one in corpus.split(split)
        )
        return tuple(one for one in kept if one.labels)

    return describe(
        Corpus(
            name=name,
            tasks=tuple(replace(corpus.task(old), name=new) for new, (corpus, old) in parts.items()),
            train=sentences("train"),
            dev=sentences("dev"),
            test=sentences("test"),
            notes=tuple(f"{part}: {note}" for part, corpus in corpora.items() for note in corpus.notes),
        )
    )
