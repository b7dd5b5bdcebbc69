"""The size of a corpus, told without reading it, against that of the sentences which a run is given."""

from __future__ import annotations

from pathlib import Path

import pytest

from core.corpora import CATALOGUE, load
from core.corpora.described import describe_size
from core.corpora.loading import known_sizes, read, text_known
from core.errors import CorpusUnread
from tests.making import conll_folder


@pytest.mark.parametrize("name", ["demo", "demo-pos-a", "demo-pos-b", "demo-both-pos"])
def test_what_the_catalogue_declares(name: str) -> None:
    size = describe_size(load(name))
    assert CATALOGUE[name].size == size
    assert known_sizes()(name, None, ()) == size


@pytest.mark.parametrize("is_read", [False, True])
@pytest.mark.parametrize(
    ("name", "tasks"),
    [
        ("demo?train=300", "pos,ner"),
        ("demo?train=9000&dev=5", "pos"),
        ("demo-both-pos?train=50", "pos-a,pos-b"),
        ("apart:demo?tokens=500", "pos,ner"),
        ("apart:demo?tokens=300,900,600", "chunk,ner"),
        ("apart:demo?tokens=300,900&tasks=ner,pos", "ner,pos"),
        ("apart:demo", "pos,ner"),
        ("apart:demo?tasks=pos,ner", "pos"),
        ("apart:demo-both-pos", "pos-a,pos-b"),
        ("apart:demo-both-pos?tokens=300,3000", "pos-a,pos-b"),
        ("simulated:demo?task=ner&tokens=500&tasks=3&samples=700", "ner,sim-1,sim-3"),
        ("simulated:demo?task=ner&tokens=500&tasks=2&samples=700,900", "ner,sim-2"),
        ("simulated:demo?tasks=3&tokens=800", "ner,sim-2"),
        ("simulated:demo?tasks=3", "ner,sim-2"),
        ("simulated:demo?tasks=2&samples=1000", "ner"),
        ("simulated:demo?tasks=2&sentences=same", "ner,sim-1,sim-2"),
        ("simulated:demo?tasks=2&sentences=same&tokens=900", "ner,sim-1"),
    ],
)
def test_what_the_name_of_a_derived_corpus_says(name: str, tasks: str, is_read: bool) -> None:
    """With and without the description that a reader leaves."""
    names = tuple(tasks.split(","))
    if is_read:
        load(name)
    size = known_sizes()(name, None, names)
    drawn = describe_size(load(name))
    for per_task in (False, True):
        assert size.words(names, per_task=per_task) == pytest.approx(
            drawn.words(names, per_task=per_task), rel=0.1
        )


def test_what_nothing_says_is_unknown_until_it_is_read(tmp_path: Path) -> None:
    folder = conll_folder(tmp_path / "own")
    joined = f"joined:{folder}+demo?train=5,1200"
    columns = ("tokens", "ner", "pos")
    for name, tasks in ((str(folder), ("ner",)), (joined, ("pos@demo",))):
        with pytest.raises(CorpusUnread) as raised:
            known_sizes()(name, columns, tasks)
        assert str(folder) in raised.value.corpus
        assert text_known(name, columns) is None
        corpus = load(name, columns)
        assert known_sizes()(name, columns, tasks).words(tasks) == pytest.approx(
            describe_size(corpus).words(tasks), rel=0.01
        )
        assert text_known(name, columns) == read(name, columns).text_hash
    # Drawn words are in the name, whatever the base has.
    assert known_sizes()(f"apart:{folder}?tokens=9", columns, ("ner", "pos")).words(("ner", "pos")) == 18
    (folder / "train.conll").write_text("A X O\n")
    with pytest.raises(CorpusUnread):
        known_sizes()(str(folder), columns, ("ner",))
    assert text_known(str(folder), columns) is None
