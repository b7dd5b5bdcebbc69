"""Recomputes the figures of a report from the runs of a store, and says what differs."""

from __future__ import annotations

import json
import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from html.parser import HTMLParser
from typing import Any

from core import __version__
from core.errors import MRNLabError
from core.plain_text import shortened
from core.store import RunState, Store
from core.wording import first_of, plural
from jobs.reports.answered import Answered, answered, overview, run_hashes
from jobs.reports.html import html

DOCUMENT = "mrnlab-report"
"""The id of the element of a report that holds its figures as JSON."""
FORMAT = 1
_EXACT = 1e-9


@dataclass(frozen=True)
class Verified:
    """What a report is, and what differs: sentences, none where all is as the store has it."""

    made: str
    version: str
    runs: int
    figures: int
    problems: tuple[str, ...]


class _Reader(HTMLParser):
    """The tables of a report by name, as rows of texts, the answers, and the JSON of its figures."""

    def __init__(self) -> None:
        super().__init__(convert_charrefs=True)
        self.tables: dict[str, list[list[str]]] = {}
        self.answers: list[str] = []
        self.document = ""
        self._table: list[list[str]] | None = None
        self._texts: list[str] | None = None
        self._in_document = False

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        given = dict(attrs)
        self._in_document = tag == "script" and given.get("id") == DOCUMENT
        if tag == "table" and (name := given.get("data-table")):
            self._table = self.tables.setdefault(name, [])
        elif tag == "tr" and self._table is not None:
            self._table.append([])
        elif (tag in ("td", "th") and self._table) or (tag, given.get("class")) == ("p", "answer"):
            self._texts = []

    def handle_endtag(self, tag: str) -> None:
        if tag == "table":
            self._table = None
        elif self._texts is not None and tag in ("td", "th", "p"):
            text, self._texts = "".join(self._texts), None
            if tag == "p":
                self.answers.append(text)
            elif self._table:
                self._table[-1].append(text)

    def handle_data(self, data: str) -> None:
        if self._in_document:
            self.document += data
        elif self._texts is not None:
            self._texts.append(data)


def verify(store: Store, text: str, place: str = "in this store") -> Verified:
    """Compares what a report shows and keeps with what the runs of the store give.

    Runs are found by their hashes, whatever their numbers here. `place` says in sentences where they are.
    Raises MRNLabError where the text is no report, or none of its runs is in the store.
    """
    file = _read(text)
    document = json.loads(file.document)
    problems = []
    if document["mrnlab"] != __version__:
        problems.append(
            f"The report was made by mrnlab {document['mrnlab']}, and this is {__version__}: rules of choice "
            "and tests may have changed between them."
        )
    ids, missing = _runs_here(store, document["runs"], place)
    problems += missing
    if not ids:
        raise MRNLabError(f"None of the report's runs is {place} as it was. {problems[-1]}")
    here, _ = answered(store, ids, document["split"])
    by_data = {each.data: each for each in here}
    kept = {str(each["data"]): each for each in document["answers"]}
    for data in kept.keys() - by_data.keys():
        problems.append(f"There are no results on {data} {place}.")
    if file.answers and len(here) > 1:
        shown = set(map(_joined, file.answers))
        problems += [
            f"The report does not say, as the runs do: {sentence}"
            for sentence in overview(here)
            if sentence not in shown
        ]
    figures = 0
    for data, each in by_data.items():
        if data not in kept:
            problems.append(f"The report lacks the results on {data}.")
            continue
        problems += _kept_problems(kept[data], each)
        if file.answers and each.sentence not in map(_joined, file.answers):
            problems.append(f"The answer on {data} is not in the report as the runs give it: {each.sentence}")
        for name, sheet in each.sheets.items():
            again = _read_tables(html(sheet, name=name))[name]
            if name in file.tables:
                figures += sum(map(len, again[1:]))
                problems += _table_problems(name, file.tables[name], again)
    if not figures:
        problems.append("The report shows no table of scores or differences; what it keeps was compared.")
    return Verified(
        document["made"],
        document["mrnlab"],
        len(document["runs"]),
        figures,
        tuple(map(shortened_line, problems)),
    )


def shortened_line(problem: str) -> str:
    """A sentence of what differs, on one line of bearable length."""
    return shortened(problem, 400)


def _read(text: str) -> _Reader:
    reader = _Reader()
    reader.feed(text)
    try:
        document = json.loads(reader.document)
        is_report = document["format"] == FORMAT and {"mrnlab", "made", "split", "runs", "answers"} <= {
            *document
        }
    except (ValueError, TypeError, KeyError):
        is_report = False
    if not is_report:
        raise MRNLabError("This file is no report of `mrnlab report`, or one of another version.")
    return reader


def _read_tables(text: str) -> dict[str, list[list[str]]]:
    reader = _Reader()
    reader.feed(text)
    return reader.tables


def _joined(text: str) -> str:
    return " ".join(text.split())


def _runs_here(store: Store, hashes: Mapping[str, str], place: str) -> tuple[list[int], list[str]]:
    """The numbers of the report's runs in this store, and a sentence on those that it lacks."""
    finished = store.runs(states={RunState.SUCCEEDED}, archived=None)
    here: dict[str, list[int]] = {}
    for run_id, of_run in run_hashes(store, finished).items():
        here.setdefault(of_run, []).append(run_id)
    ids = [here[of_run][0] for of_run in hashes.values() if of_run in here]
    lacking = [run_id for run_id, of_run in hashes.items() if of_run not in here]
    if not lacking:
        return ids, []
    names = first_of([f"run {run_id}" for run_id in lacking])
    return ids, [
        f"{plural(len(lacking), 'run')} of the report, by its numbers {names}, "
        f"{'is' if len(lacking) == 1 else 'are'} not {place} with the same description and scores."
    ]


def _kept_problems(kept: Mapping[str, Any], each: Answered) -> Iterator[str]:
    """What differs between the figures that the file keeps and those of the store."""
    again = json.loads(json.dumps(each.document))
    if _unversioned(kept["signature"]) != _unversioned(again["signature"]):
        yield f"{each.data}: the signature is '{again['signature']}', in the report '{kept['signature']}'."
    for part in ("scores", "differences"):
        if len(kept[part]) != len(again[part]):
            yield f"{each.data}: {len(again[part])} {part} here, {len(kept[part])} in the report."
            continue
        for old, new in zip(kept[part], again[part], strict=True):
            for field, value in new.items():
                if field != "signature" and not _same(old.get(field), value):
                    yield (
                        f"{each.data}, {new['configuration']}, {new['task']}: {field} is {value} here, "
                        f"{old.get(field)} in the report."
                    )


def _unversioned(signature: str) -> str:
    return str(signature).partition(" | ")[2]


def _same(a: object, b: object) -> bool:
    if isinstance(a, float | int) and isinstance(b, float | int):
        return a == b or math.isclose(a, b, rel_tol=_EXACT, abs_tol=_EXACT)
    return a == b


def _table_problems(
    name: str, shown: Sequence[Sequence[str]], again: Sequence[Sequence[str]]
) -> Iterator[str]:
    """What differs between a table as it is shown and as the store gives it, cell by cell."""
    if [len(row) for row in shown] != [len(row) for row in again]:
        yield f"The table of {name} has other rows or columns than the store gives."
        return
    head = again[0]
    for old, new in zip(shown, again, strict=True):
        for column, before, now in zip(head, old, new, strict=False):
            if _joined(before) != _joined(now):
                yield f"{name}, {new[0]}, {column}: '{_joined(now)}' here, '{_joined(before)}' in the report."
