"""Which text a corpus holds is known without reading it, until its files change."""

from __future__ import annotations

from pathlib import Path

from core.corpora import load
from core.corpora.loading import read, text_known
from tests.making import conll_folder


def test_the_text_of_a_corpus_is_known_once_it_was_read(tmp_path: Path) -> None:
    folder = conll_folder(tmp_path / "own")
    columns = ("tokens", "ner", "pos")
    for name in (str(folder), f"joined:{folder}+demo?train=5,1200"):
        assert text_known(name, columns) is None
        load(name, columns)
        assert text_known(name, columns) == read(name, columns).text_hash
    (folder / "train.conll").write_text("A X O\n")
    assert text_known(str(folder), columns) is None
