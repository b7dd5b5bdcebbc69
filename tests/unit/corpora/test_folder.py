"""Folders of words, texts and pairs: split files, column names, uploads, summaries and the hash of a text."""

from __future__ import annotations

import json
import os
from pathlib import Path

import pytest

from core.config import RunConfig
from core.corpora import assembly, detect_columns, load, prepare, save_upload, summarise
from core.corpora.assembly import TEXT_VERSION, older_text_hash
from core.corpora.catalogue.uploads import delete_upload, uploads
from core.corpora.loading import read, text_known
from core.corpora.readers.files import split_of
from core.errors import CorpusError
from core.paths import upload_dir
from tests.making import conll_folder, corpus_folder

ROWS = "EU NNP B-NP B-ORG\nrejects VBZ B-VP O\nGerman JJ B-NP B-MISC\nlamb NN I-NP O\n. . O O\n"
WORDS = "EU B-ORG\nrejects O\n"
TEXTS = "text\tlabel\nA warm , funny film .\t3\nDull\t0\n"
PAIRS = "text1\ttext2\tscore\nA dog runs .\tA dog\t4.2\nA cat\tTwo men talk\t0\n"
CSV = "text,label\na,1\n"


def _conllu(*words: str) -> str:
    """A sentence; each word `form feats deprel`."""
    rows = [word.split() for word in words]
    lines = (
        f"{n}\t{form}\t_\tX\tY\t{feats}\t0\t{rel}\t_\t_\n" for n, (form, feats, rel) in enumerate(rows, 1)
    )
    return "".join(lines) + "\n"


FEATS = _conllu("a _ det", "b Number=Sing nsubj:pass", "c Person=3 root") + _conllu("d _ root")
BOTH = {"train.conll": ROWS, "test.conll": ROWS}


def sizes(path: str | Path) -> tuple[int, int, int]:
    corpus = load(str(path))
    return len(corpus.train), len(corpus.dev), len(corpus.test)


@pytest.mark.parametrize(
    ("file_names", "split"),
    [
        ("train.conll Train.TXT eng.train", "train"),
        ("dev.tsv validation.iob2 valid.bio eng.testa", "dev"),
        ("eng.testb test en_lines-ud-test.conllu", "test"),
        ("README.md train.pdf train-test.conll .train.conll constraint.txt latest.conll", None),
    ],
)
def test_file_names_tell_their_split(file_names: str, split: str | None) -> None:
    assert {split_of(name) for name in file_names.split()} == {split}


def test_columns_are_as_named_or_else_by_content(tmp_path: Path) -> None:
    three = corpus_folder(tmp_path / "mine", {"train.txt": ROWS, "testa.conll": ROWS, "testb.conll": ROWS})
    corpus = load(three, ["tokens", "pos", "_", "ner"])
    assert (corpus.name, read(three, ["tokens", "pos", "_", "ner"]).notes) == ("mine", ())
    assert [(task.name, task.scheme) for task in corpus.tasks] == [("pos", "plain"), ("ner", "iob2")]
    assert len(corpus.train) == len(corpus.dev) == len(corpus.test) == 1
    guessed = load(corpus_folder(tmp_path / "two", BOTH))
    assert ([task.name for task in guessed.tasks], guessed.dev) == (["pos", "chunk", "ner"], ())
    assert guessed.notes[:-1] == ("Columns were named by what is in them: tokens, pos, chunk, ner.",)


def test_columns_and_features_of_conllu_are_tasks(tmp_path: Path) -> None:
    files = {"train.conllu": FEATS, "test.conllu": FEATS + _conllu("e Mood=Ind root")}
    place = corpus_folder(tmp_path / "ud", files)
    corpus = load(place)
    names = ["upos", "xpos", "deprel", "feats:Number", "feats:Person"]
    assert [task.name for task in corpus.tasks] == names
    assert corpus.train[0].labels["feats:Number"] == ("_", "Sing", "_")
    assert corpus.train[0].labels["feats:Person"] == ("_", "_", "3")
    assert corpus.train[0].labels["deprel"] == ("det", "nsubj:pass", "root")
    # Of a treebank with features every sentence is annotated for them, also one whose FEATS are all `_`.
    assert corpus.train[1].labels["feats:Number"] == corpus.test[2].labels["feats:Number"] == ("_",)
    assert detect_columns(place) is None
    with pytest.raises(CorpusError, match=r"no task 'lemma'.*CoNLL columns"):
        prepare(RunConfig.build(corpus=place, tasks=("lemma",), paradigm="stl"))
    # A split without any feature is not annotated for them.
    (Path(place) / "test.conllu").write_text(_conllu("e _ root"))
    assert set(load(place).test[0].labels) == {"upos", "xpos", "deprel"}


def test_names_are_of_the_catalogue_then_folders_here_then_of_mrnlab_data(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in ("demo", "mine"):
        corpus_folder(tmp_path / name, BOTH)
    with pytest.raises(CorpusError, match=r"no corpus 'mine': .* one of demo, demo-pos-a"):
        load("mine")
    monkeypatch.setenv("MRNLAB_DATA", str(tmp_path))
    assert len(load("mine").train) == 1
    monkeypatch.chdir(tmp_path)
    assert len(load("demo", ["tokens", "pos", "chunk", "ner"]).train) == 1200
    assert len(load("./demo").train) == 1
    with pytest.raises(CorpusError, match="demo knows its own columns"):
        load("demo", ["tokens", "pos"])
    with pytest.raises(CorpusError, match="is a file; name the folder"):
        load("mine/train.conll")


def test_a_folder_without_test_file_tests_on_dev(tmp_path: Path) -> None:
    rows = "text\tlabel\n" + "".join(f"text {number}\t{number % 3}\n" for number in range(20))
    place = corpus_folder(tmp_path / "reviews", {"train.tsv": rows, "validation.tsv": TEXTS})
    corpus = load(place)
    assert [(task.name, task.scheme, task.labels) for task in corpus.tasks] == [
        ("reviews", "text", ("0", "1", "2"))
    ]
    assert sizes(place) == (20, 0, 2)
    assert corpus.notes[0] == "There is no test file: validation.tsv is the test split."
    run = prepare(RunConfig.build(corpus=place, tasks=("reviews",), paradigm="stl"))
    assert (len(run.train), len(run.dev), len(run.test), run.dev_from_train) == (18, 2, 2, True)
    assert sizes(corpus_folder(tmp_path / "words", {"train.conll": WORDS, "dev.conll": WORDS})) == (1, 0, 1)


def test_formats_of_texts_may_be_mixed_and_columns_left_out(tmp_path: Path) -> None:
    files = {
        "train.csv": "id,text,label\n1,a,x\n",
        "dev.jsonl": '{"text": "b", "label": "x", "_from": "c"}',
        "test.tsv": "text\tlabel\nc\tx\n",
    }
    place = corpus_folder(tmp_path / "mine", files)
    corpus = load(place)
    left_out, one_label = corpus.notes
    assert left_out == "Columns left out: id, _from."
    assert "one label (x)" in one_label
    tokens = [sentence.tokens for split in (corpus.train, corpus.dev, corpus.test) for sentence in split]
    assert tokens == [("a",), ("b",), ("c",)]
    assert detect_columns(place) is None
    words = corpus_folder(tmp_path / "words", {"train.tsv": "a\tO\nb\tB-X\n", "test.tsv": "a\tO\n"})
    assert load(words).tasks[0].scheme == "iob2"  # a TSV file without names of columns


@pytest.mark.parametrize(
    ("files", "columns", "expected"),
    [
        ({"train.conll": ROWS}, None, "has no test file; expected test.conll"),
        ({}, None, "has no train file; expected train.conll"),
        (BOTH | {"train.conll": ""}, None, "train.conll is empty; it must hold"),
        (BOTH | {"train.txt": ROWS}, None, "both train.conll and train.txt could be the train split"),
        ({"train.conllu": FEATS, "test.conll": ROWS}, None, "mixes CoNLL columns and CoNLL-U; all"),
        ({"train.tsv": TEXTS, "test.tsv": "EU\tO\n"}, None, "mixes CoNLL columns and texts in named"),
        ({"train.csv": CSV, "test.conllu": ""}, None, "mixes CoNLL-U and texts in named"),
        ({"train.conllu": FEATS, "test.conllu": FEATS}, "tokens pos", "leave out the column names"),
        ({"train.tsv": TEXTS, "dev.tsv": TEXTS}, "tokens pos", "leave out the column names"),
        (BOTH, "word pos", "must be named 'tokens'"),
        (BOTH, "tokens pos pos", "Two columns are named 'pos'"),
        (BOTH, "tokens pos", "line 1: expected 2 columns"),
        (BOTH | {"test.conll": "a NN O\n"}, None, "test.conll, line 1: expected 4 columns"),
        ({"train.conll": "one\n", "test.conll": "one\n"}, None, "line 1: has one column"),
        ({"train.tsv": TEXTS, "test.tsv": "text\tmood\na\tb\n"}, None, "test.tsv, line 1: has no column"),
    ],
)
def test_refused_folders(tmp_path: Path, files: dict[str, str], columns: str | None, expected: str) -> None:
    with pytest.raises(CorpusError) as raised:
        load(corpus_folder(tmp_path / "mine", files), columns and columns.split())
    assert expected in str(raised.value)
    assert "\n" not in str(raised.value)


def test_a_column_of_free_text_is_no_label(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(assembly, "MOST_LABELS", 1)
    with pytest.raises(CorpusError, match="the column mine has 2 different labels and the most is 1"):
        load(corpus_folder(tmp_path / "mine", {"train.tsv": TEXTS, "test.tsv": TEXTS}))
    numbers = load(corpus_folder(tmp_path / "similar", {"train.tsv": PAIRS, "test.tsv": PAIRS}))
    assert numbers.tasks[0].scale == (0, 4.2)


@pytest.mark.parametrize(
    ("rows", "names"),
    [
        (ROWS, "tokens pos chunk ner"),
        ("a\tO\nb\tO\n", "tokens ner"),
        ("1 a NN\n2 b VB\n\n1 c NN\n", "_id tokens pos"),
        ("B-ACTOR tom\nI-ACTOR hanks\nO films\nO of\n", "ner tokens"),
        ("a B-PER B-LOC\nb O O\nc O O\n", "tokens ner ner2"),
        ("a I-NP I-PER\nb I-VP O\nc I-NP O\n", "tokens chunk ner"),
        ("a I-.. X\nb '' Y\nc ( X\n", "tokens pos pos2"),
        (
            "".join(f"W{n * 7 % 600} w{n // 2} {'NN' if n % 2 else 'VB'}\n" for n in range(600)),
            "tokens _other pos",
        ),
        (
            "d-1 0-3 Mara PER _ -\nd-1 4-9 Quill PER _ -\nd-1 10-14 left O _ -\n",
            "_id _id2 tokens ner _empty _empty2",
        ),
        ("(S(NP* a (PER*)\n*) b *\n(VP*)) c *\n", "_parse tokens ner"),
        ("a O 0\nb GOOD 1\nc O 0\n", "tokens ner labels"),
    ],
)
def test_columns_are_named_by_content(tmp_path: Path, rows: str, names: str) -> None:
    path = tmp_path / "train.conll"
    path.write_text(rows)
    proposal = detect_columns(path)
    assert proposal is not None
    assert proposal.columns == tuple(names.split())
    assert proposal.sample[0] == tuple(rows.split("\n")[0].split())


@pytest.mark.parametrize(
    ("files", "name", "slug", "kept"),
    [
        (
            {"my-train.txt": ROWS, "my-valid.txt": ROWS, "my-test.TXT": ROWS},
            "My corpus",
            "My-corpus-",
            {"train.txt", "dev.txt", "test.txt"},
        ),
        (
            {"my-train.csv": CSV, "my-valid.jsonl": '{"text": "b", "label": 1}\n'},
            "Mood, tone",
            "Mood-tone-",
            {"train.csv", "dev.jsonl"},
        ),
    ],
)
def test_an_upload_is_kept_with_the_splits_of_its_names(
    files: dict[str, str], name: str, slug: str, kept: set[str]
) -> None:
    path = save_upload({file: text.encode() for file, text in files.items()}, name)
    assert path.parent == upload_dir()
    assert path.name.startswith(slug)
    assert {file.name for file in path.iterdir()} == kept
    assert list(uploads()) == [path]
    assert sizes(path) == ((1, 1, 1) if len(kept) == 3 else (1, 0, 1))


@pytest.mark.parametrize(
    ("files", "expected"),
    [
        (BOTH | {"notes.txt": ROWS}, "Cannot tell whether 'notes.txt' is"),
        (BOTH | {"train.exe": ROWS}, "Cannot tell whether 'train.exe' is"),
        (BOTH | {"a/train.conll": ROWS}, "The upload: both train.conll and train.conll could be"),
        ({"train.conll": ROWS}, "The upload has no test file"),
        ({"train.conllu": FEATS, "test.conll": ROWS}, "The upload mixes CoNLL columns and CoNLL-U"),
        ({"train.csv": CSV, "test.conll": "a O\n"}, "The upload mixes CoNLL columns and texts"),
        (BOTH | {"test.conll": "a XX\n"}, "test.conll, line 1: expected 4 columns"),
        ({"my.train": "a\nb\n", "my.test": ROWS}, "my.train, line 1: has one column"),
        (BOTH | {"test.conll": ""}, "test.conll is empty"),
        (BOTH | {"train.conll": "\xff"}, "train.conll, line 1: byte 0xff"),
        ({"train.csv": CSV, "test.csv": "text,x\na,1\n"}, "test.csv, line 1: has no column label"),
        ({"train.csv": "text,label\n,1\n", "test.csv": CSV}, "train.csv, line 2: text is empty"),
    ],
)
def test_an_upload_that_cannot_be_read_is_not_kept(files: dict[str, str], expected: str) -> None:
    with pytest.raises(CorpusError) as raised:
        save_upload({name: text.encode("latin-1") for name, text in files.items()}, "c")
    assert str(raised.value).startswith(expected)
    assert list(upload_dir().iterdir()) == []


def test_uploads_are_listed_newest_first_and_deleted(tmp_path: Path) -> None:
    (upload_dir() / "mappings").mkdir()
    files = {name: text.encode() for name, text in BOTH.items()}
    tests = [(ROWS * times).encode() for times in (1, 2, 3)]
    first, second, third = (save_upload(files | {"test.conll": test}, "one") for test in tests)
    assert save_upload(files | {"test.conll": tests[0]}, "two") == first  # the same is kept once
    os.utime(first, (1, 1))
    os.utime(third, (2, 2))
    assert list(uploads()) == [second, third, first]
    delete_upload(second)
    assert list(uploads()) == [third, first]
    outside = upload_dir() / ".." / "uploads" / first.name
    for path in (second, tmp_path, upload_dir() / "mappings", outside):
        with pytest.raises(CorpusError, match="is not an uploaded corpus"):
            delete_upload(path)
    assert first.is_dir()


def test_a_summary_is_made_again_only_when_a_file_changes(tmp_path: Path) -> None:
    files = {"train.conll": f"{ROWS}\n{ROWS}", "test.conll": "a XX B-NP B-PER\n"}
    path = corpus_folder(tmp_path / "mine", files)
    summary = summarise(path)
    counted = {split: (size.sentences, size.tokens) for split, size in summary.splits.items()}
    assert counted == {"train": (2, 10), "test": (1, 1)}
    ner = summary.tasks[2]
    assert (ner.name, ner.scheme, ner.unseen) == ("ner", "iob2", {"test": ("B-PER",)})
    assert summary.counts["ner"]["train"] == {"O": 6, "B-MISC": 2, "B-ORG": 2}
    assert summary.samples[0].tokens == ("EU", "rejects", "German", "lamb", ".")
    assert any(note.startswith("pos: training never shows") for note in summary.notes)
    assert summarise(path) is summary
    (tmp_path / "mine" / "train.conll").write_text(ROWS)
    os.utime(tmp_path / "mine" / "train.conll", ns=(1, 1))
    assert summarise(path).splits["train"].sentences == 1


def test_a_summary_shows_pairs_and_counts_their_labels(tmp_path: Path) -> None:
    summary = summarise(corpus_folder(tmp_path / "similar", dict.fromkeys(("train.tsv", "test.tsv"), PAIRS)))
    assert (summary.splits["train"].sentences, summary.splits["train"].tokens) == (2, 11)
    assert summary.counts["similar"]["test"] == {"4.2": 1, "0": 1}
    assert [sample.second for sample in summary.samples] == [("A", "dog"), ("Two", "men", "talk")]


class TestTextHash:
    """The hash tells whether two runs saw the same words with the same labels."""

    def test_of_words_it_is_of_the_text_and_not_of_the_files(self, tmp_path: Path) -> None:
        rows = "a DT O\nb NN B-X\n\nc DT O\n\n"
        columns = ("tokens", "pos", "ner")
        tabs = {"train.txt": rows.replace(" ", "\t"), "test.txt": rows}
        first = corpus_folder(tmp_path / "first", {"train.conll": rows, "test.conll": rows})
        before = read(first, columns).text_hash
        assert read(corpus_folder(tmp_path / "tabs", tabs), columns).text_hash == before != ""
        changes = (
            "a DT O\nb NN B-Y\n\nc DT O\n\n",  # a label
            "a DT O\nB NN B-X\n\nc DT O\n\n",  # a word
            "a DT O\nb NN B-X\nc DT O\n\n",  # where a sentence ends
            "c DT O\n\na DT O\nb NN B-X\n\n",  # their order, which draws depend on
        )
        for number, changed in enumerate(changes, start=1):
            (Path(first) / "test.conll").write_text(changed)
            os.utime(Path(first) / "test.conll", ns=(1, number))
            assert read(first, columns).text_hash != before

    def test_of_pairs_it_is_of_both_texts_and_of_labels(self, tmp_path: Path) -> None:
        hashes: list[str] = []
        for old, new in (("A cat", "A cow"), ("Two men", "Two mice"), ("4.2", "4.3"), ("", "")):
            files = {"train.tsv": PAIRS, "test.tsv": PAIRS.replace(old, new)}
            hashes.append(read(corpus_folder(tmp_path / str(len(hashes)) / "mine", files)).text_hash)
        header, *rows = [line.split("\t") for line in PAIRS.splitlines()]
        text = "\n".join(json.dumps(dict(zip(header, row, strict=True))) for row in rows)
        as_json = corpus_folder(
            tmp_path / "json" / "mine", dict.fromkeys(("train.jsonl", "test.jsonl"), text)
        )
        assert read(as_json).text_hash == hashes[-1]
        assert len(set(hashes)) == 4

    def test_of_conllu_it_has_all_labels(self, tmp_path: Path) -> None:
        """That of earlier versions left out `deprel` and features."""

        def hashes(number: int, old: str = "", new: str = "") -> tuple[str, str]:
            files = dict.fromkeys(("train.conllu", "test.conllu"), FEATS.replace(old, new))
            corpus = load(corpus_folder(tmp_path / str(number) / "ud", files))
            return corpus.text_hash, older_text_hash(corpus)

        before = hashes(1)
        assert before[0].endswith(TEXT_VERSION)
        assert before[1] == "093e0afd2e2e3b05"
        changed = [hashes(2, "root", "obj"), hashes(3, "Sing", "Plur")]
        assert {older for _, older in changed} == {before[1]}
        assert len({before[0], *(now for now, _ in changed)}) == 3
        assert hashes(4, "\td\t", "\te\t")[1] != before[1]

    def test_of_other_text_it_is_that_of_earlier_versions(self, tmp_path: Path) -> None:
        corpus = read(str(conll_folder(tmp_path / "own")), ("tokens", "ner", "pos"))
        assert corpus.text_hash == older_text_hash(corpus)

    def test_draws_and_tasks_do_not_change_it(self) -> None:
        configs = [
            RunConfig.build(corpus="demo", tasks=("pos", "ner"), paradigm="mtl"),
            RunConfig.build(corpus="demo", tasks=("ner",), paradigm="stl", seed=7, fraction=0.1),
            RunConfig.build(corpus="apart:demo?tokens=300", tasks=("pos", "ner"), paradigm="mtl", seed=3),
        ]
        assert {prepare(config).text_hash for config in configs} == {read("demo").text_hash}

    def test_it_is_known_without_reading_until_a_file_changes(self, tmp_path: Path) -> None:
        folder = conll_folder(tmp_path / "own")
        columns = ("tokens", "ner", "pos")
        for name in (str(folder), f"joined:{folder}+demo?train=5,1200"):
            assert text_known(name, columns) is None
            load(name, columns)
            assert text_known(name, columns) == read(name, columns).text_hash
        (folder / "train.conll").write_text("A X O\n")
        assert text_known(str(folder), columns) is None
