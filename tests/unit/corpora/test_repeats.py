"""Sentences of dev and test that are in train: counted in the report, with the run, beside its scores."""

from __future__ import annotations

from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from core.config import RunConfig
from core.corpora import load, prepare
from core.corpora.repeats import Repeat, repeats, repeats_notes
from core.corpora.types import Corpus, Sentence
from core.training.setup import set_up
from tests.making import corpus_folder

_WORDS = st.lists(st.sampled_from(["a", "b", "A", "ab", "", "\udcff"]), max_size=4).map(tuple)
_PAIRS = st.tuples(_WORDS, st.none() | _WORDS)
_SPLIT = st.lists(_PAIRS, max_size=12)


@given(_SPLIT, _SPLIT, _SPLIT)
def test_they_are_counted_by_the_words_of_both_texts(
    train: list[tuple[tuple[str, ...], tuple[str, ...] | None]],
    dev: list[tuple[tuple[str, ...], tuple[str, ...] | None]],
    test: list[tuple[tuple[str, ...], tuple[str, ...] | None]],
) -> None:
    train_split, dev_split, test_split = (
        [Sentence(first, {}, part=str(number), second=second) for number, (first, second) in enumerate(split)]
        for split in (train, dev, test)
    )
    counted = {
        (each.split, each.inside): (each.count, each.total)
        for each in repeats(Corpus("c", (), train_split, dev_split, test_split))
    }
    expected = {
        ("dev", "train"): (sum(pair in train for pair in dev), len(dev)),
        ("test", "train"): (sum(pair in train for pair in test), len(test)),
        ("dev", "test"): (sum(pair in test for pair in dev), len(dev)),
    }
    assert counted == {key: value for key, value in expected.items() if value[0]}


def _folder(path: Path) -> str:
    train = [f"w{number} X\nend Y\n" for number in range(30)]
    test = [*train[:15], *(f"v{number} Y\n" for number in range(5))]
    return corpus_folder(path, {"train.conll": "\n".join(train), "test.conll": "\n".join(test)})


def test_they_are_in_the_report_and_with_the_run(tmp_path: Path, encoder: str) -> None:
    note = "15 of 20 test sentences are in train, word for word."
    folder = _folder(tmp_path / "own")
    assert note in load(folder, ("tokens", "pos")).notes
    config = RunConfig.build(
        corpus=folder, columns="tokens,pos", tasks="pos", paradigm="stl", encoder=encoder, max_length=32
    )
    facts = set_up(config, prepare(config)).facts
    (on_test,) = (repeat for repeat in facts.repeats if repeat.split == "test")
    assert on_test.sentence in facts.notes
    assert on_test.total == 20
    assert on_test.count < 15  # a part of the training sentences is held out for dev
    assert any(repeat.inside == "test" for repeat in facts.repeats)


def test_of_texts_and_pairs(tmp_path: Path) -> None:
    pairs = "text1\ttext2\tscore\nA dog\tA cat\t4.2\nA cat\tA dog\t1\n"
    swapped = "text1\ttext2\tscore\nA dog\tA cat\t3\nA dog\tA dog\t1\n"
    folder = corpus_folder(tmp_path / "pairs", {"train.tsv": pairs, "test.tsv": swapped})
    assert "1 of 2 test pairs is in train, word for word." in load(folder).notes
    texts = corpus_folder(
        tmp_path / "texts", dict.fromkeys(("train.tsv", "test.tsv"), "text\tlabel\nGood\ta\nBad\tb\n")
    )
    assert "2 of 2 test texts are in train, word for word." in load(texts).notes


@pytest.mark.parametrize(
    ("split", "notes"),
    [
        (
            "test",
            (
                "1 of 9 dev sentences is in test, word for word. "
                "Models are not trained on dev, so this hardly matters.",
                "1,500 to 1,700 of 2,000 test sentences are in train, word for word. "
                "Their scores are partly of memory, for all configurations alike.",
            ),
        ),
        (
            "dev",
            (
                "1 of 9 dev sentences is in test, word for word. "
                "Models are not trained on dev, so this hardly matters.",
            ),
        ),
    ],
)
def test_several_runs_have_one_sentence(split: str, notes: tuple[str, ...]) -> None:
    counted = [Repeat("test", "train", count, 2000) for count in (1700, 1500, 1500)]
    assert repeats_notes([*counted, Repeat("dev", "test", 1, 9)], split) == notes
