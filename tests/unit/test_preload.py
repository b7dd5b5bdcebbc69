"""What browsers read while a page starts."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path

import pytest
import streamlit as st

from dashboard import preload
from tests.pages.conftest import page_names

STATIC = Path(st.__file__).parent / "static"


@pytest.fixture(autouse=True)
def forgotten() -> Iterator[None]:
    """What is cached of Streamlit's list is forgotten."""
    yield
    for cached in (preload.links, preload._chunks):
        cached.cache_clear()


def test_each_part_is_one_of_streamlit_and_each_page_one_of_ours() -> None:
    names = {chunk.get("name") for chunk in preload._chunks().values()}
    assert {part for parts in (preload._EVERYWHERE, *preload.PARTS.values()) for part in parts} <= names
    assert {*preload.PARTS} <= {*page_names(), "run"}


@pytest.mark.parametrize("page", ["", "studies", *preload.PARTS])
def test_links_lead_to_scripts_that_the_empty_page_does_not_read(page: str) -> None:
    files = re.findall(r'<link rel="modulepreload" crossorigin href="\./([^"]+)">', preload.links(page))
    empty = (STATIC / "index.html").read_text(encoding="utf-8")
    assert files
    assert len(files) == len(set(files))
    for file in files:
        assert (STATIC / file).is_file(), file
        assert file not in empty, file
    assert any("/BidiComponent." in file for file in files)
    assert any("/DataFrame." in file for file in files) == (page == "run")


def test_a_version_of_streamlit_without_a_list_has_no_links(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setattr(preload, "_STATIC", tmp_path)
    for cached in (preload.links, preload._chunks):
        cached.cache_clear()
    assert preload.links("runs") == ""
