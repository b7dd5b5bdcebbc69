"""Texts handed over to be tagged: pasted or a file, with and without gold labels."""

from __future__ import annotations

import pytest

from core.corpora.free_text import GivenTask, has_columns, propose_columns, read_given
from core.corpora.types import Sentence
from core.errors import CorpusError
from core.evaluation.scores import score_task
from core.tagging import TaggedSentence, WordTag, column_names, conll_text, given_scores

TASKS = [
    GivenTask("pos-a", "plain", ("NN", "NNP", "VB", ".")),
    GivenTask("chunk", "iob2", ("O", "B-NP", "I-NP", "B-VP")),
    GivenTask("ner", "iob2", ("O", "B-PER", "I-PER", "B-LOC")),
]


def test_columns_are_known_by_the_labels_of_the_tasks() -> None:
    text = b"1 Anna NNP B-PER lemma1 B-NP\n2 sings VB O lemma2 B-VP\n\n1 Boston NNP B-LOC lemma3 B-NP\n"
    assert propose_columns(text, "x.conll", TASKS) == ("_1", "tokens", "pos-a", "ner", "_5", "chunk")
    given = read_given(text, "x.conll", TASKS)
    assert given.gold == ("pos-a", "chunk", "ner")
    assert given.sentences[1] == Sentence(
        ("Boston",), {"pos-a": ("NNP",), "ner": ("B-LOC",), "chunk": ("B-NP",)}
    )


def test_a_prefix_that_training_lacked_is_no_reason() -> None:
    assert propose_columns(b"A B-LOC\nB I-LOC\nC I-LOC\n", "x.conll", TASKS) == ("tokens", "ner")


def test_only_words() -> None:
    given = read_given(b"Anna\nsings\n\nBoston\n", "words.tsv", TASKS)
    assert [one.tokens for one in given.sentences] == [("Anna", "sings"), ("Boston",)]
    assert given.gold == ()


def test_a_text_file_holds_a_sentence_a_line() -> None:
    text = b"Mr. Lee's dog.\n\nIt barks.\n"
    assert [one.tokens for one in read_given(text, "a.txt", TASKS).sentences] == [
        ("Mr.", "Lee", "'s", "dog", "."),
        ("It", "barks", "."),
    ]
    assert read_given(text, "a.txt", TASKS, split=True).sentences[0].tokens == ("Mr.", "Lee's", "dog.")


_COLUMNS = "Anna NNP B-NP B-PER\nsings VB B-VP O\n. . O O\n\nBoston NNP B-NP B-LOC\nsings VB B-VP O\n\n"


@pytest.mark.parametrize("text", [_COLUMNS, _COLUMNS.replace(" ", "\t"), "-DOCSTART- -X- O O\n\n" + _COLUMNS])
def test_a_text_file_of_columns_is_read_as_columns(text: str) -> None:
    given = read_given(text.encode(), "a.txt", TASKS)
    assert [one.tokens for one in given.sentences] == [("Anna", "sings", "."), ("Boston", "sings")]
    assert given.gold == ("pos-a", "chunk", "ner")
    assert has_columns(text.encode(), "a.txt", TASKS)


def test_spans_alone_are_columns_whatever_their_types() -> None:
    text = b"Anna O\nLee B-GENE\nsings O\n\nso O\n"
    assert has_columns(text, "a.txt", TASKS)
    assert [len(one.tokens) for one in read_given(text, "a.txt", TASKS).sentences] == [3, 1]


def test_a_mistake_in_columns_is_told_whatever_the_file_is_called() -> None:
    broken = (_COLUMNS * 4).replace("sings VB B-VP O\n\n", "sings VB B-VP\n\n", 1)
    with pytest.raises(CorpusError, match=r"a\.txt, line 6: expected 4 columns"):
        read_given(broken.encode(), "a.txt", TASKS)


@pytest.mark.parametrize(
    "text",
    [
        "It barks .\nAnna sings .\nBoston won .\nLee sang .\n",  # "." is a label of pos-a
        "Anna sings\nin Boston\nand Paris\n",
        "One line\n",
        "buy NN\n",
        "Anna\nsings\n\nBoston\n",
        "Mr. Lee's dog.\n\nIt barks.\n",
    ],
)
def test_a_text_file_of_lines_alike_is_still_a_text(text: str) -> None:
    assert not has_columns(text.encode(), "a.txt", TASKS)
    lines = [line for line in text.splitlines() if line]
    assert len(read_given(text.encode(), "a.txt", TASKS).sentences) == len(lines)


def test_split_lines_are_never_columns_and_named_columns_always() -> None:
    assert len(read_given(_COLUMNS.encode(), "a.txt", TASKS, split=True).sentences) == 5
    named = read_given(b"Anna x\n\nsings y\n", "a.txt", TASKS, columns=("tokens", "_"))
    assert [one.tokens for one in named.sentences] == [("Anna",), ("sings",)]


def test_spans_in_any_notation_become_iob2() -> None:
    given = read_given(
        b"Anna S-PER\nLee O\n\nA B-PER\nB E-PER\n", "x.conll", TASKS, columns=("tokens", "ner")
    )
    assert [one.labels["ner"] for one in given.sentences] == [("B-PER", "O"), ("B-PER", "I-PER")]


@pytest.mark.parametrize(
    ("text", "columns", "said"),
    [
        (b"a NN\nb NN O\n", None, "x.conll, line 2: expected 2 columns as on line 1"),
        (b"\xff\xfe", None, "x.conll, line 1"),
        (b"", None, "x.conll is empty"),
        (b"a NN\n", ("tokens", "what"), "There is no task 'what' here"),
        (b"a NN\n", ("_", "ner"), "must be named 'tokens'"),
        (b"a NN\n", ("tokens", "ner"), "sentence 1: 'NN' is no label of spans, which ner has"),
        (b"a NN NN\n", ("tokens", "ner", "ner"), "Two columns are named 'ner'"),
    ],
)
def test_errors_say_where(text: bytes, columns: tuple[str, ...] | None, said: str) -> None:
    with pytest.raises(CorpusError) as caught:
        read_given(text, "x.conll", TASKS, columns=columns)
    assert said in str(caught.value)
    assert "/" not in str(caught.value).split(":")[0]


def _answer(tokens: tuple[str, ...], **labels: str) -> TaggedSentence:
    return TaggedSentence(
        tokens,
        {
            task: tuple(WordTag(label, 0.75, ((label, 0.75),)) for label in column.split())
            for task, column in labels.items()
        },
    )


def test_what_is_written_can_be_read_again() -> None:
    sentences = (
        Sentence(("Anna", "sings"), {"ner": ("B-PER", "O")}),
        Sentence(("Boston",), {}),
    )
    answers = [
        _answer(("Anna", "sings"), pos="NNP VB", ner="B-PER O"),
        _answer(("Boston",), pos="NN", ner="B-LOC"),
    ]
    text = conll_text(sentences, answers, confidence=True)
    names = column_names(["pos", "ner"], ["ner"], confidence=True)
    assert names == ("tokens", "pos", "pos_confidence", "ner_gold", "ner", "ner_confidence")
    assert text.splitlines()[0].split("\t") == ["Anna", "NNP", "0.7500", "B-PER", "B-PER", "0.7500"]
    assert text.splitlines()[3].split("\t")[3] == "_"
    parts = [(sentences[:1], answers[:1]), (sentences[1:], answers[1:])]
    assert text == "".join(conll_text(*part, gold=["ner"], confidence=True) for part in parts)
    plain = conll_text([Sentence(one.tokens, {}) for one in sentences], answers)
    tasks = [
        GivenTask("pos", "plain", ("NNP", "VB", "NN")),
        GivenTask("ner", "iob2", ("O", "B-PER", "B-LOC")),
    ]
    again = read_given(plain.encode(), "x.conll", tasks)
    assert [one.tokens for one in again.sentences] == [one.tokens for one in sentences]
    assert again.sentences[0].labels == {"pos": ("NNP", "VB"), "ner": ("B-PER", "O")}


def test_scores_are_those_of_training() -> None:
    sentences = (Sentence(("A", "b"), {"ner": ("B-PER", "O")}), Sentence(("C",), {}))
    answers = [_answer(("A", "b"), pos="X Y", ner="B-PER B-PER"), _answer(("C",), pos="X", ner="B-PER")]
    (score,) = given_scores(sentences, answers, {"pos": "plain", "ner": "iob2"})
    assert score == score_task("ner", "iob2", [["B-PER", "O"]], [["B-PER", "B-PER"]], details=False)
    assert score.precision == 0.5
