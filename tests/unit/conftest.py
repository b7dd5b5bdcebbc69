"""Fixtures that several unit tests share."""

from __future__ import annotations

import pytest

from tests.tiny import tiny_bert


@pytest.fixture(scope="session")
def encoder(tmp_path_factory: pytest.TempPathFactory) -> str:
    """The folder of a tiny BERT. It is shared: a test that changes an encoder makes its own."""
    return str(tiny_bert(tmp_path_factory.mktemp("encoder")))
