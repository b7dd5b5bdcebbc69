"""Folders, their split files, proposed column names, uploads, summaries and the hash of a text."""

from __future__ import annotations

import os
from dataclasses import replace
from pathlib import Path

import pytest

from core.config import RunConfig
from core.corpora import detect_columns, load, prepare, save_upload, summarise
from core.corpora.assembly import text_hash
from core.corpora.folder import split_of
from core.corpora.loading import read
from core.corpora.types import Sentence
from core.corpora.uploads import delete_upload, uploads
from core.errors import CorpusError
from core.paths import upload_dir

ROWS = "EU NNP B-NP B-ORG\nrejects VBZ B-VP O\nGerman JJ B-NP B-MISC\nlamb NN I-NP O\n. . O O\n"
CONLLU = "1\ta\t_\tDET\tDT\t_\t2\t_\t_\t_\n2\tb\t_\tNOUN\tNN\t_\t0\t_\t_\t_\n\n"


def _conllu(*words: str) -> str:
    """A sentence; each word `form feats deprel`."""
    rows = [word.split() for word in words]
    return (
        "".join(
            f"{number}\t{form}\t_\tX\tY\t{feats}\t0\t{relation}\t_\t_\n"
            for number, (form, feats, relation) in enumerate(rows, start=1)
        )
        + "\n"
    )


FEATS = _conllu("a _ det", "b Number=Sing nsubj:pass", "c Person=3 root") + _conllu("d _ root")
FEATS_OF_TEST = _conllu("e Mood=Ind root")
BOTH = {"train.conll": ROWS, "test.conll": ROWS}


def folder(tmp_path: Path, name: str, files: dict[str, str]) -> str:
    made = tmp_path / name
    made.mkdir()
    for file_name, content in files.items():
        (made / file_name).write_text(content)
    return str(made)


@pytest.mark.parametrize(
    ("file_names", "split"),
    [
        ("train.conll Train.TXT eng.train", "train"),
        ("dev.tsv validation.iob2 valid.bio eng.testa", "dev"),
        ("eng.testb test en_lines-ud-test.conllu", "test"),
        ("README.md train.pdf train-test.conll .train.conll constraint.txt latest.conll", None),
    ],
)
def test_a_files_name_tells_its_split(file_names: str, split: str | None) -> None:
    assert {split_of(name) for name in file_names.split()} == {split}


class TestFolder:
    def test_columns_are_as_named_or_else_by_content(self, tmp_path: Path) -> None:
        three = folder(tmp_path, "mine", {"train.txt": ROWS, "testa.conll": ROWS, "testb.conll": ROWS})
        corpus = load(three, ["tokens", "pos", "_", "ner"])
        assert (corpus.name, corpus.notes) == ("mine", ())
        assert [(task.name, task.scheme) for task in corpus.tasks] == [("pos", "plain"), ("ner", "iob2")]
        assert len(corpus.train) == len(corpus.dev) == len(corpus.test) == 1
        guessed = load(folder(tmp_path, "two", BOTH))
        assert ([task.name for task in guessed.tasks], guessed.dev) == (["pos", "chunk", "ner"], ())
        assert guessed.notes == ("Columns were named by what is in them: tokens, pos, chunk, ner.",)

    def test_columns_and_features_of_conllu_are_tasks(self, tmp_path: Path) -> None:
        place = folder(tmp_path, "ud", {"train.conllu": FEATS, "test.conllu": FEATS + FEATS_OF_TEST})
        corpus = load(place)
        names = ["upos", "xpos", "deprel", "feats:Number", "feats:Person"]
        assert [task.name for task in corpus.tasks] == names
        assert corpus.train[0].labels["feats:Number"] == ("_", "Sing", "_")
        assert corpus.train[0].labels["feats:Person"] == ("_", "_", "3")
        assert corpus.train[0].labels["deprel"] == ("det", "nsubj:pass", "root")
        # Of a treebank with features every sentence is annotated for them, also one whose FEATS are all `_`.
        assert corpus.train[1].labels["feats:Number"] == corpus.test[2].labels["feats:Number"] == ("_",)
        assert detect_columns(place) is None
        config = RunConfig.build(corpus=place, tasks=("lemma",), paradigm="stl")
        with pytest.raises(CorpusError, match=r"no task 'lemma'.*CoNLL columns"):
            prepare(config)

    def test_a_split_without_any_feature_is_not_annotated_for_them(self, tmp_path: Path) -> None:
        place = folder(tmp_path, "ud", {"train.conllu": FEATS, "test.conllu": _conllu("e _ root")})
        assert set(load(place).test[0].labels) == {"upos", "xpos", "deprel"}

    def test_the_hash_of_conllu_text_leaves_its_newer_tasks_out(self, tmp_path: Path) -> None:
        place = folder(tmp_path, "ud", {"train.conllu": FEATS, "test.conllu": FEATS})
        corpus = load(place)

        def before(sentences: tuple[Sentence, ...]) -> tuple[Sentence, ...]:
            return tuple(
                replace(s, labels={task: s.labels[task] for task in ("upos", "xpos")}) for s in sentences
            )

        then = replace(corpus, train=before(corpus.train), test=before(corpus.test))
        assert corpus.text_hash == text_hash(then) != text_hash(replace(then, train=then.train[1:]))

    def test_names_are_of_the_catalogue_then_folders_here_then_of_mrnlab_data(
        self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        folder(tmp_path, "demo", BOTH)
        folder(tmp_path, "mine", BOTH)
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

    @pytest.mark.parametrize(
        ("files", "columns", "expected"),
        [
            ({"train.conll": ROWS}, None, "has no test file; expected test.conll"),
            ({}, None, "has no train file; expected train.conll"),
            (BOTH | {"train.conll": ""}, None, "train.conll is empty; it must hold"),
            (BOTH | {"train.txt": ROWS}, None, "both train.conll and train.txt could be the train split"),
            ({"train.conllu": CONLLU, "test.conll": ROWS}, None, "mixes CoNLL columns and CoNLL-U; all"),
            ({"train.conllu": CONLLU, "test.conllu": CONLLU}, "tokens pos", "leave out the column names"),
            (BOTH, "word pos", "must be named 'tokens'"),
            (BOTH, "tokens pos pos", "Two columns are named 'pos'"),
            (BOTH, "tokens pos", "line 1: expected 2 columns"),
            (BOTH | {"test.conll": "a NN O\n"}, None, "test.conll, line 1: expected 4 columns"),
            ({"train.conll": "one\n", "test.conll": "one\n"}, None, "line 1: has one column"),
        ],
    )
    def test_refusals(
        self, tmp_path: Path, files: dict[str, str], columns: str | None, expected: str
    ) -> None:
        with pytest.raises(CorpusError) as raised:
            load(folder(tmp_path, "mine", files), columns and columns.split())
        assert expected in str(raised.value)
        assert "\n" not in str(raised.value)


@pytest.mark.parametrize(
    ("rows", "names"),
    [
        (ROWS, "tokens pos chunk ner"),
        ("a\tO\nb\tO\n", "tokens ner"),
        ("1 a NN\n2 b VB\n\n1 c NN\n", "pos tokens pos2"),
        ("B-ACTOR tom\nI-ACTOR hanks\nO films\nO of\n", "ner tokens"),
        ("a B-PER B-LOC\nb O O\nc O O\n", "tokens ner ner2"),
        ("a I-NP I-PER\nb I-VP O\nc I-NP O\n", "tokens chunk ner"),
        ("a I-.. X\nb '' Y\nc ( X\n", "tokens pos pos2"),
        ("".join(f"W{n} w{n // 2} {'NN' if n % 2 else 'VB'}\n" for n in range(600)), "tokens _other pos"),
    ],
)
def test_columns_are_named_by_content(tmp_path: Path, rows: str, names: str) -> None:
    path = tmp_path / "train.conll"
    path.write_text(rows)
    proposal = detect_columns(path)
    assert proposal is not None
    assert proposal.columns == tuple(names.split())
    assert proposal.sample[0] == tuple(rows.split("\n")[0].split())


class TestUpload:
    def test_is_stored_and_loads(self) -> None:
        names = ("my-train.txt", "my-valid.txt", "my-test.TXT")
        path = save_upload(dict.fromkeys(names, ROWS.encode()), "My corpus")
        assert path.parent == upload_dir()
        assert path.name.startswith("My-corpus-")
        assert sorted(file.name for file in path.iterdir()) == ["dev.txt", "test.txt", "train.txt"]
        assert len(load(str(path)).dev) == 1

    @pytest.mark.parametrize(
        ("files", "expected"),
        [
            (BOTH | {"notes.txt": ROWS}, "'notes.txt' does not tell its split"),
            (BOTH | {"train.exe": ROWS}, "'train.exe' does not tell its split"),
            (BOTH | {"training.txt": ROWS}, "The upload: both train.conll and training.txt could be"),
            (BOTH | {"a/train.conll": ROWS}, "The upload: both train.conll and train.conll could be"),
            ({"train.conll": ROWS}, "The upload has no test file"),
            ({"test.conll": ROWS}, "The upload has no train file"),
            ({"train.conllu": CONLLU, "test.conll": ROWS}, "The upload mixes CoNLL columns and CoNLL-U"),
            (BOTH | {"test.conll": "a XX\n"}, "test.conll, line 1: expected 4 columns"),
            ({"my.train": "a\nb\n", "my.test": ROWS}, "my.train, line 1: has one column"),
            (BOTH | {"test.conll": ""}, "test.conll is empty"),
            (BOTH | {"train.conll": "\xff"}, "train.conll, line 1: byte 0xff"),
        ],
    )
    def test_what_cannot_be_read_is_not_kept(self, files: dict[str, str], expected: str) -> None:
        with pytest.raises(CorpusError) as raised:
            save_upload({name: text.encode("latin-1") for name, text in files.items()}, "c")
        assert str(raised.value).startswith(expected)
        assert list(upload_dir().iterdir()) == []
        assert uploads() == {}

    def test_kept_uploads_are_listed_and_deleted(self, tmp_path: Path) -> None:
        (upload_dir() / "mappings").mkdir()
        files = {name: text.encode() for name, text in BOTH.items()}
        first, second = (save_upload(files, name) for name in ("one", "two"))
        assert save_upload(files, "one") == first  # the same is kept once
        third = save_upload(files | {"test.conll": (ROWS + ROWS).encode()}, "one")
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
    path = folder(tmp_path, "mine", {"train.conll": f"{ROWS}\n{ROWS}", "test.conll": "a XX B-NP B-PER\n"})
    summary = summarise(path)
    sizes = {split: (size.sentences, size.tokens) for split, size in summary.splits.items()}
    assert sizes == {"train": (2, 10), "test": (1, 1)}
    ner = summary.tasks[2]
    assert (ner.name, ner.scheme, ner.unseen) == ("ner", "iob2", {"test": ("B-PER",)})
    assert summary.counts["ner"]["train"] == {"O": 6, "B-MISC": 2, "B-ORG": 2}
    assert summary.samples[0].tokens == ("EU", "rejects", "German", "lamb", ".")
    assert any("pos: the test split has 1 label" in note for note in summary.notes)

    assert summarise(path) is summary
    (tmp_path / "mine" / "train.conll").write_text(ROWS)
    os.utime(tmp_path / "mine" / "train.conll", ns=(1, 1))
    assert summarise(path).splits["train"].sentences == 1


class TestTextHash:
    """The hash tells whether two runs saw the same words with the same labels."""

    def test_it_is_of_the_text_and_not_of_the_files(self, tmp_path: Path) -> None:
        rows = "a DT O\nb NN B-X\n\nc DT O\n\n"
        columns = ("tokens", "pos", "ner")
        tabs = {"train.txt": rows.replace(" ", "\t"), "test.txt": rows}
        first = folder(tmp_path, "first", {"train.conll": rows, "test.conll": rows})
        before = read(first, columns).text_hash
        assert read(folder(tmp_path, "tabs", tabs), columns).text_hash == before != ""
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

    def test_draws_and_tasks_do_not_change_it(self) -> None:
        configs = [
            RunConfig.build(corpus="demo", tasks=("pos", "ner"), paradigm="mtl"),
            RunConfig.build(corpus="demo", tasks=("ner",), paradigm="stl", seed=7, fraction=0.1),
            RunConfig.build(corpus="apart:demo?tokens=300", tasks=("pos", "ner"), paradigm="mtl", seed=3),
        ]
        assert {prepare(config).text_hash for config in configs} == {read("demo").text_hash}
