"""What a report answers: of each data of its runs the table, its verdicts, and the figures."""

from __future__ import annotations

import hashlib
import json
from collections import Counter
from collections.abc import Collection, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from itertools import takewhile
from typing import Any

from core.corpora.derived import is_derived
from core.errors import MRNLabError
from core.results.comparisons import (
    Difference,
    answers,
    counts_sentence,
    differences,
    headline,
    mean_answer,
    mean_differences,
)
from core.results.naming import paradigm_name
from core.results.pairs import default_pair
from core.results.records import difference_records, score_records
from core.results.signature import signature
from core.results.stored import Results, stored_results
from core.results.table import ResultRow, ResultTable
from core.store import Run, RunState, Store
from core.studies import STUDIES
from core.wording import all_of, plural
from jobs.reports.parts import Sheet
from jobs.reports.render import difference_sheet, score_sheet


@dataclass(frozen=True)
class Answered:
    """The answer on one data. `pair` are the rows that are compared first, None where there is one row.

    `about` says in words what the data is, where a study has words for it.
    """

    data: str
    about: str
    table: ResultTable
    runs: tuple[Run, ...]
    pair: tuple[ResultRow, ResultRow] | None

    @property
    def title(self) -> str:
        """The title of a report on this data."""
        if self.pair is None:
            return f"{self.table.rows[0].name} on {self.about}"
        return f"{self.pair[0].name} against {self.pair[1].name} on {self.about}"

    @property
    def question(self) -> str:
        """What the report asks of this data."""
        split, tasks = self.table.split, all_of(list(self.table.scored_tasks))
        if self.pair is None:
            return f"How well does {self.table.rows[0].name} label {split} data of {self.about} ({tasks})?"
        a, b = (row.name for row in self.pair)
        return f"Does {a} score higher than {b} on {split} data of {self.about} ({tasks})?"

    @property
    def sentence(self) -> str:
        """The verdicts in one sentence, as Compare has them."""
        if self.pair is None:
            return f"{self.table.rows[0].name} is the only row with {self.table.split} scores on {self.data}."
        return headline(self.pair[0].name, self.pair[1].name, self.of_pair)

    @cached_property
    def of_pair(self) -> list[Difference]:
        """The differences of the pair, task by task."""
        return [] if self.pair is None else answers(self.table, self.pair[0].key, self.pair[1].key)

    @property
    def lines(self) -> list[tuple[str, str]]:
        """By task, and the mean over tasks, what the difference of the pair is."""
        if self.pair is None:
            return []
        mean = mean_answer(self.table, self.pair[0].key, self.pair[1].key)
        shown = self.of_pair if mean is None else [*self.of_pair, mean]
        return [(delta.task, delta.sentence) for delta in shown]

    @cached_property
    def from_baseline(self) -> list[Difference]:
        """The differences of every row from the second of the pair, also in the mean of tasks."""
        if self.pair is None:
            return []
        base = self.pair[1].key
        return [*differences(self.table, base), *mean_differences(self.table, base)]

    @property
    def sheets(self) -> dict[str, Sheet]:
        """The tables that `mrnlab verify` recomputes, by name."""
        sheets = {f"scores of {self.data}": score_sheet(self.table, self.data)}
        if self.pair is not None and self.from_baseline:
            sheet = difference_sheet(self.from_baseline, self.table, self.pair[1].key, self.data)
            sheets[f"differences on {self.data}"] = sheet
        return sheets

    @property
    def document(self) -> dict[str, Any]:
        """The figures with their signature, as they are kept in the file of a report."""
        scores = [record | {"runs": ""} for record in score_records(self.table)]
        return {
            "data": self.data,
            "signature": signature(self.table),
            "scores": scores,
            "differences": difference_records(self.from_baseline, self.table),
        }


def answered(store: Store, run_ids: Collection[int], split: str) -> tuple[list[Answered], Results]:
    """The answer on each data of these runs, that with the most runs first.

    Raises MRNLabError where none of them has finished or has scores on the split.
    """
    if not any(run.state is RunState.SUCCEEDED for run in store.runs(run_ids)):
        raise MRNLabError("None of these runs has finished; a report is on finished runs.")
    results = stored_results(store, run_ids, with_facts=True)
    tables = results.method_tables(split)
    if not tables:
        raise MRNLabError(f"None of these runs has {split} scores that can be read. {results.note}".rstrip())
    of_data, words = [], _words_of_studies()
    for group, table in tables.items():
        pair, runs = default_pair(table), tuple(results.groups[group])
        rows = None if pair is None else (table.row(pair[0]), table.row(pair[1]))
        about = words.get(runs[0].config.corpus, group.name)
        of_data.append(Answered(group.name, about, table, runs, rows))
    having = Counter(each.about for each in of_data)
    of_data = [each if having[each.about] == 1 else replace(each, about=each.data) for each in of_data]
    return sorted(of_data, key=lambda each: -len(each.runs)), results


def _words_of_studies() -> dict[str, str]:
    """By derived corpus what the titles of all settings of studies on it begin with."""
    titles: dict[str, list[list[str]]] = {}
    for study in STUDIES.values():
        for setting in study.settings:
            if is_derived(corpus := str(setting.base.get("corpus"))):
                titles.setdefault(corpus, []).append(setting.title.split(", "))
    words = {}
    for corpus, of in titles.items():
        alike = takewhile(lambda parts: len(set(parts)) == 1, zip(*of, strict=False))
        words[corpus] = ", ".join(parts[0] for parts in alike)
    return {corpus: text for corpus, text in words.items() if text}


def title(of_data: Sequence[Answered]) -> str:
    """The title of a report on these data."""
    if len(of_data) == 1:
        return of_data[0].title
    pairs = [f"{a} against {b}" for a, b in _by_paradigms(of_data)]
    return f"{pairs[0] if len(pairs) == 1 else 'Methods compared'} on {plural(len(of_data), 'data set')}"


def _by_paradigms(of_data: Sequence[Answered]) -> dict[tuple[str, str], list[Answered]]:
    """The data with two rows to compare, by the names of their paradigms."""
    by_pair: dict[tuple[str, str], list[Answered]] = {}
    for each in of_data:
        if each.pair is not None and each.of_pair:
            a, b = (paradigm_name(row.config) for row in each.pair)
            by_pair.setdefault((a, b), []).append(each)
    return by_pair


def overview(of_data: Sequence[Answered]) -> list[str]:
    """The number of each verdict over several data: a sentence for each two paradigms that are compared."""
    return [
        counts_sentence(
            a,
            b,
            Counter(delta.verdict for each in having for delta in each.of_pair),
            plural(len(having), "data set"),
        )
        for (a, b), having in _by_paradigms(of_data).items()
    ]


def run_hashes(store: Store, runs: Sequence[Run]) -> dict[int, str]:
    """By run a hash of its description, the text it was scored on, and its scores, as any store has them."""
    conditions = store.conditions(runs)
    scores: dict[int, list[list[object]]] = {run.id: [] for run in runs}
    for score in store.scores(list(scores), with_reports=False):
        scores[score.run_id].append([score.split, score.task, score.score_name, repr(score.score)])
    hashes = {}
    for run in runs:
        of_run = conditions.get(run.id)
        text = None if of_run is None else of_run.text
        document = [run.config.to_json(), text, sorted(scores[run.id], key=str)]
        hashes[run.id] = hashlib.sha256(json.dumps(document).encode()).hexdigest()
    return hashes
