"""The real corpora, where they are: sizes, label sets and alignments as published."""

from __future__ import annotations

from collections import Counter
from pathlib import Path
from typing import Any

import pytest

from core.config import PRESETS, RunConfig
from core.config.sweep import expand
from core.corpora import CATALOGUE, load, prepare
from core.corpora.catalogue.names import locate
from core.corpora.loading import read
from core.corpora.overlaps import corpus_overlaps
from core.mrn.alignments import choose

pytestmark = pytest.mark.realdata


@pytest.fixture(autouse=True)
def in_mrnlab_data(real_data: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("MRNLAB_DATA", str(real_data))


def _dissertation(corpus: str, tasks: str, **values: Any) -> RunConfig:
    # Truecasing takes 5 s and changes no label.
    values |= {"corpus": corpus, "tasks": tasks, "paradigm": "mrn", "truecase": False}
    (config,) = expand(values, {}, PRESETS["dissertation"])
    return config


@pytest.mark.parametrize(
    ("name", "sizes", "heads"),
    [
        ("conll2003", (14041, 3250, 3453), {"pos": 47, "chunk": 23, "ner": 9}),
        ("conll2000", (8936, 0, 2012), {"pos": 44, "chunk": 23}),
    ],
)
def test_conll_as_published(name: str, sizes: tuple[int, ...], heads: dict[str, int]) -> None:
    """Sizes of the shared tasks; A.3: 47, 23 and 9 rows for CoNLL-2003, 44 and 23 for CoNLL-2000."""
    corpus = load(name)
    assert (len(corpus.train), len(corpus.dev), len(corpus.test)) == sizes
    assert [task.scheme for task in corpus.tasks] == ["plain", "iob2", "iob2"][: len(heads)]
    assert all(not any(task.illegal.values()) for task in corpus.tasks)
    prepared = prepare(_dissertation(name, ",".join(heads)))
    assert {task.name: len(task.labels) for task in prepared.tasks} == heads
    assert len(prepared.train) == sizes[0]  # nothing is held out
    if name == "conll2003":
        assert [len(task.labels) for task in corpus.tasks] == [45, 20, 9]
        assert corpus.task("chunk").unseen == {"dev": ("I-PRT",)}
        assert choose(corpus_overlaps(name, None, tuple(heads)))[0] == "cooccurrence"


def test_both_pos() -> None:
    """6.3: 44 of 47 tags are shared."""
    both = prepare(_dissertation("both-pos", "pos-2003,pos-2000", select_by="last"))
    first, second = (set(task.labels) for task in both.tasks)
    assert (len(first), len(second)) == (47, 44)
    assert second < first
    assert (len(both.train), len(both.dev), len(both.test)) == (14041 + 8936, 3250, 3453 + 2012)
    few = prepare(
        RunConfig.build(corpus="both-pos", tasks="pos-2003,pos-2000", paradigm="mtl", fraction=0.01)
    )
    parts = [sentence.part for sentence in few.train]
    assert (parts.count("conll2003"), parts.count("conll2000")) == (140, 80)
    assert len(few.dev) == 3250 + 9


def test_texts_and_pairs_as_they_lie_there() -> None:
    """Sizes; labels in the order of their digits; the published scale of STS."""
    sizes = {"sst": (8544, 1101), "quora": (8490, 11722), "sts": (6040, 863)}
    for name, (train, test) in sizes.items():
        corpus = load(name)
        assert (len(corpus.train), len(corpus.dev), len(corpus.test)) == (train, 0, test)
        assert [task.name for task in corpus.tasks] == list(CATALOGUE[name].tasks) == [name]
        first, *others = read(name).notes
        assert first == "There is no test file: validation.tsv is the test split."
        # Quora's questions are quoted as in CSV.
        assert ["in quotation marks" in note for note in others] == [True] * 2 * (name == "quora")
        assert {sentence.second is None for sentence in corpus.train} == {name == "sst"}
        assert load(str(locate(f"sentences/{name}"))).text_hash == corpus.text_hash
    kinds = {name: load(name).tasks[0] for name in sizes}
    assert {name: task.scheme for name, task in kinds.items()} == {
        "sst": "text",
        "quora": "pair",
        "sts": "score",
    }
    assert kinds["sst"].labels == kinds["sst"].inventory == ("0", "1", "2", "3", "4")
    assert (kinds["quora"].labels, kinds["sts"].labels, kinds["sts"].scale) == (
        ("0", "1"),
        ("score",),
        (0, 5),
    )
    assert load("sst").train[0].tokens[:3] == ("The", "Rock", "is")
    assert load("sts").test[1].labels == {"sts": ("4.6",)}


def test_texts_beside_words() -> None:
    whole = load("joined:sst+quora+sts+conll2003")
    assert [task.name for task in whole.tasks] == ["sst", "quora", "sts", "pos", "chunk", "ner"]
    assert Counter(sentence.whole for sentence in whole.train) == {True: 8544 + 8490 + 6040, False: 14041}
    config = RunConfig.build(
        corpus="joined:sst+quora+sts", tasks="sst,quora,sts", paradigm="mtl", fraction=0.25
    )
    few = prepare(config)
    assert (len(few.train), len(few.dev), len(few.test)) == (5191, 577, 13686)
    assert (
        "sts has no dev split: 151 training sentences, drawn with seed 1, are held out as one." in few.notes
    )


def test_ud_lines() -> None:
    corpus = load("ud-lines")
    labels = {task.name: len(task.labels) for task in corpus.tasks}
    assert (labels["upos"], labels["xpos"], labels["deprel"]) == (17, 143, 46)
    assert tuple(labels) == CATALOGUE["ud-lines"].tasks
    assert set(corpus.task("feats:Number").labels) == {"_", "Sing", "Plur"}
    assert (len(corpus.train), len(corpus.dev), len(corpus.test)) == (3457, 1118, 1121)
    assert "train.conllu: 690 rows of multiword ranges and empty nodes left out." in corpus.notes
    assert choose(corpus_overlaps("ud-lines", None, ("upos", "xpos")))[0] == "cooccurrence"
