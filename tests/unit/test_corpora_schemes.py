"""Tag schemes are recognised, converted once, and their violations are counted."""

from __future__ import annotations

import pytest

from core.corpora.assembly import assemble, findings
from core.corpora.types import Sentence
from core.errors import CorpusError
from core.tasks import KINDS
from core.tasks.schemes import convert, notation, violations


def column(*sentences: str) -> list[tuple[str, ...]]:
    return [tuple(sentence.split()) for sentence in sentences]


@pytest.mark.parametrize(
    ("sentences", "scheme", "iob2"),
    [
        (("B-PER I-PER O B-LOC",), "IOB2", None),
        (("B-PER O", "I-PER O", "O I-LOC"), "IOB2", None),
        (("I-PER O",) * 20 + ("B-PER O",) * 20, "IOB2", None),
        (("I-PER I-LOC I-LOC",), "IOB1", "B-PER B-LOC I-LOC"),
        (("I-PER B-PER I-PER",), "IOB1", "B-PER B-PER I-PER"),
        # A single mistake does not hide the scheme.
        (("I-PER O",) * 200 + ("B-PER O",), "IOB1", "B-PER O"),
        (("S-PER B-LOC I-LOC E-LOC O",), "IOBES", "B-PER B-LOC I-LOC I-LOC O"),
        (("U-PER B-LOC L-LOC",), "BILOU", "B-PER B-LOC I-LOC"),
        (("NN S- E-",), "plain", None),
        (("O O O",), "plain", None),
        (("I-.. O NN",), "plain", None),
        (("'' ( -LRB- B",), "plain", None),
        (("B- O",), "plain", None),
    ],
)
def test_notation_and_conversion_to_iob2(sentences: tuple[str, ...], scheme: str, iob2: str | None) -> None:
    """Whole spans in every scheme are a property (tests/properties/test_evaluation_properties.py)."""
    labels = column(*sentences)
    assert notation(labels) == scheme
    assert convert(labels, scheme)[0] == tuple((iob2 or sentences[0]).split())


def test_violations_are_i_labels_that_continue_nothing() -> None:
    assert violations(column("I-PER I-PER O", "B-PER I-LOC", "O I-LOC I-LOC B-LOC I-LOC")) == 3


def test_labels_stand_outside_first_then_by_type_and_prefix() -> None:
    labels = ["I-PER", "B-PER", "O", "I-LOC", "B-LOC", "B-A-B"]
    assert KINDS["iob2"].rows(labels) == ("O", "B-A-B", "B-LOC", "I-LOC", "B-PER", "I-PER")
    assert KINDS["plain"].rows(["VB", "NN", "O", "NN"]) == ("NN", "O", "VB")


def sentence(words: str, **labels: str) -> Sentence:
    return Sentence(tuple(words.split()), {task: tuple(row.split()) for task, row in labels.items()})


def test_a_corpus_is_converted_once_with_a_note() -> None:
    train = [sentence("a b", ner="I-PER B-PER"), sentence("c", ner="O")]
    corpus = assemble("c", {"train": train, "test": [sentence("d", ner="I-LOC")]})
    assert [sentence.labels["ner"] for sentence in corpus.train] == [("B-PER", "B-PER"), ("O",)]
    assert corpus.test[0].labels["ner"] == ("B-LOC",)
    assert corpus.notes == (
        "ner is written in IOB1 in the train split; converted to IOB2.",
        "ner is written in IOB1 in the test split; converted to IOB2.",
    )
    assert corpus.task("ner").illegal == {"train": 0, "test": 0}


def test_unseen_labels_and_illegal_sequences_are_counted_per_split_and_kept() -> None:
    train = [sentence("a b c", pos="NN VB NN", ner="B-PER I-LOC O"), sentence("a", pos="NN", ner="B-LOC")]
    dev = [sentence("a", pos="NN", ner="O")]
    test = [sentence("a b", pos="XX NN", ner="O I-LOC"), sentence("a b", pos="NN NN", ner="B-ORG I-ORG")]
    corpus = assemble("c", {"train": train, "dev": dev, "test": test})
    pos, ner = corpus.tasks
    assert (pos.labels, ner.labels) == (("NN", "VB"), ("O", "B-LOC", "I-LOC", "B-PER"))
    assert (pos.unseen, ner.unseen) == ({"test": ("XX",)}, {"test": ("B-ORG", "I-ORG")})
    assert ner.illegal == {"train": 1, "dev": 0, "test": 1}
    assert corpus.train[0].labels["ner"] == ("B-PER", "I-LOC", "O")
    assert findings(corpus) == (
        "pos: the test split has 1 label that training never shows (XX): none is learned.",
        "ner: the test split has 2 labels that training never shows (B-ORG, I-ORG): none is learned.",
        "ner: I- labels that continue no span: 1 in train, 1 in test; they are kept as they are.",
    )


def test_refused_corpora() -> None:
    with pytest.raises(CorpusError, match="c has words but no labels"):
        assemble("c", {"train": [sentence("a")], "test": [sentence("b")]})
    test = [sentence("a", ner="O"), sentence("b", ner="PER")]
    with pytest.raises(CorpusError, match="c, test split, sentence 2: the ner label 'PER' is not O, B-"):
        assemble("c", {"train": [sentence("a", ner="B-PER")], "test": test})


def test_sentences_may_be_annotated_for_different_tasks() -> None:
    train = [sentence("a", x="I-P"), sentence("b", y="NN"), sentence("c", x="O", y="VB")]
    corpus = assemble("c", {"train": train, "test": [sentence("a", x="O", y="NN")]})
    expected = [{"x": ("B-P",)}, {"y": ("NN",)}, {"x": ("O",), "y": ("VB",)}]
    assert [dict(sentence.labels) for sentence in corpus.train] == expected
