"""Several corpora as one, each annotating its own sentences for its own task."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

from core.corpora.assembly import describe
from core.corpora.conll import conll2000, conll2003
from core.corpora.demo import demo_pos_a, demo_pos_b
from core.corpora.types import Corpus, Sentence, Split

__all__ = ["both_pos", "demo_both_pos", "join"]


def both_pos() -> Corpus:
    """The POS tags of CoNLL-2003 and of CoNLL-2000 as two tasks."""
    return join("both-pos", {"pos-2003": (conll2003(), "pos"), "pos-2000": (conll2000(), "pos")})


def demo_both_pos() -> Corpus:
    """The two demo POS corpora as two tasks."""
    return join("demo-both-pos", {"pos-a": (demo_pos_a(), "pos"), "pos-b": (demo_pos_b(), "pos")})


def join(name: str, parts: Mapping[str, tuple[Corpus, str]]) -> Corpus:
    """One corpus of the sentences of all parts.

    `parts` maps a new task's name to a corpus and the task there. Each sentence keeps only its corpus's
    task, and remembers the corpus as its `part`.
    """

    def sentences(split: Split) -> tuple[Sentence, ...]:
        return tuple(
            Sentence(sentence.tokens, {new: sentence.labels[old]}, part=corpus.name)
            for new, (corpus, old) in parts.items()
            for sentence in corpus.split(split)
            if old in sentence.labels
        )

    return describe(
        Corpus(
            name=name,
            tasks=tuple(replace(corpus.task(old), name=new) for new, (corpus, old) in parts.items()),
            train=sentences("train"),
            dev=sentences("dev"),
            test=sentences("test"),
            notes=tuple(f"{corpus.name}: {note}" for corpus, _ in parts.values() for note in corpus.notes),
        )
    )
