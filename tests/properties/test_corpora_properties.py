"""What is written as CoNLL columns is read back the same; draws are shares of what there is."""

from __future__ import annotations

import re
from pathlib import Path
from tempfile import TemporaryDirectory

from hypothesis import example, given, settings
from hypothesis import strategies as st

from core.config import RunConfig
from core.corpora import Sentence, load, prepare
from core.corpora.tables import named, read_table
from core.errors import CorpusError

# Any visible character: no blanks, line ends or control characters, which set columns and lines apart. What
# begins with # may be a comment (tests/unit/test_corpora_outside.py).
fields = st.text(st.characters(exclude_categories=("Z", "C"), exclude_characters="#"), min_size=1, max_size=6)
sentences = st.lists(
    st.lists(st.tuples(fields, fields, fields), min_size=1, max_size=6), min_size=1, max_size=5
)


@given(rows=sentences, apart=st.sampled_from([" ", "  ", "\t"]), line_end=st.sampled_from(["\n", "\r\n"]))
@settings(max_examples=100)
def test_columns_are_read_back(apart: str, line_end: str, rows: list[list[tuple[str, str, str]]]) -> None:
    columns = ("tokens", "a", "b")
    text = (line_end * 2).join(line_end.join(apart.join(row) for row in sentence) for sentence in rows)
    with TemporaryDirectory() as folder:
        path = Path(folder) / "train.conll"
        path.write_bytes(text.encode())
        table = read_table(path, columns)
    assert table.left_out == ()
    assert list(named(table, columns, path)) == [
        Sentence(tuple(tokens), {"a": tuple(a), "b": tuple(b)})
        for tokens, a, b in (zip(*sentence, strict=True) for sentence in rows)
    ]


_PIECES = [
    "a", "b\u00a0", "x-DOCSTART-", "-DOCSTART-", " ", "  ", "\t", "\n", "\n", "\n\n", "\r\n", "\u2028", "\0",
]  # fmt: skip


@given(
    text=st.lists(st.sampled_from(_PIECES), max_size=20).map("".join),
    columns=st.sampled_from([None, ("tokens",), ("tokens", "a"), ("a", "tokens")]),
)
@example(text="-DOCSTART- \0\na", columns=None)
@example(text="-DOCSTART- \0", columns=None)
@settings(max_examples=200)
def test_a_file_is_read_as_its_lines_say(text: str, columns: tuple[str, ...] | None) -> None:
    with TemporaryDirectory() as folder:
        path = Path(folder) / "train.conll"
        path.write_bytes(text.encode())
        try:
            table = read_table(path, columns)
            sentences = table.first_sentences(len(table.starts))
            read = [list(zip(*sentence, strict=True)) for sentence in sentences]
        except CorpusError as error:
            line = re.search(r", line (\d+):", str(error))
            assert _by_line(text, columns) == (int(line[1]) if line else "nothing")
        else:
            assert read == _by_line(text, columns)


def _by_line(text: str, columns: tuple[str, ...] | None) -> list[list[tuple[str, ...]]] | int | str:
    """The rows by sentence; or the number of the first line that is refused, or that there is nothing."""
    if not text.strip():
        return "nothing"
    sentences: list[list[tuple[str, ...]]] = [[]]
    expected = len(columns or ())
    tabs = None
    for number, line in enumerate(text.split("\n"), start=1):
        line = line.rstrip("\r")
        if not line.strip(" \t") or line.strip(" \t").split(" ")[0].split("\t")[0] == "-DOCSTART-":
            sentences.append([])
            continue
        if tabs is None:
            tabs = "\t" in line.strip(" ")
        fields = [field.strip(" ") for field in line.split("\t")] if tabs else line.split(" ")
        fields = fields if tabs else [field for field in fields if field]
        expected = expected or len(fields)
        if "\0" in line or len(fields) != expected or ("\t" in line and not tabs):
            return number
        sentences[-1].append(tuple(fields))
    return [rows for rows in sentences if rows] or "nothing"


@given(fraction=st.floats(0.001, 1), seed=st.integers(0, 2**31 - 1))
@settings(max_examples=20)
def test_a_fraction_is_a_share_of_each_part_in_the_corpus_order(fraction: float, seed: int) -> None:
    config = RunConfig.build(
        corpus="demo-both-pos", tasks="pos-a,pos-b", paradigm="mtl", fraction=fraction, seed=seed
    )
    drawn = prepare(config)
    whole = load("demo-both-pos")
    places = {(sentence.part, sentence.tokens): place for place, sentence in enumerate(whole.train)}
    order = [places[sentence.part, sentence.tokens] for sentence in drawn.train]
    assert order == sorted(set(order))
    for part in ("demo-pos-a", "demo-pos-b"):
        number = sum(sentence.part == part for sentence in drawn.train)
        assert number == max(1, round(fraction * 600))
    assert (len(drawn.dev), len(drawn.test)) == (400, 400)
