"""The demo corpora: always the same, consistent, ambiguous, with names of their own in dev and test."""

from __future__ import annotations

import hashlib
import os
import subprocess
import sys
from collections import Counter

import pytest

from core.corpora import Corpus, load
from core.corpora.demo.generator import NUMBERS, Generator, grammar
from core.corpora.demo.notation import parse
from core.corpora.schemes import violations
from core.evaluation import spans

# Changes only with the grammar. Scores on the demo are comparable between versions that share it.
FINGERPRINT = "70010f1ce8d7ebca"


def fingerprint(corpus: Corpus) -> str:
    digest = hashlib.sha256()
    for split in (corpus.train, corpus.dev, corpus.test):
        for sentence in split:
            digest.update(repr((sentence.tokens, sorted(sentence.labels.items()))).encode())
    return digest.hexdigest()[:16]


@pytest.fixture(scope="module")
def demo() -> Corpus:
    return load("demo")


def test_is_what_it_was_whatever_pythons_hash_seed(demo: Corpus) -> None:
    """The fingerprint holds sizes, words and labels; the grammar's own rules have their tests below."""
    assert fingerprint(demo) == FINGERPRINT
    assert (len(demo.train), len(demo.dev), len(demo.test), demo.notes) == (1200, 300, 300, ())
    assert [(task.name, task.scheme) for task in demo.tasks] == [
        ("pos", "plain"), ("chunk", "iob2"), ("ner", "iob2"),
    ]  # fmt: skip
    code = (
        "from core.corpora import load; from tests.unit.test_corpora_demo import fingerprint; "
        "print(fingerprint(load('demo')))"
    )
    program = subprocess.run(
        [sys.executable, "-c", code],
        env=os.environ | {"PYTHONHASHSEED": "1"},
        capture_output=True,
        text=True,
        check=True,
    )
    assert program.stdout.strip() == FINGERPRINT


def test_labels_are_legal_and_agree_with_each_other(demo: Corpus) -> None:
    for task in ("chunk", "ner"):
        assert violations([one.labels[task] for one in demo.train]) == 0
    for sentence in demo.train:
        pos, chunk, ner = (sentence.labels[task] for task in ("pos", "chunk", "ner"))
        assert len(sentence.tokens) == len(pos) == len(chunk) == len(ner)
        inside = {place: span for span in spans(chunk) for place in range(span.start, span.end)}
        for place, tag in enumerate(pos):
            if tag in ("VBD", "VBZ", "MD"):
                assert inside[place].type == "VP", sentence.tokens
            if tag in (".", "``", "''") and place not in inside:
                assert chunk[place] == "O"
        for span in spans(ner):
            # A name lies inside one chunk: both come from one derivation.
            assert {inside[place] for place in range(span.start, span.end)} == {inside[span.start]}
            assert any(
                pos[place].startswith("NNP") or span.type == "MISC" for place in range(span.start, span.end)
            )


def test_dev_and_test_have_names_that_training_never_shows(demo: Corpus) -> None:
    def names(split: str) -> Counter[tuple[str, tuple[str, ...]]]:
        sentences = demo.split(split)  # type: ignore[arg-type]  # the three names of splits
        return Counter(
            (span.type, sentence.tokens[span.start : span.end])
            for sentence in sentences
            for span in spans(sentence.labels["ner"])
        )

    train, dev, test = names("train"), names("dev"), names("test")
    for held_out in (dev, test):
        unseen = sum(count for name, count in held_out.items() if name not in train)
        assert 0.25 < unseen / held_out.total() < 0.75
    own = [{name for name in held_out if name not in train} for held_out in (dev, test)]
    assert own[0] - own[1]
    assert own[1] - own[0]


class TestPosCorpora:
    def test_share_most_labels_but_not_sentences(self) -> None:
        a, b = load("demo-pos-a"), load("demo-pos-b")
        labels_a, labels_b = set(a.task("pos").labels), set(b.task("pos").labels)
        assert len(labels_a & labels_b) >= 24
        assert labels_a - labels_b
        assert labels_b - labels_a
        shared = {one.tokens for one in a.train} & {one.tokens for one in b.train}
        assert len(shared) < 20


class TestNotation:
    def test_every_name_of_the_grammar_is_defined_and_used(self) -> None:
        rules, lexicon = grammar()
        known = {*rules, *lexicon, *NUMBERS, "he", "him", "his", "first.same"}
        used = {
            symbol.text
            for alternatives in rules.values()
            for alternative in alternatives
            for symbol in alternative.symbols
            if symbol.kind == "ref"
        }
        assert used <= known
        assert set(rules) - used == {"Sentence"}

    def test_chunks_and_entities_open_and_close_in_every_alternative(self) -> None:
        for name, alternatives in grammar()[0].items():
            for alternative in alternatives:
                depth = Counter[str]()
                for symbol in alternative.symbols:
                    action, _, kind = symbol.kind.partition("-")
                    if kind:
                        depth[kind] += 1 if action == "open" else -1
                    assert all(0 <= level <= 1 for level in depth.values()), name
                assert not any(depth.values()), name

    def test_every_alternative_can_be_written_out(self) -> None:
        generator = Generator(1)
        for name in grammar()[0]:
            for _ in range(20):
                generator.phrase(name)

    def test_regular_forms_are_made(self) -> None:
        _, lists = parse("verb v: rise rises rose risen rising | study | hire\nnoun n: loss | city | day")
        assert [lists[f"v.{tag}"].entries[1][0] for tag in ("VB", "VBZ", "VBD", "VBN", "VBG")] == [
            ("study", "VB"), ("studies", "VBZ"), ("studied", "VBD"), ("studied", "VBN"), ("studying", "VBG"),
        ]  # fmt: skip
        assert lists["v.VBG"].entries[2] == (("hiring", "VBG"),)
        assert lists["v.VBD"].entries[0] == (("rose", "VBD"),)
        assert [entry[0][0] for entry in lists["n.NNS"].entries] == ["losses", "cities", "days"]

    @pytest.mark.parametrize(
        "text",
        [
            "Rule\n  word",
            "Rule\n  [NP a/DT ]\nRule\n  b/NN",
            "Rule\n  $a?x",
            "  a/DT",
            "noun n: a | | b",
            "noun n: a\nnoun n: b",
            "thing n: a",
        ],
    )
    def test_mistakes_are_told_by_line(self, text: str) -> None:
        with pytest.raises(ValueError, match="line"):
            parse(text)
