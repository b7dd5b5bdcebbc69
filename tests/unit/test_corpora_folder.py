"""Folders, their split files, proposed column names, uploads and summaries."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from core.config import RunConfig
from core.corpora import detect_columns, load, prepare, save_upload, summarise
from core.corpora.folder import split_of
from core.corpora.loading import read
from core.corpora.readers import ONLY_TASKS
from core.corpora.uploads import MOST_MEGABYTES, delete_upload, uploads
from core.errors import CorpusError
from core.paths import upload_dir

ROWS = "EU NNP B-NP B-ORG\nrejects VBZ B-VP O\nGerman JJ B-NP B-MISC\nlamb NN I-NP O\n. . O O\n"
CONLLU = "1\ta\t_\tDET\tDT\t_\t2\t_\t_\t_\n2\tb\t_\tNOUN\tNN\t_\t0\t_\t_\t_\n\n"


def folder(tmp_path: Path, name: str = "mine", **files: str) -> Path:
    made = tmp_path / name
    made.mkdir()
    for file_name, content in files.items():
        (made / file_name.replace("__", ".")).write_text(content)
    return made


@pytest.mark.parametrize(
    ("file_name", "split"),
    [
        ("train.conll", "train"),
        ("Train.TXT", "train"),
        ("dev.tsv", "dev"),
        ("validation.iob2", "dev"),
        ("valid.bio", "dev"),
        ("eng.testa", "dev"),
        ("eng.testb", "test"),
        ("eng.train", "train"),
        ("test", "test"),
        ("en_lines-ud-test.conllu", "test"),
        ("README.md", None),
        ("train.pdf", None),
        ("train-test.conll", None),
        (".train.conll", None),
        ("constraint.txt", None),
        ("latest.conll", None),
    ],
)
def test_a_files_name_tells_its_split(file_name: str, split: str | None) -> None:
    assert split_of(file_name) == split


class TestFolder:
    def test_loads_with_named_columns(self, tmp_path: Path) -> None:
        path = folder(tmp_path, train__conll=ROWS, testa__conll=ROWS, testb__conll=ROWS)
        corpus = load(str(path), ["tokens", "pos", "chunk", "ner"])
        assert corpus.name == "mine"
        assert [(task.name, task.scheme) for task in corpus.tasks] == [
            ("pos", "plain"),
            ("chunk", "iob2"),
            ("ner", "iob2"),
        ]
        assert len(corpus.train) == len(corpus.dev) == len(corpus.test) == 1
        assert corpus.notes == ()

    def test_columns_are_named_by_content_where_no_names_are_given(self, tmp_path: Path) -> None:
        corpus = load(str(folder(tmp_path, train__txt=ROWS, test__txt=ROWS)))
        assert [task.name for task in corpus.tasks] == ["pos", "chunk", "ner"]
        assert corpus.dev == ()
        assert corpus.notes == ("Columns were named by what is in them: tokens, pos, chunk, ner.",)

    def test_conllu_offers_two_tasks_and_says_so(self, tmp_path: Path) -> None:
        place = str(folder(tmp_path, train__conllu=CONLLU, test__conllu=CONLLU))
        assert ONLY_TASKS in load(place).notes
        assert [task.name for task in load(place).tasks] == ["upos", "xpos"]
        config = RunConfig.build(corpus=place, tasks=("deprel",), paradigm="stl")
        with pytest.raises(CorpusError, match=r"no task 'deprel'.*CoNLL columns"):
            prepare(config)

    def test_a_folder_under_mrnlab_data(self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        folder(tmp_path, train__conll=ROWS, test__conll=ROWS)
        monkeypatch.setenv("MRNLAB_DATA", str(tmp_path))
        assert len(load("mine").train) == 1

    def test_a_catalogue_name_comes_before_a_folder(
        self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        folder(tmp_path, "demo", train__conll=ROWS, test__conll=ROWS)
        monkeypatch.chdir(tmp_path)
        assert len(load("demo").train) == 1200
        assert len(load("./demo").train) == 1

    @pytest.mark.parametrize(
        ("files", "columns", "expected"),
        [
            ({"train__conll": ROWS}, None, "has no test file; expected test.conll"),
            ({}, None, "has no train file; expected train.conll"),
            ({"train__conll": "", "test__conll": ROWS}, None, "train.conll is empty; it must hold"),
            (
                {"train__conll": ROWS, "train__txt": ROWS, "test__conll": ROWS},
                None,
                "both train.conll and train.txt could be the train split",
            ),
            ({"train__conllu": CONLLU, "test__conll": ROWS}, None, "mixes CoNLL-U files with others"),
            (
                {"train__conllu": CONLLU, "test__conllu": CONLLU},
                ["tokens", "pos"],
                "leave the names of columns away",
            ),
            ({"train__conll": ROWS, "test__conll": ROWS}, ["word", "pos"], "must be named 'tokens'"),
            (
                {"train__conll": ROWS, "test__conll": ROWS},
                ["tokens", "pos", "pos"],
                "Two columns are named 'pos'",
            ),
            ({"train__conll": ROWS, "test__conll": ROWS}, ["tokens", "pos"], "line 1: expected 2 columns"),
            (
                {"train__conll": ROWS, "test__conll": "a NN O\n"},
                None,
                "test.conll, line 1: expected 4 columns",
            ),
            ({"train__conll": "one\n", "test__conll": "one\n"}, None, "line 1: has one column"),
        ],
    )
    def test_refusals(
        self, tmp_path: Path, files: dict[str, str], columns: list[str] | None, expected: str
    ) -> None:
        path = folder(tmp_path, **files)
        with pytest.raises(CorpusError) as raised:
            load(str(path), columns)
        assert expected in str(raised.value)
        assert "\n" not in str(raised.value)

    def test_an_unknown_name_lists_the_catalogue(self) -> None:
        with pytest.raises(CorpusError, match=r"There is no corpus 'conll2004': .* one of demo, demo-pos-a"):
            load("conll2004")

    def test_a_file_in_place_of_a_folder(self, tmp_path: Path) -> None:
        path = folder(tmp_path, train__conll=ROWS) / "train.conll"
        with pytest.raises(CorpusError, match="is a file; name the folder"):
            load(str(path))

    def test_a_catalogue_corpus_knows_its_columns(self) -> None:
        assert load("demo", ["tokens", "pos", "chunk", "ner"]).name == "demo"
        with pytest.raises(CorpusError, match="demo knows its own columns"):
            load("demo", ["tokens", "pos"])


class TestDetection:
    @pytest.mark.parametrize(
        ("rows", "names"),
        [
            (ROWS, ("tokens", "pos", "chunk", "ner")),
            ("a\tO\nb\tO\n", ("tokens", "ner")),
            ("1 a NN\n2 b VB\n\n1 c NN\n", ("pos", "tokens", "pos2")),
            ("B-ACTOR tom\nI-ACTOR hanks\nO films\nO of\n", ("ner", "tokens")),
            ("a B-PER B-LOC\nb O O\nc O O\n", ("tokens", "ner", "ner2")),
            ("a I-NP I-PER\nb I-VP O\nc I-NP O\n", ("tokens", "chunk", "ner")),
            ("a I-.. X\nb '' Y\nc ( X\n", ("tokens", "pos", "pos2")),
        ],
    )
    def test_names_by_content(self, tmp_path: Path, rows: str, names: tuple[str, ...]) -> None:
        path = tmp_path / "train.conll"
        path.write_text(rows)
        proposal = detect_columns(path)
        assert proposal is not None
        assert proposal.columns == names
        assert all(len(row) == len(names) for row in proposal.sample)

    def test_lemmas_are_read_over(self, tmp_path: Path) -> None:
        path = tmp_path / "train.conll"
        path.write_text("".join(f"Word{n} word{n // 2} {'NN' if n % 2 else 'VB'}\n" for n in range(600)))
        proposal = detect_columns(path)
        assert proposal is not None
        assert proposal.columns == ("tokens", "_other", "pos")

    def test_conllu_has_nothing_to_name(self, tmp_path: Path) -> None:
        path = folder(tmp_path, train__conllu=CONLLU, test__conllu=CONLLU)
        assert detect_columns(path) is None


class TestUpload:
    def test_is_stored_and_loads(self) -> None:
        path = save_upload(
            {"my-train.txt": ROWS.encode(), "my-valid.txt": ROWS.encode(), "my-test.TXT": ROWS.encode()},
            "My corpus",
        )
        assert path.parent == upload_dir()
        assert path.name.startswith("My-corpus-")
        assert sorted(file.name for file in path.iterdir()) == ["dev.txt", "test.txt", "train.txt"]
        assert len(load(str(path)).dev) == 1

    def test_the_same_upload_is_kept_once_and_another_beside_it(self) -> None:
        files = {"train.conll": ROWS.encode(), "test.conll": ROWS.encode()}
        first = save_upload(files, "c")
        assert save_upload(files, "c") == first
        other = save_upload(files | {"test.conll": (ROWS + ROWS).encode()}, "c")
        assert other != first
        assert sorted(upload_dir().iterdir()) == sorted([first, other])

    @pytest.mark.parametrize(
        ("names", "expected"),
        [
            (["notes.txt", "train.conll", "test.conll"], "'notes.txt' does not tell its split"),
            (["train.exe", "test.conll"], "'train.exe' does not tell its split"),
            (
                ["train.conll", "training.txt", "test.conll"],
                "The upload: both train.conll and training.txt could be the train split",
            ),
            (["train.conll"], "The upload has no test file"),
            (["test.conll"], "The upload has no train file"),
        ],
    )
    def test_refusals(self, names: list[str], expected: str) -> None:
        with pytest.raises(CorpusError) as raised:
            save_upload({name: ROWS.encode() for name in names}, "c")
        assert expected in str(raised.value)
        assert list(upload_dir().iterdir()) == []

    @pytest.mark.parametrize(
        ("train", "test", "expected"),
        [
            (ROWS, "a XX\n", "my.test, line 1: expected 4 columns"),
            ("a\nb\n", ROWS, "my.train, line 1: has one column"),
            (ROWS, "", "my.test is empty"),
            ("\xff", ROWS, "my.train, line 1: byte 0xff"),
        ],
    )
    def test_what_cannot_be_read_is_not_kept(self, train: str, test: str, expected: str) -> None:
        with pytest.raises(CorpusError) as raised:
            save_upload({"my.train": train.encode("latin-1"), "my.test": test.encode()}, "c")
        assert str(raised.value).startswith(expected)
        assert list(upload_dir().iterdir()) == []
        assert uploads() == []

    def test_kept_uploads_are_listed_and_deleted(self, tmp_path: Path) -> None:
        assert uploads() == []
        (upload_dir() / "mappings").mkdir()
        files = {"train.conll": ROWS.encode(), "test.conll": ROWS.encode()}
        first, second = (save_upload(files, name) for name in ("one", "two"))
        os.utime(first, (1, 1))
        assert [upload.path for upload in uploads()] == [second, first]
        assert uploads()[0].splits == ("train", "test")
        assert uploads()[0].bytes == 2 * len(ROWS)
        delete_upload(second)
        assert [upload.path for upload in uploads()] == [first]
        for path in (
            second,
            tmp_path,
            upload_dir() / "mappings",
            upload_dir() / ".." / "uploads" / first.name,
        ):
            with pytest.raises(CorpusError, match="no uploaded corpus"):
                delete_upload(path)
        assert first.is_dir()

    def test_too_much_is_refused(self, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setattr("core.corpora.uploads.MOST_MEGABYTES", 1)
        with pytest.raises(CorpusError, match="holds 2 MB and the most is 1 MB"):
            save_upload({"train.conll": b"x" * 2_000_000, "test.conll": b"x"}, "c")
        assert MOST_MEGABYTES == 200


class TestSummary:
    def test_counts_labels_and_samples(self, tmp_path: Path) -> None:
        path = folder(tmp_path, train__conll=ROWS + "\n" + ROWS, test__conll="a XX B-NP B-PER\n")
        summary = summarise(str(path))
        assert {split: (size.sentences, size.tokens) for split, size in summary.splits.items()} == {
            "train": (2, 10),
            "test": (1, 1),
        }
        ner = summary.tasks[2]
        assert (ner.name, ner.scheme) == ("ner", "iob2")
        assert summary.counts["ner"]["train"] == {"O": 6, "B-MISC": 2, "B-ORG": 2}
        assert ner.unseen == {"test": ("B-PER",)}
        assert summary.samples[0].tokens == ("EU", "rejects", "German", "lamb", ".")
        assert any("pos: the test split has 1 label" in note for note in summary.notes)

    def test_is_read_again_only_when_a_file_changes(
        self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        path = folder(tmp_path, train__conll=ROWS, test__conll=ROWS)
        calls: list[str] = []

        def counting(name: str, columns: object = None) -> object:
            calls.append(name)
            return load(name, columns)  # type: ignore[arg-type]  # passed on as it came

        monkeypatch.setattr("core.corpora.loading.load", counting)
        assert summarise(str(path)) is summarise(str(path))
        assert len(calls) == 1
        (path / "train.conll").write_text(ROWS + "\n" + ROWS)
        os.utime(path / "train.conll", ns=(1, 1))
        assert summarise(str(path)).splits["train"].sentences == 2
        assert len(calls) == 2


class TestTextHash:
    """The hash tells whether two runs saw the same words with the same labels."""

    def test_it_is_of_the_text_and_not_of_the_files(self, tmp_path: Path) -> None:
        rows = "a DT O\nb NN B-X\n\nc DT O\n\n"
        columns = ("tokens", "pos", "ner")
        first = folder(tmp_path, "first", train__conll=rows, test__conll=rows)
        tabs = folder(tmp_path, "tabs", train__txt=rows.replace(" ", "\t"), test__txt=rows)
        assert read(str(first), columns).text_hash == read(str(tabs), columns).text_hash != ""

    @pytest.mark.parametrize(
        "changed",
        [
            "a DT O\nb NN B-Y\n\nc DT O\n\n",  # a label
            "a DT O\nB NN B-X\n\nc DT O\n\n",  # a word
            "a DT O\nb NN B-X\nc DT O\n\n",  # where a sentence ends
            "c DT O\n\na DT O\nb NN B-X\n\n",  # their order, which draws depend on
        ],
    )
    def test_any_change_shows(self, changed: str, tmp_path: Path) -> None:
        rows = "a DT O\nb NN B-X\n\nc DT O\n\n"
        made = folder(tmp_path, train__conll=rows, test__conll=rows)
        columns = ("tokens", "pos", "ner")
        before = read(str(made), columns).text_hash
        (made / "test.conll").write_text(changed)
        os.utime(made / "test.conll", ns=(1, 1))
        assert read(str(made), columns).text_hash != before

    def test_draws_and_tasks_do_not_change_it(self) -> None:
        asked = [
            RunConfig.build(corpus="demo", tasks=("pos", "ner"), paradigm="mtl"),
            RunConfig.build(corpus="demo", tasks=("ner",), paradigm="stl", seed=7, fraction=0.1),
            RunConfig.build(corpus="apart:demo?tokens=300", tasks=("pos", "ner"), paradigm="mtl", seed=3),
        ]
        assert {prepare(config).text_hash for config in asked} == {read("demo").text_hash}
        assert read("demo-pos-a").text_hash != read("demo-pos-b").text_hash
