"""What `auto` alignment rests on: how tasks overlap in a whole corpus, for every seed and fraction alike."""

from __future__ import annotations

from pathlib import Path

import pytest

from core.config import RunConfig
from core.corpora import prepare
from core.corpora.loading import overlaps
from core.corpora.types import Overlap, Sentence
from core.mrn.alignments import choose
from core.training.setup import set_up
from tests.tiny import tiny_bert


def test_shares_are_of_words_and_o_is_no_name() -> None:
    sentences = (
        Sentence(("a", "b", "c"), {"one": ("X", "X", "Y"), "two": ("O", "X", "Z")}),
        Sentence(("d",), {"one": ("O",)}),
        Sentence(("e", "f"), {"three": ("W", "W")}),
    )
    assert overlaps(sentences, ("one", "two", "three")) == (
        Overlap(("one", "two"), 1.0, 0.5),
        Overlap(("one", "three"), 0.0, 0.0),
        Overlap(("two", "three"), 0.0, 0.0),
    )


def _columns(folder: Path, sentences: int = 40) -> str:
    """Two tasks on the same words that share one rare label name, SYM: UPOS and XPOS in small."""
    folder.mkdir()
    plain = "Boston NOUN NNP\nbeats VERB VBZ\nLondon NOUN NNP\n. PUNCT .\n\n"
    rare = "Boston NOUN NNP\n% SYM SYM\n. PUNCT .\n\n"
    for split, count in (("train", sentences), ("test", 4)):
        text = "".join(rare if index % 20 == 0 else plain for index in range(count))
        (folder / f"{split}.conll").write_text(text, encoding="utf-8")
    return str(folder)


def _mrn(corpus: str, tasks: tuple[str, ...], **values: object) -> RunConfig:
    return RunConfig.build(corpus=corpus, tasks=tasks, paradigm="mrn", **values)


def test_every_seed_and_fraction_of_a_configuration_resolves_alike(tmp_path: Path) -> None:
    """SYM stands in 2 of 40 sentences: some draws have it for both tasks, others for none."""
    columns = ("tokens", "upos", "xpos")
    encoder = str(tiny_bert(tmp_path / "encoder"))
    corpus = _columns(tmp_path / "corpus")
    resolved, seen = set(), set()
    for seed in range(1, 7):
        for fraction in (0.2, 1.0):
            config = _mrn(
                corpus, ("upos", "xpos"), columns=columns, seed=seed, fraction=fraction, encoder=encoder,
                encoder_training="frozen", max_length=32, device="cpu",
                label_inventory="train",
            )  # fmt: skip
            prepared = prepare(config)
            seen.add("SYM" in prepared.task("upos").labels)
            facts = set_up(config, prepared).facts
            resolved.add((facts.alignment, facts.alignment_reason))
    assert seen == {True, False}
    assert len(resolved) == 1
    (name, reason) = resolved.pop()
    assert name == "cooccurrence"
    assert "upos and xpos share 100% of their words" in str(reason)


@pytest.mark.parametrize(
    ("corpus", "tasks", "expected"),
    [
        ("demo", ("pos", "chunk", "ner"), "cooccurrence"),
        ("demo-both-pos", ("pos-a", "pos-b"), "exact"),
        ("apart:demo?tokens=300", ("pos", "chunk", "ner"), "disjoint"),
        ("simulated:demo?task=ner&tasks=2&samples=300&tokens=200", ("ner", "sim-1", "sim-2"), "exact"),
        ("joined:demo+demo-pos-b", ("pos@demo", "pos@demo-pos-b"), "exact"),
    ],
)
def test_derived_corpora_are_measured_as_they_are_made(
    corpus: str, tasks: tuple[str, ...], expected: str
) -> None:
    chosen = {choose(prepare(_mrn(corpus, tasks, alignment="auto", seed=seed)).overlaps) for seed in (1, 2)}
    assert {name for name, _ in chosen} == {expected}
    assert len(chosen) == 1
