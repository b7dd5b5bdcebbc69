"""Files of texts and pairs: what the strict readers accept, and how they refuse the rest."""

from __future__ import annotations

import csv
import io
import json
import re
from pathlib import Path
from tempfile import TemporaryDirectory

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from core.corpora import load
from core.corpora.readers.lines import GivenFile
from core.corpora.readers.texts import AskedTexts, holds_texts, read_asked, read_texts
from core.corpora.types import Sentence
from core.errors import CorpusError
from tests.making import corpus_folder

TEXTS = "text\tlabel\nA warm , funny film .\t3\nDull\t0\n"
PAIRS = "text1\ttext2\tscore\nA dog runs .\tA dog\t4.2\nA cat\tTwo men talk\t0\n"
_JSON = '{"text": "a", "label": 1}'


def given_file(content: str | bytes, name: str = "train.tsv") -> GivenFile:
    return GivenFile(name, content.encode() if isinstance(content, str) else content)


class TestFiles:
    def test_a_text_is_what_stands_between_spaces(self) -> None:
        sentences, columns = read_texts(given_file(TEXTS), "reviews")
        assert sentences == (
            Sentence(("A", "warm", ",", "funny", "film", "."), {"reviews": ("3",)}, whole=True),
            Sentence(("Dull",), {"reviews": ("0",)}, whole=True),
        )
        assert (columns.schemes, columns.left_out_shown) == ({"label": "text"}, [])
        assert sentences.items.tolist() == [1, 1]

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

    def test_other_columns_are_tasks(self) -> None:
        header = "id\ttext1\ttext2\tlabel\tkind\tlike_score\t_note\tidx\t\n"
        (pair,), columns = read_texts(given_file(header + "7\ta\tb\tyes\t2\t-1.5e2\tx\t8\t0\n"), "mine")
        assert pair.labels == {"mine": ("yes",), "kind": ("2",), "like_score": ("-1.5e2",)}
        assert columns.schemes == {"label": "pair", "kind": "pair", "like_score": "score"}
        assert columns.left_out_shown == ["id", "_note", "idx", ""]

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
                r"line 3: expected 2 columns \(text, label\) separated by tabs",
            ),
            ("a.tsv", "text\tlabel\na\t1\n\nb\t2\n", "line 3: is empty; delete it"),
            ("a.tsv", "text\tlabel\na\t1\n \t2\n", "line 3: text is empty"),
            ("a.tsv", "text1\ttext2\tlabel\na\t\t2\n", "line 2: text2 is empty"),
            ("a.tsv", "text\tlabel\n", "line 1: names the columns, and no text follows"),
            ("a.tsv", "text\tlabel\na\t\u00e9\n".encode("latin-1"), "line 2: byte 0xe9 at position 3 is not"),
            ("a.tsv", f"text\tlabel\n{'a ' * 50_001}\t1\n", "line 2: has 100,004 characters and the most is"),
            ("a.tsv", "text\tlabel\na\0b\t1\n", "line 2: text holds a zero byte"),
            (
                "a.tsv",
                "phrase\tlabel\na\t1\n",
                "line 1: expected a column text or sentence, .*are phrase, label",
            ),
            ("a.tsv", "text1\tlabel\na\t1\n", "line 1: expected a column text or sentence"),
            (
                "a.tsv",
                "text\ttext1\ttext2\tlabel\na\tb\tc\t1\n",
                "line 1: expected a column text or sentence",
            ),
            ("a.tsv", "text\tid\na\t1\n", "line 1: expected a column of labels beside text, such as label"),
            ("a.tsv", "text\tx\tx\na\t1\t1\n", "line 1: two columns are named 'x'"),
            ("a.tsv", "text\tx,y\na\t1\n", "line 1: the name 'x,y' of a column has a comma"),
            ("a.tsv", "text\tscore\na\t1\n", "line 1: the column score would hold numbers of pairs"),
            ("a.tsv", "text1\ttext2\tscore\na\tb\tnan\n", "line 2: score must be a number, not 'nan'"),
            ("a.tsv", "text1\ttext2\tscore\na\tb\t1e999\n", "line 2: score must be a number, not '1e999'"),
            ("a.tsv", "text1\ttext2\tx_score\na\tb\t1_0\n", "line 2: x_score must be a number, not '1_0'"),
            (
                "a.tsv",
                "text1\ttext2\tscore\na\tb\t-1000001\n",
                "score must lie between -1,000,000 .*'-1000001'",
            ),
            ("a.csv", 'text,label\n"a\nb",1\n"c,2\nd,3\n', "line 4: a quoted field is not closed"),
            ("a.csv", 'text,label\n"a\nb",1\n"c" d,2\n', "line 4: a quoted field is not closed, or goes on"),
            ("a.csv", 'text,label\n"a\n\nb",1\nc\n', "line 5: expected 2 columns"),
            ("a.csv", 'text,label\n"' + ("a" * 40_000 + "\n") * 3 + '",1\n', "line 2: text has 120,003 char"),
            ("a.csv", 'text,label\n"' + ("a" * 40_000 + "\n") * 4 + '",1\n', "line 2: a quoted field is not"),
            ("a.csv", 'text,label\na,"1\n2"\n', "line 2: label holds a line end"),
            ("a.csv", "text,label\na\rb,1\n", "line 2: has a carriage return inside"),
            ("a.csv", "text;label\na;1\n", "line 1: expected a column text or sentence, .*are text;label"),
            ("a.jsonl", f"{_JSON}\n[1]\n", "line 2: is no JSON object; expected one"),
            ("a.jsonl", f'{_JSON}\n{{"text": "b"\n', r"line 2: is no JSON \(Expecting ',' del"),
            ("a.jsonl", f"{_JSON}\n\n{{}}\n", r"line 2: is no JSON \(Expecting value\)"),
            ("a.jsonl", '{"text": "a", "text": "b", "label": 1}', r"is no JSON \(a key stands twice\)"),
            ("a.jsonl", '{"text": "a", "label": NaN}', r"line 1: is no JSON \(NaN is no JSON\)"),
            ("a.jsonl", "[" * 50_000, "line 1: is no JSON"),
            ("a.jsonl", '{"text": "a", "label": ' + "1" * 9000 + "}", "line 1: is no JSON"),
            ("a.jsonl", f'{_JSON}\n{{"text": "a"}}', "line 2: has no 'label'; every line"),
            ("a.jsonl", f'{_JSON}\n{{"text": "a", "label": 1, "x": 2}}', "line 2: has also 'x'; every"),
            ("a.jsonl", '{"text": 5, "label": 1}', "line 1: text is not a text"),
            ("a.jsonl", '{"text": "\\ud800", "label": 1}', "line 1: text holds half a surrogate pair"),
            ("a.jsonl", '{"text1": "a", "text2": "b", "score": true}', "must be a number, not 'true'"),
            ("a.jsonl", '{"text1": "a", "text2": "b", "score": 1e309}', "must be a number, not '1e309'"),
        ],
    )
    def test_refusals(self, name: str, content: str | bytes, expected: str) -> None:
        with pytest.raises(CorpusError, match=expected) as raised:
            read_texts(given_file(content, name), "mine")
        assert str(raised.value).startswith(name)
        assert "\n" not in str(raised.value)
        assert len(str(raised.value)) < 300

    def test_all_splits_have_the_columns_of_training(self) -> None:
        columns = read_texts(given_file(TEXTS), "mine")[1]
        for content, expected in (
            ("text\tx\na\t1\n", "line 1: has no column label, which the training file has"),
            (PAIRS, "line 1: has no column text,"),
            ("text\tlabel\tx\na\t1\t2\n", "has a column x, which the training file has not; begin its name"),
        ):
            with pytest.raises(CorpusError, match=expected):
                read_texts(given_file(content), "mine", columns)
        (sentence,), _ = read_texts(given_file("label\t_x\ttext\n1\t2\ta\n"), "mine", columns)
        assert sentence.labels == {"mine": ("1",)}


# All that a text may hold but its line ends: those of TSV are the file's.
texts = st.text(st.characters(exclude_categories=["Cs"], exclude_characters="\0"), max_size=30).filter(
    lambda text: bool(text.split())
)
labels = st.text(st.characters(exclude_categories=["Cs", "Cc"]), min_size=1, max_size=8).filter(
    lambda text: bool(text.strip())
)
rows = st.lists(st.tuples(texts, texts, labels), min_size=1, max_size=6)


def _written(rows: list[tuple[str, str, str]], ending: str) -> str:
    """These pairs as a file of that kind."""
    names = ("text1", "text2", "label")
    if ending == ".csv":
        made = io.StringIO(newline="")
        csv.writer(made).writerows([names, *rows])
        return made.getvalue()
    if ending == ".jsonl":
        pairs = (dict(zip(names, row, strict=True)) for row in rows)
        return "".join(json.dumps(pair, ensure_ascii=False) + "\n" for pair in pairs)
    return "".join("\t".join(" ".join(field.split()) for field in row) + "\n" for row in [names, *rows])


@given(rows=rows, ending=st.sampled_from([".csv", ".jsonl", ".tsv"]))
@example(rows=[('a "quoted, text"\r\n', "\x85b\u2028c", '"')], ending=".csv")
@settings(max_examples=200)
def test_what_is_written_is_read_back(rows: list[tuple[str, str, str]], ending: str) -> None:
    with TemporaryDirectory() as place:
        path = Path(place) / f"train{ending}"
        path.write_bytes(_written(rows, ending).encode())
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
        # A blank label is none: it is counted, and its text has no label.
        assert all(sentence.whole and sentence.tokens for sentence in sentences)
        return
    if "no row of its train split has a label" in problem:
        return
    place = re.match(rf"a\.{ending}(?: is empty|, line (\d+):)", problem)
    assert place is not None
    assert 1 <= int(place[1] or 1) <= text.count("\n") + 1


def asked(content: str, name: str = "a.tsv", **others: str) -> AskedTexts:
    """Texts that a run of four tasks is asked about."""
    schemes = {"ner": "iob2", "mood": "text", "same": "pair", "alike": "score"}
    return read_asked(given_file(content, name), schemes | others)


def test_asked_texts_have_gold_of_tasks_of_their_name_or_of_the_only_one_that_fits() -> None:
    assert asked("text\tid\nEU lamb\t7\n") == AskedTexts((Sentence(("EU", "lamb"), {}, whole=True),), ("id",))
    pairs = asked("text1,text2,alike,same\na,b,4.5,\nc,d,,yes\n", "a.csv")
    assert [text.labels for text in pairs.texts] == [{"alike": ("4.5",)}, {"same": ("yes",)}]
    assert pairs.gold == ("alike", "same")
    by_kind = asked("text1\ttext2\tlabel\tscore\na\tb\tno\t1\n")
    assert by_kind.texts[0].labels == {"same": ("no",), "alike": ("1",)}
    two = asked("text\tlabel\na\tgood\n", stars="text")
    assert (two.gold, two.left_out) == ((), ("label",))
    # A task on words, or on pairs, has no gold label of a text.
    assert asked("text\tner\tsame\na\tO\tno\n").left_out == ("ner", "same")
    assert asked("text\tmood\tlabel\na\tgood\tbad\n").texts[0].labels == {"mood": ("good",)}


@pytest.mark.parametrize(
    ("content", "problem"),
    [
        ("word\tmood\na\tgood\n", "expected a column text or sentence"),
        ("text\tmood\tmood\na\tgood\tbad\n", "two columns are named 'mood'"),
        ("text1\ttext2\talike\na\tb\t?\n", r"line 2: alike must be a number, not '\?'"),
        ("text\tmood\n \tgood\n", "line 2: text is empty"),
        ("text\tmood\n", "no text follows"),
    ],
)
def test_asked_texts_that_cannot_be_read_are_refused(content: str, problem: str) -> None:
    with pytest.raises(CorpusError, match=problem):
        asked(content)


def _table(header: str, row: str, count: int = 30) -> str:
    """A CSV file of that many rows; `{}` is the number of the row, `{:?}` of its class, 0 or 1."""
    rows = (row.replace("{}", str(number)).replace("{:?}", str(number % 2)) for number in range(count))
    return "\n".join((header, *rows)) + "\n"


def _prodigy(*answers: str) -> str:
    rows = ({"text": "Ada ran", "label": f"l{len(answer) % 2}", "answer": answer} for answer in answers)
    return "".join(json.dumps(row) + "\n" for row in rows)


_DECIMALS = "its labels are decimal numbers, each of which is learned as a class"
_RARE = "(its values hardly repeat)"
# Each case: the files, the kind of each task, and the part of a note; "" where no note is expected.
OUTSIDE: dict[str, tuple[str, str, dict[str, str], str]] = {
    "Score": (
        "csv", _table("sentence1,sentence2,Score", "a {},b,{}.5"), {"Score": "score"}, "",
    ),
    "like_SCORE": (
        "csv", _table("sentence1,sentence2,like_SCORE", "a {},b,{}.5"), {"like_SCORE": "score"}, "",
    ),
    "stars of one text in Score": (
        "csv", _table("Text,Score", "a {},{:?}"), {"Score": "text"}, "",
    ),
    "decimals of pairs": (
        "csv", _table("sentence1,sentence2,similarity", "a {},b,{:?}.5"), {"similarity": "pair"},
        f"similarity: {_DECIMALS}; to learn numbers, name the column score.",
    ),
    "decimals of texts": (
        "csv", _table("text,label", "a {},{:?}.5"), {"mine": "text"},
        f"mine: {_DECIMALS}; numbers are learned of pairs of texts alone.",
    ),
    "classes written as 1.0": (
        "csv", _table("text,label", "a {},{:?}.0"), {"mine": "text"}, "",
    ),
    "pandas' index": (
        "csv", _table("Unnamed: 0,Unnamed: 0.1,text,label", "{},{},a {},{:?}"), {"mine": "text"},
        "Columns left out: Unnamed: 0, Unnamed: 0.1.",
    ),
    "identifiers in camel case": (
        "csv", _table("captionID,userId,text,label", "{},{},a {},{:?}"), {"mine": "text"},
        "Columns left out: captionID, userId.",
    ),
    "titles and dates": (
        "csv", _table("title,text,label,author,date", "T {},a {},{:?},Ann {:?},2020-01-{}"),
        {"mine": "text", "author": "text"},
        f"Columns left out: title {_RARE}, date {_RARE}.",
    ),
    "a column of labels is kept": (
        "csv", _table("text,intent,domain", "a {},i{},d{:?}"), {"intent": "text", "domain": "text"},
        "intent: has 30 labels for 60 texts, too few of each to learn; leave the task out.",
    ),
    "a lone column is kept": (
        "csv", _table("text,kind", "a {},i{}"), {"kind": "text"},
        "kind: has 30 labels for 60 texts, too few of each to learn",
    ),
    "SNLI": (
        "tsv", "gold_label\tsentence1\tsentence2\tlabel1\tlabel2\n"
        "neutral\ta b\tc\tneutral\t\n-\ta b\tc\tneutral\tyes\nyes\ta b\tc\tyes\t\n",
        {"gold_label": "pair"},
        "gold_label: no label: 1 in train, 1 in test (-).",
    ),
    "the labels + and -": (
        "tsv", "text\tlabel\na b\t+\nc\t-\nd\t0\n", {"mine": "text"}, "",
    ),
    "Prodigy's answers": (
        "jsonl", _prodigy("accept", "reject", "accept", "ignore"), {"mine": "text"},
        "Columns left out: answer (with 2 rows of train.jsonl that are not accepted), "
        "answer (with 2 rows of test.jsonl that are not accepted).",
    ),
    "answers to questions": (
        "jsonl", _prodigy("yes", "no"), {"mine": "text", "answer": "text"}, "",
    ),
}  # fmt: skip


@pytest.mark.parametrize("case", OUTSIDE)
def test_columns_that_others_write(case: str, tmp_path: Path) -> None:
    ending, content, schemes, note = OUTSIDE[case]
    files = {f"{split}.{ending}": content for split in ("train", "test")}
    corpus = load(corpus_folder(tmp_path / "mine", files))
    assert {task.name: task.scheme for task in corpus.tasks} == schemes
    assert any(shown.startswith(note) for shown in corpus.notes) if note else len(corpus.notes) == 1


def test_rows_that_are_not_accepted_give_no_label(tmp_path: Path) -> None:
    content = _prodigy("accept", "reject", "accept", "ignore")
    sentences, columns = read_texts(given_file(content, "train.jsonl"), "mine")
    assert (len(sentences), list(columns.schemes)) == (2, ["label"])
    assert [list(text.labels) for text in asked(content, "a.jsonl").texts] == [["mood"], [], ["mood"], []]
    with pytest.raises(CorpusError, match=r"train\.jsonl: none of 2 rows has the answer accept"):
        read_texts(given_file(_prodigy("reject", "ignore"), "train.jsonl"), "mine")
    with pytest.raises(CorpusError, match="line 2: answer is 'no'; expected accept, reject or ignore"):
        read_texts(given_file(_prodigy("accept", "no"), "train.jsonl"), "mine")


def test_a_split_without_labels_of_a_task_is_noted(tmp_path: Path) -> None:
    lists = {
        "train.jsonl": '{"tokens": ["Ada"], "ner_tags": ["B-PER"], "kind_tags": ["x"]}\n',
        "test.jsonl": '{"tokens": ["Bo"], "ner_tags": ["B-PER"], "kind_tags": null}\n',
    }
    notes = load(corpus_folder(tmp_path / "mine", lists)).notes
    wanted = (
        "kind: no sentence of the test split is annotated for it; leave the task out or add such sentences."
    )
    assert [note for note in notes if "annotated" in note] == [wanted]
