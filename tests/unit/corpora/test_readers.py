"""CoNLL columns and CoNLL-U: what the strict readers accept, and the one sentence that refuses the rest."""

from __future__ import annotations

from pathlib import Path

import pytest

from core.corpora.readers.conll import left_out_notes, named, read_table
from core.corpora.readers.conllu import read_conllu
from core.corpora.types import Sentences
from core.errors import CorpusError

COLUMNS = ("tokens", "pos", "chunk", "ner")
TWO_SENTENCES = "EU NNP B-NP B-ORG\nrejects VBZ B-VP O\n\nPeter NNP B-NP B-PER\n"


def written(tmp_path: Path, content: str | bytes, name: str = "train.conll") -> Path:
    path = tmp_path / name
    path.write_bytes(content.encode() if isinstance(content, str) else content)
    return path


def read_columns(path: Path, columns: tuple[str, ...]) -> tuple[Sentences, tuple[str, ...]]:
    table = read_table(path, columns)
    return named(table, columns, path), tuple(left_out_notes({path.name: table}))


@pytest.mark.parametrize(
    "content",
    [
        pytest.param(TWO_SENTENCES, id="plain"),
        pytest.param("\ufeff" + TWO_SENTENCES, id="byte order mark"),
        pytest.param(TWO_SENTENCES.replace("O\n", "O  \n"), id="spaces at line ends"),
        pytest.param("-DOCSTART- -X- O O\n" + TWO_SENTENCES, id="document mark before a word"),
        pytest.param("-DOCSTART-\n\n" + TWO_SENTENCES, id="document mark alone"),
    ],
)
def test_words_and_labels_by_sentence(tmp_path: Path, content: str) -> None:
    """More variants of the same text are a property (tests/properties/test_corpora_properties.py)."""
    sentences, _ = read_columns(written(tmp_path, content), COLUMNS)
    assert [sentence.tokens for sentence in sentences] == [("EU", "rejects"), ("Peter",)]
    columns = {"pos": ("NNP", "VBZ"), "chunk": ("B-NP", "B-VP"), "ner": ("B-ORG", "O")}
    assert sentences[0].labels == columns


@pytest.mark.parametrize(
    ("content", "expected"),
    [
        (
            "word NN B-NP O\n" * 16 + "word NN B-NP\nword NN B-NP O\n",
            ", line 17: expected 4 columns (tokens, pos, chunk, ner) separated by spaces, but found 3.",
        ),
        ("a\tNN\tO\tO\n\tNN\tO\tO\n", "line 2: column 1 is empty."),
        ("a NN B-NP O\n\t NN B-NP O\n", "line 2: holds a tab, and the columns of this file are separated by"),
        ("a NN B-NP O\rb NN B-NP O\nc NN B-NP O\n", "line 1: has a carriage return inside"),
        ("a NN B-NP O\n\n#tag NN O\n", "line 3: expected 4 columns"),
        ("a\tNN\tB-NP\tO\nb NN B-NP O\n", "separated by tabs, but found 1"),
        ("-DOCSTART- -X- -X- O\n\n", "must hold at least one"),
        (TWO_SENTENCES.encode("utf-16"), "line 1: is UTF-16, not UTF-8"),
        (TWO_SENTENCES.encode("utf-16-le"), "line 1: holds a zero byte"),
        (
            f"{TWO_SENTENCES}\nZoé NNP B-NP B-PER\n".encode("latin-1"),
            ", line 6: byte 0xe9 at position 3 is not UTF-8; save the file as UTF-8.",
        ),
    ],
)
def test_refused_columns(tmp_path: Path, content: str | bytes, expected: str) -> None:
    path = written(tmp_path, content)
    with pytest.raises(CorpusError) as raised:
        read_columns(path, COLUMNS)
    assert str(raised.value).startswith(str(path))
    assert expected in str(raised.value)


def test_missing_files_and_unnamed_columns(tmp_path: Path) -> None:
    with pytest.raises(CorpusError, match=r"^There is no file .*gone\.conll; check the name\.$"):
        read_columns(tmp_path / "gone.conll", COLUMNS)
    path = written(tmp_path, "\na NN\nb NN O\n")
    with pytest.raises(CorpusError, match=r"line 3: expected 2 columns as on line 2 .* found 3") as raised:
        read_table(path)
    assert (raised.value.source, raised.value.line) == (str(path), 3)


def test_columns_that_are_skipped_and_words_of_odd_characters(tmp_path: Path) -> None:
    content = "-DOCSTART- -X- -X- O\n\n10\u00a0000 CD B-NP O\n\u2028 SYM O O\n# # B-NP O\n"
    (sentence,), notes = read_columns(written(tmp_path, content), ("tokens", "_lemma", "_", "ner"))
    assert sentence.tokens == ("10\u00a0000", "\u2028", "#")
    assert sentence.labels == {"ner": ("O", "O", "O")}
    assert notes == ("Left out, document marks: 1 in train.conll (line 1: '-DOCSTART- -X- -X- O').",)


def test_a_comment_behind_the_last_sentence_labels_none(tmp_path: Path) -> None:
    path = written(tmp_path, "# intent: ask\na N\n\n# intent: book\nb N\n\n# intent: ask\n")
    sentences = named(read_table(path), ("tokens", "pos"), path, ("intent",))
    assert [sentence.labels["intent"] for sentence in sentences] == [("ask",), ("book",)]


def conllu_row(number: str, form: str, upos: str = "NOUN", xpos: str = "NN") -> str:
    return f"{number}\t{form}\t_\t{upos}\t{xpos}\t_\t0\t_\t_\t_\n"


def test_conllu_without_comments_multiword_ranges_and_empty_nodes(tmp_path: Path) -> None:
    content = "# text = don't go\n" + "".join(
        (
            conllu_row("1-2", "don't", "_", "_"),
            conllu_row("1", "do", "AUX", "VBP"),
            conllu_row("2", "n't", "PART", "RB"),
            conllu_row("2.1", "go", "VERB", "VB"),
            conllu_row("3", "go", "VERB", "VB"),
        )
    )
    (sentence,), notes = read_conllu(written(tmp_path, content, "train.conllu"))
    assert sentence.tokens == ("do", "n't", "go")
    assert sentence.labels == {"upos": ("AUX", "PART", "VERB"), "xpos": ("VBP", "RB", "VB")}
    assert notes == ("train.conllu: 2 rows of multiword ranges and empty nodes left out.",)


def test_an_underscore_of_conllu_is_a_label_only_among_labels(tmp_path: Path) -> None:
    content = conllu_row("1", "a", "DET", "_") + conllu_row("2", "b", "NOUN", "SG")
    content += "\n" + conllu_row("1", "c", "NOUN", "_")
    (labelled, unlabelled), notes = read_conllu(written(tmp_path, content, "train.conllu"))
    assert labelled.labels == {"upos": ("DET", "NOUN"), "xpos": ("_", "SG")}
    assert unlabelled.labels == {"upos": ("NOUN",)}
    assert notes == ()


@pytest.mark.parametrize(
    ("content", "expected"),
    [
        (conllu_row("1", "a") + "2\tb\t_\tNOUN\n", "line 2: expected 10 columns of CoNLL-U .* found 4"),
        (conllu_row("1", "a") + conllu_row("3", "b"), "line 2: expected word number 2 .* found '3'"),
        (conllu_row("1", "a") + conllu_row("2", ""), "line 2: column 2 is empty"),
        ("# only a comment\n", "holds no sentence"),
    ],
)
def test_refused_conllu(tmp_path: Path, content: str, expected: str) -> None:
    with pytest.raises(CorpusError, match=expected):
        read_conllu(written(tmp_path, content, "train.conllu"))
