"""How many SQL statements a page runs, counted at the database, the page run without a browser."""

from __future__ import annotations

import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from sqlalchemy import Engine, event
from streamlit.testing.v1 import AppTest

__all__ = ["Statements", "statements"]

APP = Path(__file__).resolve().parents[2] / "dashboard" / "main.py"
_PATIENCE_S = 120


@dataclass(frozen=True)
class Statements:
    """How many statements one opening of a page runs, and its milliseconds, all Python."""

    count: int
    page_ms: float


def statements(page: str, query: dict[str, str]) -> tuple[Statements, Statements]:
    """Of the first opening of a page in this process, and of the next, in another session; over the store of
    MRNLAB_HOME.
    """
    return _opened(page, query), _opened(page, query)


def _opened(page: str, query: dict[str, str]) -> Statements:
    app = AppTest.from_file(str(APP), default_timeout=_PATIENCE_S)
    app.switch_page(f"app_pages/{page}.py")
    for name, value in query.items():
        app.query_params[name] = value
    began = time.perf_counter()
    with _counted() as ran:
        app.run()
    assert not app.exception, [one.value for one in app.exception]
    return Statements(len(ran), 1e3 * (time.perf_counter() - began))


@contextmanager
def _counted() -> Iterator[list[str]]:
    """The statements that any engine runs in the block, but for those that open a transaction."""
    ran: list[str] = []

    def note(_connection: Any, _cursor: Any, statement: str, *_: Any) -> None:
        if not statement.startswith("BEGIN"):
            ran.append(statement)

    event.listen(Engine, "after_cursor_execute", note)
    try:
        yield ran
    finally:
        event.remove(Engine, "after_cursor_execute", note)
