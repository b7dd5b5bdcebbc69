"""Tag schemes are recognised, converted once, and their violations are counted."""

from __future__ import annotations

import pytest

from core.corpora.assembly import assemble, findings
from core.corpora.types import Sentence
from core.errors import CorpusError
from core.tasks import KINDS
from core.tasks.schemes import OddLabel, read_column, violations


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
        (("B-LOC M-LOC E-LOC O S-LOC",), "BMES", "B-LOC I-LOC I-LOC O B-LOC"),
        (("E-PER E-PER O", "I-LOC E-LOC O"), "IOE", "B-PER B-PER O"),
        (("I-PER E-PER I-PER O", "I-LOC I-LOC"), "IOE", "B-PER I-PER B-PER O"),
        (("B_PER I_PER O",), "IOB2", "B-PER I-PER O"),
        (("PER-B PER-I O",), "IOB2", "B-PER I-PER O"),
        (("b-per i-per o",), "IOB2", "B-per I-per O"),
        (("B I O B",), "IOB2", "B-_ I-_ O B-_"),
        (("B M E S",), "BMES", "B-_ I-_ I-_ B-_"),
        (("PER PER O LOC",), "IO", "B-PER I-PER O B-LOC"),
        (("(PER* *) * (LOC*)",), "IOB2", "B-PER I-PER O B-LOC"),
        (("NN S- E-",), None, None),
        (("O O O",), None, None),
        (("I-.. O NN",), None, None),
        (("'' ( -LRB- B",), None, None),
        (("B- O",), None, None),
        (("NN O VB",), None, None),  # tags of words, one of them O
        (("N O V A",), None, None),
        (("S M L",), None, None),
    ],
)
def test_what_nearly_all_labels_are_decides(
    sentences: tuple[str, ...], scheme: str | None, iob2: str | None
) -> None:
    """Whole spans in every scheme are a property (tests/properties/test_evaluation_properties.py)."""
    read = read_column({"train": column(*sentences)})
    assert (read and read.schemes["train"]) == scheme
    if read is not None:
        assert read.labels["train"][0] == tuple((iob2 or sentences[0]).split())


@pytest.mark.parametrize(
    ("sentences", "label", "meaning"),
    [
        (("B-PER I-PER O B-LOC I_LOC",), "I_LOC", ("I-LOC",)),
        (("B-PER I-PER 0",), "0", ("O",)),
        (("B I 0",), "0", ("O",)),
        (("B-PER PER O I-PER",), "PER", ("B-PER", "I-PER")),
        (("B_PER I_PER O B-LOC B_LOC I_LOC",), "B-LOC", ("B_LOC",)),
        (("B-PER I-PER - B-LOC",), "-", ("O",)),
        (("B-PER I-PER _",), "_", ("O",)),
        (("B-PER I-PER OUT",), "OUT", ("O",)),
        (("B-PER O",) * 50 + ("NN O",), "NN", ()),
    ],
)
def test_an_odd_label_among_spans_is_refused_with_its_likely_meaning(
    sentences: tuple[str, ...], label: str, meaning: tuple[str, ...]
) -> None:
    rows = column(*sentences)
    with pytest.raises(OddLabel) as raised:
        read_column({"train": rows})
    odd = raised.value
    assert (odd.label, odd.meaning) == (label, meaning)
    assert rows[odd.sentence][odd.word] == label


def test_an_o_beside_brackets_is_odd_in_a_split_whose_training_has_none() -> None:
    with pytest.raises(OddLabel) as raised:
        read_column({"train": column("(NP* *)"), "dev": column("(NP*) O")})
    odd = raised.value
    assert (odd.split, odd.sentence, odd.word, odd.label, odd.meaning) == ("dev", 0, 1, "O", ("*",))


def test_a_sentence_with_a_word_without_a_label_is_not_annotated() -> None:
    read = read_column({"train": column("B-PER _ O", "O B-LOC"), "test": column("_ _")})
    assert read is not None
    assert read.labels == {"train": [("O", "B-LOC")], "test": []}
    assert {split: list(lacks) for split, lacks in read.lacking.items()} == {
        "train": [True, False],
        "test": [True],
    }
    assert read.unannotated == {"train": 1, "test": 2}


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
    assert corpus.notes == ("ner: written in IOB1 in the train and test splits; converted to IOB2.",)
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
        "pos: training never shows XX in test. The model cannot predict them.",
        "ner: training never shows B-ORG, I-ORG in test. The model cannot predict them.",
        "ner: its dev score is undefined: the dev split has no span of this task.",
        "ner: I- labels that continue no span: 1 in train, 1 in test; they are kept as they are.",
        "1 of 1 dev sentences is in train, word for word.",
    )


def test_refused_corpora() -> None:
    with pytest.raises(CorpusError, match="c has words but no labels"):
        assemble("c", {"train": [sentence("a")], "test": [sentence("b")]})
    test = [sentence("a", ner="O"), sentence("b", ner="PER")]
    with pytest.raises(
        CorpusError, match="c, test split, sentence 2: 'PER' among 1 span labels; write B-PER or I-PER"
    ):
        assemble("c", {"train": [sentence("a", ner="B-PER")], "test": test})


def test_sentences_may_be_annotated_for_different_tasks() -> None:
    train = [sentence("a", x="I-P"), sentence("b", y="NN"), sentence("c", x="O", y="VB")]
    corpus = assemble("c", {"train": train, "test": [sentence("a", x="O", y="NN")]})
    expected = [{"x": ("B-P",)}, {"y": ("NN",)}, {"x": ("O",), "y": ("VB",)}]
    assert [dict(sentence.labels) for sentence in corpus.train] == expected
