"""The three demo corpora: which splits of what size, from which seed, with which tags."""

from __future__ import annotations

from functools import cache

from core.corpora.assembly import assemble
from core.corpora.demo.generator import Generator
from core.corpora.demo.tagsets import other_tags
from core.corpora.types import Corpus, Sentence, Split

__all__ = ["DEMO_COLUMNS", "DEMO_POS_COLUMNS", "demo", "demo_pos_a", "demo_pos_b"]

DEMO_COLUMNS = ("tokens", "pos", "chunk", "ner")
DEMO_POS_COLUMNS = ("tokens", "pos")

_SEEDS = {"demo": 20_03, "demo-pos-a": 20_04, "demo-pos-b": 20_05}
_SIZES: dict[Split, int] = {"train": 1200, "dev": 300, "test": 300}
_POS_SIZES: dict[Split, int] = {"train": 600, "dev": 200, "test": 200}


@cache
def demo() -> Corpus:
    """1,200 / 300 / 300 sentences with POS, chunks and entities; always the same."""
    return assemble("demo", _sentences("demo", _SIZES))


@cache
def demo_pos_a() -> Corpus:
    """600 / 200 / 200 sentences with the demo's POS tags."""
    return assemble(
        "demo-pos-a",
        {
            split: [Sentence(one.tokens, {"pos": one.labels["pos"]}) for one in sentences]
            for split, sentences in _sentences("demo-pos-a", _POS_SIZES).items()
        },
    )


@cache
def demo_pos_b() -> Corpus:
    """600 / 200 / 200 other sentences with a POS tag set that shares most of its labels with the demo's."""
    return assemble(
        "demo-pos-b",
        {
            split: [Sentence(one.tokens, {"pos": _pos_b(one)}) for one in sentences]
            for split, sentences in _sentences("demo-pos-b", _POS_SIZES).items()
        },
    )


def _sentences(corpus: str, sizes: dict[Split, int]) -> dict[Split, list[Sentence]]:
    """So many sentences per split, no two of them alike."""
    generator = Generator(_SEEDS[corpus])
    seen: set[tuple[str, ...]] = set()
    splits: dict[Split, list[Sentence]] = {}
    for split, size in sizes.items():
        splits[split] = []
        while len(splits[split]) < size:
            sentence = generator.sentence(split)
            if sentence.tokens not in seen:
                seen.add(sentence.tokens)
                splits[split].append(sentence)
    return splits


def _pos_b(sentence: Sentence) -> tuple[str, ...]:
    return other_tags(sentence.tokens, sentence.labels["pos"], sentence.labels["chunk"])
