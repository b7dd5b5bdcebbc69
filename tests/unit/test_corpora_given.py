"""Texts handed over to be tagged: pasted or a file, with and without gold labels."""

from __future__ import annotations

import pytest

from core.corpora.given import GivenTask, propose_columns, read_given
from core.corpora.types import Sentence
from core.errors import CorpusError
from core.evaluation.scores import score_task
from core.tagged_file import column_names, conll_text, given_scores
from core.tagging import TaggedSentence, WordTag

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
