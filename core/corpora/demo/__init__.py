"""The built-in demo corpora: newswire-like English from MRN Lab's own grammar, free to share.

The text files hold words and rules by topic. Some names are kept for dev and test; many words are ambiguous
on purpose (report, rose, close; Boston the city and Boston the team).
"""

from __future__ import annotations

from functools import cache

from core.corpora.assembly import assemble
from core.corpora.demo.generator import Generator
from core.corpora.types import Corpus, Sentence, Split

_OTHER = {
    "VBP": "VB",
    "NNPS": "NNP",
    "``": "QUOTE",
    "''": "QUOTE",
    "WDT": "WH",
    "WP": "WH",
    "WRB": "WH",
    "PRP$": "POSS",
    "WP$": "POSS",
    "TO": "PART",
}
_BE = {"is": "BEZ", "are": "BE", "was": "BED", "were": "BED", "be": "BE", "been": "BEN"}


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
            split: [Sentence(one.tokens, {"pos": _other_tags(one)}) for one in sentences]
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


def _other_tags(sentence: Sentence) -> tuple[str, ...]:
    """The tags of demo-pos-b, which differ from the demo's as one treebank's do from another's.

    Most are the same. Some are merged (VBP into VB, NNPS into NNP, quotation marks into one), IN is split
    (SUB for those that open a clause), and forms of 'be' have tags of their own.
    """
    tags = []
    for token, tag, chunk in zip(
        sentence.tokens, sentence.labels["pos"], sentence.labels["chunk"], strict=True
    ):
        if tag.startswith("VB") and token.lower() in _BE:
            tags.append(_BE[token.lower()])
        elif tag == "IN" and chunk == "B-SBAR":
            tags.append("SUB")
        else:
            tags.append(_OTHER.get(tag, tag))
    return tuple(tags)
