"""Texts handed over to be tagged: pasted or a file, with and without gold labels."""

from __future__ import annotations

from typing import Any

import pytest

from core.corpora.readers.given import read_given
from core.corpora.types import Sentence
from core.errors import CorpusError
from core.tagging import TaggedSentence, WordTag, column_names, conll_text, given_scores
from core.tasks import score_task

TASKS = {"pos-a": "plain", "chunk": "iob2", "ner": "iob2"}
_COLUMNS = "Anna NNP B-NP B-PER\nsings VB B-VP O\n\nBoston NNP B-NP B-LOC\n"


@pytest.mark.parametrize(
    ("text", "name", "options", "sentences"),
    [
        (_COLUMNS, "a.conll", {}, ["Anna sings", "Boston"]),
        (f"-DOCSTART- X O O\n\n{_COLUMNS}".replace(" ", "\t"), "pasted", {}, ["Anna sings", "Boston"]),
        ("Anna\nsings\n\nBoston\n", "words.tsv", {}, ["Anna sings", "Boston"]),
        ("Mr. Lee's dog.\n\nIt barks.\n", "a.txt", {}, ["Mr. Lee 's dog .", "It barks ."]),
        ("Mr. Lee's dog.\n\nIt barks.\n", "a.txt", {"layout": "split"}, ["Mr. Lee's dog.", "It barks."]),
        ("Anna\n\nsings\n", "a.txt", {"layout": "words", "columns": ("tokens", "_")}, ["Anna", "sings"]),
        ("Anna x\n\nsings y\n", "a.txt", {"columns": ("tokens", "_")}, ["Anna", "sings"]),
        ("1\ta\t_\tDET\tDT\t_\t0\t_\t_\t_\n", "a.conllu", {}, ["a"]),
    ],
)
def test_the_ending_says_how_a_text_is_read(
    text: str, name: str, options: dict[str, Any], sentences: list[str]
) -> None:
    given = read_given(text.encode(), name, TASKS, **options)
    assert [" ".join(sentence.tokens) for sentence in given.sentences] == sentences
    assert given.gold == (tuple(TASKS) if "NNP" in text else ())
    assert given.notes == (
        ("Left out, document marks: 1 in pasted (line 1: '-DOCSTART-\tX\tO\tO').",) if "DOC" in text else ()
    )


_TEXT = "text, a sentence a line"


@pytest.mark.parametrize(
    ("read_as", "text"),
    [
        ("columns: 1 word, 2 pos, 3 ner", "\ufeffAnna\tNNP\tB-PER\r\nsings\tVB\tO\r\n"),
        ("columns: 1 word, 2 pos, 3 ner", "# id = 1\n# a b c d\nAnna N B-X\n\n# NN O\nx N O\n"),
        ("columns: 1 word, 2 pos, 3 skipped, 4 ner", f"-DOCSTART- X O O\n\n{_COLUMNS}"),
        ("columns: 1 word, 2 pos", "the dt\ndog nn\nbarks vb\n\n" * 12),
        ("CoNLL-U", "# text = a\n1\ta\t_\tDET\tDT\t_\t0\t_\t_\t_\n"),
        ("a word a line, empty lines between sentences", "a\n.\n\n我\n爱\n北京\n"),
        (_TEXT, "I love the sea\nI love the sky\n\nI see a sun\nI see a bee\n"),
        (_TEXT, "床前明月光\n疑是地上霜\n\n举头望明月\n低头思故乡\n"),
        (_TEXT, "one two\nthree four\n\nfive six\n"),
    ],
    ids=[
        "columns",
        "comments",
        "four",
        "lower case",
        "CoNLL-U",
        "words",
        "poem",
        "Chinese poem",
        "two words",
    ],
)
def test_the_kind_of_a_text_file_is_detected(read_as: str, text: str) -> None:
    schemes = {"pos": "plain", "ner": "iob2"}
    given = read_given(text.encode(), "a.txt", schemes)
    assert given.read_as == read_as
    assert ("#" in given.sentences[-1].tokens) == ("# NN" in text)
    # Whatever it was taken for, it can be read as text.
    as_text = read_given(text.encode(), "a.txt", schemes, layout="split")
    assert len(as_text.sentences) == sum(bool(line.strip()) for line in text.split("\n"))


def test_columns_that_are_not_the_tasks_in_order_are_named_by_what_is_in_them() -> None:
    text = b"1 Anna NNP S-PER\n2 Lee NNP O\n\n1 A NNP B-PER\n2 B NNP E-PER\n"
    three = {"pos": "plain", "ner": "iob2"}
    assert read_given(text, "x.conll", three).read_as == "columns: 1 skipped, 2 word, 3 skipped, 4 ner"
    given = read_given(text, "x.conll", three, columns=("_", "tokens", "_pos", "ner"))
    labels = [{"ner": ("B-PER", "O")}, {"ner": ("B-PER", "I-PER")}]  # spans in any notation become IOB2
    assert [sentence.labels for sentence in given.sentences] == labels


@pytest.mark.parametrize(
    ("text", "columns", "message"),
    [
        (b"EU NNP\ncalls VBZ\n\n" * 10 + b"x\n", None, "x.txt, line 31: expected 2 columns"),
        (b"\xff\xfe", None, "x.txt, line 1"),
        (b"", None, "x.txt is empty"),
        (b"a NN\n", ("tokens", "what"), "There is no task 'what' here"),
        (b"a NN\n", ("_", "ner"), "must be named 'tokens'"),
        (
            b"a NN\n",
            ("tokens", "ner"),
            "line 1: 'NN' is no label of spans, which ner has; write O, or B- or I-",
        ),
        (b"a NN NN\n", ("tokens", "ner", "ner"), "Two columns are named 'ner'"),
    ],
)
def test_errors_say_where(text: bytes, columns: tuple[str, ...] | None, message: str) -> None:
    with pytest.raises(CorpusError) as caught:
        read_given(text, "x.txt", TASKS, columns=columns)
    assert message in str(caught.value)
    assert "/" not in str(caught.value).split(":")[0]


def _answer(tokens: tuple[str, ...], **labels: str) -> TaggedSentence:
    return TaggedSentence(
        tokens,
        {
            task: tuple(WordTag(label, 0.75, ((label, 0.75),)) for label in column.split())
            for task, column in labels.items()
        },
    )


def test_a_written_answer_can_be_read_again() -> None:
    sentences = (Sentence(("Anna", "sings"), {"ner": ("B-PER", "O")}), Sentence(("Boston",), {}))
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
    plain = conll_text([Sentence(sentence.tokens, {}) for sentence in sentences], answers)
    first, second = read_given(plain.encode(), "x.conll", {"pos": "plain", "ner": "iob2"}).sentences
    assert (first.tokens, second.tokens) == (("Anna", "sings"), ("Boston",))
    assert first.labels == {"pos": ("NNP", "VB"), "ner": ("B-PER", "O")}


def test_scores_are_those_of_training() -> None:
    sentences = (Sentence(("A", "b"), {"ner": ("B-PER", "O")}), Sentence(("C",), {}))
    answers = [_answer(("A", "b"), pos="X Y", ner="B-PER B-PER"), _answer(("C",), pos="X", ner="B-PER")]
    (score,) = given_scores(sentences, answers, {"pos": "plain", "ner": "iob2"})
    assert score == score_task("ner", "iob2", [["B-PER", "O"]], [["B-PER", "B-PER"]], details=False)
    assert score.secondary("precision") == 0.5
