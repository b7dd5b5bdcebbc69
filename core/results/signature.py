"""The signature of a table of results: in one line, what its figures and verdicts depend on."""

from __future__ import annotations

from collections.abc import Iterable

from core import __version__
from core.results.naming import corpus_name, field_text
from core.results.table import ResultTable


def signature(table: ResultTable) -> str:
    """Version, text, split and scores, seeds, how candidates were chosen, tests, what matters.

    `mrnlab 0.2.0 | conll2003 text 818db9, 5% of the data | test f1_conll | 5 seeds | candidate by dev (5) |
    paired t, Holm over 3 | equivalent within 0.5`. What does not apply is left out; it is short enough for a
    caption.
    """
    scores = dict.fromkeys(table.scored_by[task] for task in table.scored_tasks)
    seeds = {cell.summary.n for row in table.rows for cell in row.cells.values()}
    candidates = {len(row.candidates) for row in table.rows if row.choice}
    parts = [
        f"mrnlab {__version__}",
        *dict.fromkeys(_data(table)),
        " ".join(filter(None, (table.split, ", ".join(scores)))),
        f"{_range(seeds)} seed{'s' * (seeds != {1})}",
        f"candidate by dev ({_range(candidates)})" if candidates else "",
        _test(table),
        f"equivalent within {100 * table.matters:g}" if table.tests else "",
    ]
    return " | ".join(filter(None, parts))


def _data(table: ResultTable) -> Iterable[str]:
    texts = sorted({row.conditions.text[:6] for row in table.rows if row.conditions.text})
    for row in table.rows:
        share = [] if row.config.fraction == 1 else [field_text("fraction", row.config.fraction)]
        text = f" text {' and '.join(texts)}" if texts else ", text not recorded"
        yield ", ".join([f"{corpus_name(row.config.corpus)}{text}", *share])


def _range(numbers: Iterable[int]) -> str:
    least, most = min(numbers, default=0), max(numbers, default=0)
    return str(least) if least == most else f"{least} to {most}"


def _test(table: ResultTable) -> str:
    if not table.tests:
        return "no test"
    names = {row.key: row.name for row in table.rows}
    against = "" if table.baseline is None else f" against {names[table.baseline]}"
    return f"paired t, Holm over {table.tests}{against}"
