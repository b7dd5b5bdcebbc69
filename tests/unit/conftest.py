"""Fixtures that several unit tests share."""

from __future__ import annotations

import copy
import functools
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from core.models.encoders import transformer
from core.store import ErrorInfo, Store
from tests.making import Clock, conll_folder
from tests.tiny import tiny_bert


@pytest.fixture(scope="session")
def encoder(tmp_path_factory: pytest.TempPathFactory) -> str:
    """The folder of a tiny BERT. It is shared: a test that changes an encoder makes its own."""
    return str(tiny_bert(tmp_path_factory.mktemp("encoder")))


@pytest.fixture(autouse=True, scope="session")
def encoders_read_once() -> Iterator[None]:
    """An encoder whose files have not changed is copied: Transformers takes four times as long to read it."""
    read = transformer._pretrained

    @functools.lru_cache(8)
    def kept(source: str, name: str, _files: object) -> Any:
        return read(source, name)

    def copied(source: str, name: str) -> Any:
        files = [(path.name, path.stat().st_size, path.stat().st_mtime_ns) for path in Path(source).glob("*")]
        return copy.deepcopy(kept(source, name, tuple(sorted(files)))) if files else read(source, name)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(transformer, "_pretrained", copied)
        yield


@pytest.fixture
def clock() -> Clock:
    """The clock of `store`."""
    return Clock()


@pytest.fixture
def store(clock: Clock) -> Iterator[Store]:
    """An empty store in memory, whose time stands still until the test moves it."""
    opened = Store.open("sqlite://", clock=clock)
    yield opened
    opened.close()


@pytest.fixture
def corpus(tmp_path: Path) -> Path:
    """A folder of CoNLL files with the columns tokens, ner and toy; a training split of 40 words."""
    return conll_folder(tmp_path / "corpus")


def error_of(store: Store, run_id: int) -> ErrorInfo:
    """Why the run did not succeed."""
    error = store.run(run_id).error
    assert error is not None
    return error
