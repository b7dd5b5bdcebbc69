"""What a run trains on: tasks, share, dev split; the same for the same seed in every paradigm."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

import pytest

from core.config import RunConfig
from core.corpora import CATALOGUE, preparation, prepare
from core.corpora.loading import read
from core.corpora.preparation import is_all_capitals
from core.corpora.sampling import parts
from core.corpora.types import Sentence
from core.errors import CorpusError
from tests.making import corpus_folder


def config(**values: object) -> RunConfig:
    return RunConfig.build(**({"corpus": "demo", "tasks": "pos,ner", "paradigm": "mtl"} | values))


def stl(task: str, **values: object) -> RunConfig:
    return config(tasks=task, paradigm="stl", **values)


def words(sentences: Sequence[Sentence]) -> list[tuple[str, ...]]:
    return [sentence.tokens for sentence in sentences]


@pytest.fixture
def mine(tmp_path: Path) -> str:
    """Twenty training sentences, four test sentences, no dev split."""
    train = [f"w{n} NN B-PER\nand CC O\n" for n in range(19)] + ["only UH B-MISC\n"]
    test = (f"t{n} NN B-LOC\n" for n in range(4))
    return corpus_folder(tmp_path / "mine", {"train.conll": "\n".join(train), "test.conll": "\n".join(test)})


def test_only_the_tasks_of_the_run_in_its_order() -> None:
    corpus = prepare(config(tasks="ner,pos"))
    assert [task.name for task in corpus.tasks] == ["ner", "pos"]
    assert set(corpus.train[0].labels) == {"ner", "pos"}
    assert (len(corpus.train), len(corpus.dev), len(corpus.test)) == (1200, 300, 300)
    assert (corpus.notes, corpus.dev_from_train) == ((), False)
    assert prepare(config(dev_sentences=0)).dev == prepare(config()).dev
    with pytest.raises(CorpusError, match="demo has no task 'lemma'; its tasks are pos, chunk, ner"):
        prepare(config(tasks="pos,lemma"))


def test_a_fraction_is_a_random_share_of_training_the_same_in_every_paradigm() -> None:
    changes: list[dict[str, float]] = [{}, {"fraction": 0.1}, {"fraction": 0.1, "seed": 2}]
    whole, some, others = (prepare(config(**values)) for values in changes)
    assert len(some.train) == len(others.train) == 120
    assert (some.dev, some.test) == (whole.dev, whole.test)
    assert words(some.train) != words(others.train)
    assert set(words(some.train)) < set(words(whole.train))
    assert words(some.train) != words(whole.train[:120])
    assert "Trains on 120 of 1,200 training sentences, drawn with seed 1." in some.notes
    many = config(tasks="pos,chunk,ner", paradigm="mrn", fraction=0.05, seed=7)
    assert words(prepare(many).train) == words(prepare(stl("chunk", fraction=0.05, seed=7)).train)
    assert prepare(many) == prepare(many)


def test_a_task_alone_sees_the_same_sentences_of_its_part() -> None:
    both = prepare(config(corpus="demo-both-pos", tasks="pos-a,pos-b", fraction=0.1, seed=3))
    alone = prepare(stl("pos-b", corpus="demo-both-pos", fraction=0.1, seed=3))
    assert words(alone.train) == words(tuple(s for s in both.train if "pos-b" in s.labels))
    assert len(alone.test) == 200
    assert "Trains on 60 of 600 training sentences, drawn with seed 3." in alone.notes


def test_only_the_part_without_dev_lends_a_tenth(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("MRNLAB_DATA", str(tmp_path))
    rows = {
        "conll2003": "\n".join(f"a{n} NN B-NP O\n" for n in range(30)),
        "conll2000": "\n".join(f"b{n} NN B-NP\n" for n in range(50)),
    }
    for name, content in rows.items():
        splits = ("train", "test", "dev") if name == "conll2003" else ("train", "test")
        corpus_folder(tmp_path / name, {f"{split}.conll": content for split in splits})
    both = prepare(config(corpus="both-pos", tasks="pos-2003,pos-2000"))
    assert (len(both.train), len(both.dev)) == (30 + 45, 30 + 5)
    assert both.dev_from_train
    assert any("conll2000 has no dev split: 5 training sentences" in note for note in both.notes)
    alone = prepare(stl("pos-2003", corpus="both-pos"))
    assert (len(alone.train), len(alone.dev), alone.dev_from_train) == (30, 30, False)
    assert prepare(stl("pos-2000", corpus="both-pos")).dev == both.dev[30:]


def test_a_seeded_tenth_of_train_serves_as_dev(mine: str) -> None:
    described = {"corpus": mine, "columns": "tokens,pos,ner"}
    first, again, other = (prepare(config(**described, seed=seed)) for seed in (1, 1, 2))
    assert (len(first.train), len(first.dev), len(first.test)) == (18, 2, 4)
    assert first.dev_from_train
    assert not set(words(first.train)) & set(words(first.dev))
    assert first == again
    assert first.dev != other.dev
    note = "mine has no dev split: 2 training sentences, drawn with seed 1, are held out as one."
    assert note in first.notes
    half = prepare(config(**described, fraction=0.5))
    assert (len(half.train), len(half.dev)) == (9, 1)


@pytest.mark.parametrize("number", [0, 1, 5, 19, 20])
def test_as_many_dev_sentences_as_asked(mine: str, number: int) -> None:
    run = config(corpus=mine, columns="tokens,pos,ner", dev_sentences=number)
    if number == 20:
        with pytest.raises(CorpusError, match="20 of its 20 training sentences cannot be held out"):
            prepare(run)
        return
    corpus = prepare(run)
    assert (len(corpus.train), len(corpus.dev)) == (20 - number, number)
    assert corpus.dev_from_train == (number > 0)
    assert any("has no dev split" in note for note in corpus.notes)


def test_of_joined_corpora_only_those_without_a_dev_split_hold_some_out(mine: str) -> None:
    described = {"columns": "tokens,pos,ner", "tasks": "chunk,ner@mine", "dev_sentences": 5}
    corpus = prepare(config(corpus=f"joined:demo+{mine}", **described))
    sizes = {
        part: (len(train), sum(sentence.part == part for sentence in corpus.dev))
        for part, train in parts(corpus.split("train"))
    }
    assert sizes == {"demo": (1200, 300), "mine": (15, 5)}
    few = prepare(config(corpus=f"joined:demo+{mine}?dev=3", **described))
    assert [(part, len(dev)) for part, dev in parts(few.split("dev"))] == [("demo", 3), ("mine", 3)]


@pytest.mark.parametrize(
    ("inventory", "expected"),
    [("train", {("CC", "NN"), ("CC", "NN", "UH")}), ("corpus", {("CC", "NN", "UH")})],
)
def test_labels_are_those_of_the_inventory(mine: str, inventory: str, expected: set[tuple[str, ...]]) -> None:
    half = {"corpus": mine, "columns": "tokens,pos,ner", "fraction": 0.5, "label_inventory": inventory}
    labels = {prepare(config(**half, seed=seed)).task("pos").labels for seed in range(8)}
    assert labels == expected


def test_the_inventory_of_a_derived_corpus_is_that_of_its_base() -> None:
    few = {"corpus": "apart:demo?tokens=60", "tasks": "pos,ner"}
    for task in ("pos", "ner"):
        assert prepare(config(**few)).task(task).labels == prepare(config()).task(task).labels
        sample = prepare(config(**few, label_inventory="train")).task(task).labels
        assert set(sample) < set(prepare(config()).task(task).labels)
    made = prepare(config(corpus="simulated:demo?task=ner&tokens=60&tasks=1", tasks="ner,sim-1"))
    assert set(made.task("sim-1").labels) == set(made.task("ner").labels)


def test_sentences_without_the_task_are_left_out(tmp_path: Path) -> None:
    row = "1\ta\t_\tNOUN\t{}\t_\t0\t_\t_\t_\n\n"
    three = row.format("NN") + row.format("_") + row.format("VB")
    files = {"train.conllu": three, "dev.conllu": three, "test.conllu": row.format("_")}
    corpus = corpus_folder(tmp_path / "ud", files)
    assert len(prepare(stl("upos", corpus=corpus)).test) == 1
    with pytest.raises(CorpusError, match="no sentence of the test split is annotated for xpos"):
        prepare(stl("xpos", corpus=corpus))
    (tmp_path / "ud" / "test.conllu").write_text(row.format("NN") * 2)
    assert len(prepare(stl("xpos", corpus=corpus)).train) == 2
    assert len(prepare(config(tasks="upos,xpos", corpus=corpus)).train) == 3


def test_truecase_changes_words_in_capitals_and_nothing_else(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(
        preparation, "_restored", lambda tokens: tuple(token.capitalize() for token in tokens)
    )
    plain, changed = prepare(config()), prepare(config(truecase=True))
    pairs = zip(plain.train, changed.train, strict=True)
    differing = [(old, new) for old, new in pairs if old.tokens != new.tokens]
    assert differing
    for old, new in differing:
        assert all(token.isupper() for token in old.tokens if token.isalpha())
        assert old.labels == new.labels
    note = f"Case restored in sentences all in capitals: {len(differing)} in train"
    assert any(line.startswith(note) for line in changed.notes)


@pytest.mark.parametrize(
    ("tokens", "expected"),
    [
        ("SOCCER - JAPAN GET LUCKY WIN", True),
        ("BOSTON 1996-08-22", True),
        ("U.S. 3 -", False),
        ("JAPAN get LUCKY WIN", False),
        ("1 , 2 .", False),
        ("McDonald SAID", False),
    ],
)
def test_a_sentence_qualifies_by_its_alphabetic_tokens(tokens: str, expected: bool) -> None:
    assert is_all_capitals(tokens.split()) is expected


def test_case_is_restored_and_length_and_other_tokens_kept() -> None:
    pytest.importorskip("truecase", reason="the package truecase is not installed here")
    labels = {"pos": ("NN", ":", "NNP", "VBP", "JJ", "NN", ",", "CD")}
    shouted = Sentence(("SOCCER", "-", "JAPAN", "GET", "LUCKY", "WIN", ",", "U.S."), labels, part="a")
    spoken = Sentence(("Japan", "won"), {"pos": ("NNP", "VBD")})
    pair = Sentence(("A", "dog"), {"x": ("1",)}, whole=True, second=("GET", "LUCKY"))
    restored, untouched, of_pair = preparation.truecase([shouted, spoken, pair])
    assert restored.tokens == ("Soccer", "-", "Japan", "get", "lucky", "win", ",", "U.S.")
    assert (restored.labels, restored.part) == (labels, "a")
    assert untouched == spoken
    assert of_pair == replace(pair, second=("Get", "lucky"))


@pytest.mark.slow
def test_truecase_restores_the_same_in_each_process() -> None:
    """Forms that are equally good were once taken in the order of a set."""
    code = (
        "from core.corpora.preparation import Sentence, truecase\n"
        "texts = 'LE JOUR', 'W L T PF PA', 'TENNIS RESULTS AT HAMLET CUP', 'ENGLISH SOCCER RESULTS'\n"
        "print([each.tokens for each in truecase([Sentence(tuple(text.split()), {}) for text in texts])])"
    )
    processes = [
        subprocess.Popen(
            [sys.executable, "-c", code],
            env=os.environ | {"PYTHONHASHSEED": str(seed)},
            stdout=subprocess.PIPE,
            text=True,
        )
        for seed in (1, 2)
    ]
    restored = {process.communicate()[0] for process in processes}
    assert len(restored) == 1
    assert "Jour" in restored.pop()


@pytest.mark.parametrize(
    ("name", "text_hash", "sizes", "schemes"),
    [
        ("demo", "06fa149e52aa53ee", (1200, 300, 300), ("plain", "iob2", "iob2")),
        ("demo-pos-a", "ba962dbf4625d78a", (600, 200, 200), ("plain",)),
        ("demo-pos-b", "10aea14c602153ea", (600, 200, 200), ("plain",)),
        ("demo-both-pos", "f5a48a2ab3d86ad5", (1200, 400, 400), ("plain", "plain")),
    ],
)
def test_the_demo_corpora_never_change(
    name: str, text_hash: str, sizes: tuple[int, ...], schemes: tuple[str, ...]
) -> None:
    corpus = read(name)
    assert corpus.text_hash == text_hash
    assert (len(corpus.train), len(corpus.dev), len(corpus.test)) == sizes
    assert tuple(task.name for task in corpus.tasks) == CATALOGUE[name].tasks
    assert tuple(task.scheme for task in corpus.tasks) == schemes
    assert corpus.notes == ()
    assert not any(any(task.illegal.values()) for task in corpus.tasks)
