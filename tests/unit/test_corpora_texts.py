"""Corpora of texts and pairs: the strict readers, folders, what is derived from them, uploads."""

from __future__ import annotations

import csv
import io
import json
import re
from collections import Counter
from dataclasses import replace
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import ClassVar

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from core.config import RunConfig
from core.corpora import assembly, detect_columns, load, preparation, prepare, save_upload, summarise
from core.corpora.loading import overlaps, read
from core.corpora.readers import GivenFile
from core.corpora.text_files import AskedTexts, holds_texts, read_asked, read_texts
from core.corpora.types import Overlap, Sentence
from core.corpora.uploads import uploads
from core.errors import CorpusError

TEXTS = "text\tlabel\nA warm , funny film .\t3\nDull\t0\n"
PAIRS = "text1\ttext2\tscore\nA dog runs .\tA dog\t4.2\nA cat\tTwo men talk\t0\n"
WORDS = "EU B-ORG\nrejects O\n"
CSV = b"text,label\na,1\n"
JSONL = b'{"text": "b", "label": 1}\n'


def folder(place: Path, files: dict[str, str], name: str = "mine") -> str:
    made = place / name
    made.mkdir(parents=True)
    for file_name, content in files.items():
        (made / file_name).write_text(content)
    return str(made)


def given_file(content: str | bytes, name: str = "train.tsv") -> GivenFile:
    return GivenFile(name, content.encode() if isinstance(content, str) else content)


def refusal(content: str | bytes, name: str = "train.tsv", training: str | None = None) -> str:
    columns = None if training is None else read_texts(given_file(training), "mine")[1]
    with pytest.raises(CorpusError) as raised:
        read_texts(given_file(content, name), "mine", columns)
    assert "\n" not in str(raised.value)
    return str(raised.value)


class TestFiles:
    def test_a_text_is_what_stands_between_spaces(self) -> None:
        sentences, columns = read_texts(given_file(TEXTS), "reviews")
        assert sentences == (
            Sentence(("A", "warm", ",", "funny", "film", "."), {"reviews": ("3",)}, whole=True),
            Sentence(("Dull",), {"reviews": ("0",)}, whole=True),
        )
        assert (columns.schemes, columns.left_out) == ({"label": "text"}, [])
        assert [sentence.items for sentence in sentences] == [1, 1]

    def test_a_pair_has_two_texts_and_a_score_stays_as_it_is_written(self) -> None:
        (first, second), columns = read_texts(given_file(PAIRS), "similar")
        assert (first.tokens, first.second) == (("A", "dog", "runs", "."), ("A", "dog"))
        assert [dict(pair.labels) for pair in (first, second)] == [{"similar": ("4.2",)}, {"similar": ("0",)}]
        assert columns.schemes == {"score": "score"}

    @pytest.mark.parametrize(
        ("name", "content"),
        [
            ("train.tsv", TEXTS.replace("\n", "\r\n")),
            ("train.tsv", "\ufeff" + TEXTS.rstrip("\n")),
            ("train.TSV", TEXTS + "\n\n"),
            ("train.tsv", TEXTS.replace("warm ,", " warm \u00a0 ,")),
            ("train.csv", 'text,label\n"A warm , funny\nfilm .",3\nDull,0\n'),
            ("train.csv", '"label","text"\r\n"3","A warm , funny film ."\r\n 0 , Dull \r\n'),
            (
                "train.jsonl",
                '{"text": "A warm , funny\\nfilm .", "label": 3}\n{"label": "0", "text": "Dull"}\n',
            ),
        ],
        ids=["CRLF", "byte order mark", "empty last lines", "more spaces", "CSV", "quotes", "JSONL"],
    )
    def test_the_same_texts_in_other_files(self, name: str, content: str) -> None:
        read = read_texts(given_file(content, name), "mine")[0]
        assert read == read_texts(given_file(TEXTS), "mine")[0]

    def test_tsv_knows_no_quotes(self) -> None:
        (sentence,), _ = read_texts(given_file('text\tlabel\n"He said "no\tyes\n'), "mine")
        assert sentence.tokens == ('"He', "said", '"no')

    def test_every_other_column_is_a_task(self) -> None:
        header = "id\ttext1\ttext2\tlabel\tkind\tlike_score\t_note\tidx\t\n"
        (pair,), columns = read_texts(given_file(header + "7\ta\tb\tyes\t2\t-1.5e2\tx\t8\t0\n"), "mine")
        assert pair.labels == {"mine": ("yes",), "kind": ("2",), "like_score": ("-1.5e2",)}
        assert columns.schemes == {"label": "pair", "kind": "pair", "like_score": "score"}
        assert columns.left_out == ["id", "_note", "idx", ""]

    @pytest.mark.parametrize(
        ("corpus", "columns", "tasks"),
        [
            ("mine", "label", "mine"),
            ("mine", "score", "mine"),
            ("mine", "label score", "label score"),
            ("mine", "label mine", "label mine"),
            ("mine", "mood tone_score", "mood tone_score"),
            ("a,b;c", "label", "a-b-c"),
            ("", "label", "label"),
        ],
    )
    def test_the_corpus_names_the_task_of_a_lone_label_or_score(
        self, corpus: str, columns: str, tasks: str
    ) -> None:
        names = columns.split()
        rows = "\t".join(["text1", "text2", *names]) + "\n" + "\t".join(["a", "b", *("1" for _ in names)])
        (pair,), _ = read_texts(given_file(rows), corpus)
        assert list(pair.labels) == tasks.split()

    @pytest.mark.parametrize(
        ("value", "label"),
        [('"a b "', "a b"), ("3", "3"), ("4.50", "4.5"), ("true", "true"), ("1e309", "1e309")],
    )
    def test_labels_of_json(self, value: str, label: str) -> None:
        (sentence,), _ = read_texts(
            given_file(f'{{"text": "a", "label": {value}, "_any": [{{}}]}}', "a.jsonl"), "mine"
        )
        assert sentence.labels == {"mine": (label,)}

    @pytest.mark.parametrize(
        ("name", "content", "expected"),
        [
            (
                "a.tsv",
                "text\tlabel\na\t1\nb\n",
                "a.tsv, line 3: expected 2 columns (text, label) separated by",
            ),
            ("a.tsv", "text\tlabel\na\t1\t2\n", "line 2: expected 2 columns .* tabs, but found 3"),
            ("a.tsv", "text\tlabel\na\t1\n\nb\t2\n", "line 3: is empty; delete it"),
            ("a.tsv", "text\tlabel\na\t1\n \t2\n", "line 3: text is empty"),
            ("a.tsv", "text1\ttext2\tlabel\na\t\t2\n", "line 2: text2 is empty"),
            ("a.tsv", "text\tlabel\na\t \n", "line 2: label is empty"),
            ("a.tsv", "text\tlabel\n", "line 1: names the columns, and no text follows"),
            ("a.tsv", "", "a.tsv is empty"),
            ("a.tsv", "text\tlabel\na\t\u00e9\n".encode("latin-1"), "line 2: byte 0xe9 at position 3 is not"),
            ("a.tsv", "text\tlabel\na\t1\n".encode("utf-16"), "line 1: is UTF-16"),
            ("a.tsv", f"text\tlabel\n{'a ' * 50_001}\t1\n", "line 2: has 100,004 characters and the most is"),
            ("a.tsv", "text\tlabel\na\0b\t1\n", "line 2: text holds a zero byte"),
            ("a.tsv", "sentence\tlabel\na\t1\n", "line 1: expected a column text, .*are sentence, label"),
            ("a.tsv", "text1\tlabel\na\t1\n", "line 1: expected a column text, or text1 and text2"),
            ("a.tsv", "text\ttext1\ttext2\tlabel\na\tb\tc\t1\n", "line 1: expected a column text, or text1"),
            ("a.tsv", "text\tid\na\t1\n", "line 1: expected a column of labels beside text, such as label"),
            ("a.tsv", "text\tx\tx\na\t1\t1\n", "line 1: two columns are named 'x'"),
            ("a.tsv", "text\tx,y\na\t1\n", "line 1: the name 'x,y' of a column has a comma"),
            ("a.tsv", "text\tscore\na\t1\n", "line 1: the column score would hold numbers of pairs"),
            ("a.tsv", "text1\ttext2\tscore\na\tb\thigh\n", "line 2: score must be a number, not 'high'"),
            ("a.tsv", "text1\ttext2\tscore\na\tb\tnan\n", "line 2: score must be a number, not 'nan'"),
            ("a.tsv", "text1\ttext2\tscore\na\tb\t1e999\n", "line 2: score must be a number, not '1e999'"),
            ("a.jsonl", '{"text1": "a", "text2": "b", "score": 1e309}', "line 1: score must .* not '1e309'"),
            ("a.tsv", "text1\ttext2\tscore\na\tb\t1e308\n", "line 2: score must lie between -1,000,000"),
            ("a.tsv", "text1\ttext2\tscore\na\tb\t-1000001\n", "line 2: .* 1,000,000, not '-1000001'"),
            ("a.tsv", "text1\ttext2\tx_score\na\tb\t1_0\n", "line 2: x_score must be a number, not '1_0'"),
            ("a.csv", 'text,label\n"a\nb",1\n"c,2\nd,3\n', "a.csv, line 4: a quoted field is not closed"),
            ("a.csv", 'text,label\n"a\nb",1\n"c" d,2\n', "line 4: a quoted field is not closed, or goes on"),
            ("a.csv", 'text,label\n"a\n\nb",1\nc\n', "line 5: expected 2 columns (text, label)"),
            ("a.csv", 'text,label\n"' + ("a" * 40_000 + "\n") * 3 + '",1\n', "line 2: text has 120,003 char"),
            ("a.csv", 'text,label\n"' + ("a" * 40_000 + "\n") * 4 + '",1\n', "line 2: a quoted field is not"),
            ("a.csv", 'text,label\na,"1\n2"\n', "line 2: label holds a line end"),
            ("a.csv", "text,label\na\rb,1\n", "line 2: has a carriage return inside"),
            ("a.csv", "text;label\na;1\n", "line 1: expected a column text, .*are text;label"),
            ("a.csv", "text,label\na,1\n\nb,2\n", "line 3: is empty"),
            ("a.jsonl", '{"text": "a", "label": 1}\n[1]\n', "line 2: is no JSON object; expected one"),
            (
                "a.jsonl",
                '{"text": "a", "label": 1}\n{"text": "b"\n',
                r"line 2: is no JSON \(Expecting ',' del",
            ),
            ("a.jsonl", '{"text": "a", "label": 1}\n\n{}\n', r"line 2: is no JSON \(Expecting value\)"),
            (
                "a.jsonl",
                '{"text": "a", "text": "b", "label": 1}',
                r"line 1: is no JSON \(a key stands twice\)",
            ),
            ("a.jsonl", '{"text": "a", "label": NaN}', r"line 1: is no JSON \(NaN is no JSON\)"),
            ("a.jsonl", "[" * 50_000, "line 1: is no JSON"),
            ("a.jsonl", '{"text": "a", "label": ' + "1" * 9000 + "}", "line 1: is no JSON"),
            ("a.jsonl", '{"text": "a", "label": 1}\n{"text": "a"}', "line 2: has no 'label'; every line"),
            (
                "a.jsonl",
                '{"text": "a", "label": 1}\n{"text": "a", "label": 1, "x": 2}',
                "2: has also 'x'; every",
            ),
            ("a.jsonl", '{"text": 5, "label": 1}', "line 1: text is not a text"),
            ("a.jsonl", '{"text": "a", "label": null}', "line 1: label must be a text or a number"),
            ("a.jsonl", '{"text": "\\ud800", "label": 1}', "line 1: text holds half a surrogate pair"),
            ("a.jsonl", '{"text1": "a", "text2": "b", "score": true}', "must be a number, not 'true'"),
        ],
    )
    def test_refusals(self, name: str, content: str | bytes, expected: str) -> None:
        with pytest.raises(CorpusError, match=_escaped(expected)) as raised:
            read_texts(given_file(content, name), "mine")
        assert str(raised.value).startswith(name)
        assert "\n" not in str(raised.value)
        assert len(str(raised.value)) < 300

    def test_all_splits_have_the_columns_of_training(self) -> None:
        other = refusal("text\tx\na\t1\n", training=TEXTS)
        assert "line 1: has no column label, which the training file has" in other
        assert "line 1: has no column text," in refusal(PAIRS, training=TEXTS)
        more = refusal("text\tlabel\tx\na\t1\t2\n", training=TEXTS)
        assert "line 1: has a column x, which the training file has not; begin its name with _" in more
        (sentence,), _ = read_texts(
            given_file("label\t_x\ttext\n1\t2\ta\n"), "mine", read_texts(given_file(TEXTS), "mine")[1]
        )
        assert sentence.labels == {"mine": ("1",)}


def _escaped(expected: str) -> str:
    """Parentheses stand for themselves unless the pattern escapes them."""
    return expected if "\\(" in expected else expected.replace("(", r"\(").replace(")", r"\)")


# All that a text may hold but its line ends: those of TSV are the file's.
texts = st.text(st.characters(exclude_categories=["Cs"], exclude_characters="\0"), max_size=30).filter(
    lambda text: bool(text.split())
)
labels = st.text(st.characters(exclude_categories=["Cs", "Cc"]), min_size=1, max_size=8).filter(
    lambda text: bool(text.strip())
)
rows = st.lists(st.tuples(texts, texts, labels), min_size=1, max_size=6)


def _as_csv(read: list[tuple[str, str, str]]) -> str:
    made = io.StringIO(newline="")
    writer = csv.writer(made)
    writer.writerows([("text1", "text2", "label"), *read])
    return made.getvalue()


def _as_jsonl(read: list[tuple[str, str, str]]) -> str:
    return "".join(
        json.dumps(dict(zip(("text1", "text2", "label"), row, strict=True)), ensure_ascii=False) + "\n"
        for row in read
    )


def _as_tsv(read: list[tuple[str, str, str]]) -> str:
    return "".join(
        "\t".join(" ".join(field.split()) for field in row) + "\n"
        for row in [("text1", "text2", "label"), *read]
    )


@given(rows=rows, ending=st.sampled_from([".csv", ".jsonl", ".tsv"]))
@example(rows=[('a "quoted, text"\r\n', "\x85b\u2028c", '"')], ending=".csv")
@settings(max_examples=200)
def test_what_is_written_is_read_back(rows: list[tuple[str, str, str]], ending: str) -> None:
    write = {".csv": _as_csv, ".jsonl": _as_jsonl, ".tsv": _as_tsv}[ending]
    with TemporaryDirectory() as place:
        path = Path(place) / f"train{ending}"
        path.write_bytes(write(rows).encode())
        assert holds_texts(path)
        read, _ = read_texts(path, "mine")
    wanted = [" ".join(label.split()) if ending == ".tsv" else label.strip() for _, _, label in rows]
    assert [(pair.tokens, pair.second, pair.labels["mine"]) for pair in read] == [
        (tuple(first.split()), tuple(second.split()), (label,))
        for (first, second, _), label in zip(rows, wanted, strict=True)
    ]


_PIECES = ["text", "text1", "text2", "label", "score", "a", '"', ",", "\t", "\n", "\n", "\r\n", " "]


@given(
    text=st.lists(st.sampled_from(_PIECES), max_size=25).map("".join),
    header=st.sampled_from(["", "text,label\n", "text1\ttext2\tlabel\n"]),
    ending=st.sampled_from(["tsv", "csv"]),
)
@settings(max_examples=200)
def test_any_file_is_read_or_refused_with_a_line_that_it_has(text: str, header: str, ending: str) -> None:
    text = header + text
    try:
        sentences, _ = read_texts(given_file(text, f"a.{ending}"), "mine")
    except CorpusError as error:
        problem = str(error)
    else:
        assert all(sentence.whole and sentence.tokens and sentence.labels for sentence in sentences)
        return
    found = re.match(rf"a\.{ending}(?: is empty|, line (\d+):)", problem)
    assert found is not None
    assert 1 <= int(found[1] or 1) <= text.count("\n") + 1


class TestFolder:
    def test_a_folder_without_test_file_tests_on_dev(self, tmp_path: Path) -> None:
        rows = "text\tlabel\n" + "".join(f"text {number}\t{number % 3}\n" for number in range(20))
        place = folder(tmp_path, {"train.tsv": rows, "validation.tsv": TEXTS}, "reviews")
        corpus = load(place)
        assert [task.name for task in corpus.tasks] == ["reviews"]
        assert (corpus.tasks[0].scheme, corpus.tasks[0].labels) == ("text", ("0", "1", "2"))
        assert (len(corpus.train), len(corpus.dev), len(corpus.test)) == (20, 0, 2)
        assert corpus.notes[0] == "There is no test file: validation.tsv is the test split."
        run = prepare(RunConfig.build(corpus=place, tasks=("reviews",), paradigm="stl"))
        assert (len(run.train), len(run.dev), len(run.test), run.dev_from_train) == (18, 2, 2, True)
        words = folder(tmp_path, {"train.conll": WORDS, "dev.conll": WORDS}, "words")
        read_words = load(words)
        assert (len(read_words.dev), len(read_words.test)) == (0, 1)
        assert "There is no test file: dev.conll is the test split." in read_words.notes

    def test_formats_of_texts_may_be_mixed_and_columns_left_out(self, tmp_path: Path) -> None:
        files = {
            "train.csv": "id,text,label\n1,a,x\n",
            "dev.jsonl": '{"text": "b", "label": "x", "_from": "c"}',
            "test.tsv": "text\tlabel\nc\tx\n",
        }
        corpus = load(folder(tmp_path, files))
        left_out, one_label = corpus.notes
        assert left_out == "Columns left out: id, _from."
        assert "one label (x)" in one_label
        assert [s.tokens for split in (corpus.train, corpus.dev, corpus.test) for s in split] == [
            ("a",),
            ("b",),
            ("c",),
        ]
        assert detect_columns(tmp_path / "mine") is None

    @pytest.mark.parametrize(
        ("files", "columns", "expected"),
        [
            ({"train.tsv": TEXTS}, None, "has no test file"),
            ({"train.tsv": TEXTS, "test.tsv": "EU\tO\n"}, None, "mixes CoNLL columns and texts in named"),
            ({"train.csv": "text,label\na,b\n", "test.conllu": ""}, None, "mixes CoNLL-U and texts in named"),
            ({"train.tsv": TEXTS, "dev.tsv": TEXTS}, ["tokens", "pos"], "leave out the column names"),
            ({"train.tsv": TEXTS, "test.tsv": "text\tmood\na\tb\n"}, None, "test.tsv, line 1: has no column"),
        ],
    )
    def test_refusals(
        self, tmp_path: Path, files: dict[str, str], columns: list[str] | None, expected: str
    ) -> None:
        with pytest.raises(CorpusError, match=expected):
            load(folder(tmp_path, files), columns)

    def test_a_tsv_file_of_words_stays_one(self, tmp_path: Path) -> None:
        place = folder(tmp_path, {"train.tsv": "a\tO\nb\tB-X\n", "test.tsv": "a\tO\n"})
        assert load(place).tasks[0].scheme == "iob2"

    def test_free_text_is_no_label(self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setattr(assembly, "MOST_LABELS", 1)
        place = folder(tmp_path, {"train.tsv": TEXTS, "test.tsv": TEXTS})
        with pytest.raises(CorpusError, match="the column mine has 2 different labels and the most is 1"):
            load(place)
        numbers = load(folder(tmp_path, {"train.tsv": PAIRS, "test.tsv": PAIRS}, "similar"))
        assert numbers.tasks[0].scale == (0, 4.2)

    def test_the_hash_is_of_both_texts_and_of_labels(self, tmp_path: Path) -> None:
        changes = (("A cat", "A cow"), ("Two men", "Two mice"), ("4.2", "4.3"), ("", ""))
        hashes = []
        for number, (old, new) in enumerate(changes):
            changed = PAIRS.replace(old, new)
            place = folder(tmp_path / str(number), {"train.tsv": PAIRS, "test.tsv": changed})
            hashes.append(read(place).text_hash)
        header, *rows = [line.split("\t") for line in PAIRS.splitlines()]
        text = "\n".join(json.dumps(dict(zip(header, row, strict=True))) for row in rows)
        as_json = folder(tmp_path / "json", dict.fromkeys(("train.jsonl", "test.jsonl"), text))
        assert read(as_json).text_hash == hashes[-1]
        assert len(set(hashes)) == 4


@pytest.fixture
def bases(tmp_path: Path) -> dict[str, str]:
    """Folders of texts, of pairs, and of words."""
    rows = "text\tlabel\n" + "".join(f"word{number} and more\t{number % 2}\n" for number in range(30))
    pairs = "".join(f"a{number}\tb {number}\t{number % 5}\n" for number in range(20))
    pairs = f"text1\ttext2\tscore\n{pairs}"
    return {
        "texts": folder(tmp_path, {"train.tsv": rows, "test.tsv": rows}, "reviews"),
        "pairs": folder(tmp_path, {"train.tsv": pairs, "dev.tsv": pairs, "test.tsv": pairs}, "similar"),
        "words": folder(tmp_path, {"train.conll": f"{WORDS}\n" * 20, "test.conll": WORDS}, "words"),
    }


class TestDerived:
    def test_joined_with_words_all_stay_what_they_are(self, bases: dict[str, str]) -> None:
        name = f"joined:{bases['texts']}+{bases['pairs']}+{bases['words']}"
        corpus = load(name)
        assert {task.name: task.scheme for task in corpus.tasks} == {
            "reviews": "text",
            "similar": "score",
            "ner": "iob2",
        }
        kinds = {(s.part, s.whole, s.second is not None) for s in corpus.train}
        assert kinds == {("reviews", True, False), ("similar", True, True), ("words", False, False)}
        config = RunConfig.build(corpus=name, tasks="reviews,similar,ner", paradigm="mtl", fraction=0.5)
        run = prepare(config)
        trained = Counter(sentence.part for sentence in run.train)
        assert trained == {"reviews": 13, "similar": 10, "words": 9}
        assert run.task("similar").scale is not None

    def test_samples_and_budgets_count_both_texts(self, bases: dict[str, str]) -> None:
        sample = load(f"{bases['pairs']}?train=7&test=3")
        assert (len(sample.train), len(sample.dev), len(sample.test)) == (7, 20, 3)
        apart = load(f"apart:{bases['texts']}+{bases['pairs']}?tokens=9")
        by_part = [s.part for s in apart.train]
        assert (by_part.count("reviews"), by_part.count("similar")) == (3, 3)

    def test_artificial_labels_are_for_words(self, bases: dict[str, str]) -> None:
        with pytest.raises(
            CorpusError, match="reviews labels whole texts, and artificial labels are drawn for"
        ):
            load(f"simulated:{bases['texts']}?tasks=2")
        made = load(f"simulated:{bases['texts']}+{bases['words']}?task=ner&tasks=2")
        assert [task.name for task in made.tasks] == ["ner", "sim-1", "sim-2"]


def test_codes_of_labels_are_no_names_in_common() -> None:
    def text(task: str, label: str) -> Sentence:
        return Sentence(("a",), {task: (label,)}, whole=True)

    codes = [text("mood", "0"), text("mood", "good"), text("same", "0"), text("same", "1")]
    assert overlaps(codes, ("mood", "same")) == (Overlap(("mood", "same"), 0.0, 0.0),)
    names = [*codes, text("same", "good")]
    assert overlaps(names, ("mood", "same")) == (Overlap(("mood", "same"), 0.0, 1.0),)
    words = [replace(sentence, whole=False) for sentence in codes]
    assert overlaps(words, ("mood", "same")) == (Overlap(("mood", "same"), 0.0, 0.5),)


def test_a_summary_shows_pairs_and_counts_their_labels(bases: dict[str, str]) -> None:
    summary = summarise(bases["pairs"])
    assert summary.splits["train"].sentences == 20
    assert summary.splits["train"].tokens == 60
    assert summary.counts["similar"]["test"] == {str(number): 4 for number in range(5)}
    assert len(summary.samples) == 3
    assert all(sample.second for sample in summary.samples)


def test_case_is_restored_in_each_text_of_a_pair(monkeypatch: pytest.MonkeyPatch) -> None:
    class Lower:
        def get_true_case_from_tokens(self, tokens: list[str]) -> list[str]:
            return [token.lower() for token in tokens]

    monkeypatch.setattr(preparation, "_truecaser", Lower)

    def pair(first: str, second: str) -> Sentence:
        return Sentence(tuple(first.split()), {"x": ("1",)}, whole=True, second=tuple(second.split()))

    given_pairs = [pair("A DOG !", "Two CATS"), pair("a dog", "TWO CATS 2")]
    assert preparation.truecase(given_pairs) == (pair("a dog !", "Two CATS"), pair("a dog", "two cats 2"))


class TestUploads:
    def test_texts_are_kept_with_the_split_of_their_name(self) -> None:
        path = save_upload({"my-train.csv": CSV, "my-valid.jsonl": JSONL}, "Mood, tone")
        assert sorted(file.name for file in path.iterdir()) == ["dev.jsonl", "train.csv"]
        assert list(uploads()) == [path]
        corpus = load(str(path))
        assert [task.name for task in corpus.tasks] == ["Mood-tone"]
        assert (len(corpus.train), len(corpus.dev), len(corpus.test)) == (1, 0, 1)

    @pytest.mark.parametrize(
        ("files", "expected"),
        [
            ({}, "The upload has no test file"),
            ({"test.csv": b"text,x\na,1\n"}, "test.csv, line 1: has no column label"),
            ({"train.csv": b"text,label\n,1\n", "test.csv": CSV}, "train.csv, line 2: text is empty"),
            ({"test.conll": b"a O\n"}, "The upload mixes CoNLL columns and texts"),
        ],
    )
    def test_what_cannot_be_read_is_not_kept(self, files: dict[str, bytes], expected: str) -> None:
        with pytest.raises(CorpusError) as raised:
            save_upload({"train.csv": CSV, **files}, "c")
        assert str(raised.value).startswith(expected)
        assert uploads() == {}


class TestAsked:
    """Texts that a run is asked about: labels are optional."""

    SCHEMES: ClassVar = {"ner": "iob2", "mood": "text", "same": "pair", "alike": "score"}

    def asked(self, content: str, name: str = "a.tsv", **others: str) -> AskedTexts:
        return read_asked(given_file(content, name), self.SCHEMES | others)

    def test_texts_alone(self) -> None:
        assert self.asked("text\tid\nEU lamb\t7\n") == AskedTexts(
            (Sentence(("EU", "lamb"), {}, whole=True),), ("id",)
        )

    def test_labels_are_gold_of_tasks_of_their_name_or_of_the_only_one_that_fits(self) -> None:
        named = self.asked("text1,text2,alike,same\na,b,4.5,\nc,d,,yes\n", "a.csv")
        assert [text.labels for text in named.texts] == [{"alike": ("4.5",)}, {"same": ("yes",)}]
        assert named.gold == ("alike", "same")
        assert self.asked("text1\ttext2\tlabel\tscore\na\tb\tno\t1\n").texts[0].labels == {
            "same": ("no",), "alike": ("1",),
        }  # fmt: skip
        two = self.asked("text\tlabel\na\tgood\n", stars="text")
        assert (two.gold, two.left_out) == ((), ("label",))
        # A task on words, or on pairs, has no gold label of a text.
        assert self.asked("text\tner\tsame\na\tO\tno\n").left_out == ("ner", "same")
        both = self.asked("text\tmood\tlabel\na\tgood\tbad\n")
        assert both.texts[0].labels == {"mood": ("good",)}

    @pytest.mark.parametrize(
        ("content", "said"),
        [
            ("word\tmood\na\tgood\n", "expected a column text, or text1 and text2"),
            ("text\tmood\tmood\na\tgood\tbad\n", "two columns are named 'mood'"),
            ("text1\ttext2\talike\na\tb\t?\n", "line 2: alike must be a number, not '?'"),
            ("text\tmood\n \tgood\n", "line 2: text is empty"),
            ("text\tmood\n", "no text follows"),
        ],
    )
    def test_bad_input(self, content: str, said: str) -> None:
        with pytest.raises(CorpusError, match=re.escape(said)):
            self.asked(content)
