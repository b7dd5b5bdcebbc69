"""mrnlab relations --numbers: every covariance of a run in numbers, and its strongest pairs."""

from __future__ import annotations

from typing import Any

from core.mrn.numbers import strongest_pairs
from core.mrn.relations import MODES, Relations
from core.mrn.rows import impossible_blocks, row_names
from core.store import MetricKey, Run, SnapshotKey, Store
from core.training.events import TOTAL
from core.training.relation_metrics import RELATION_METRICS, numbers_at
from jobs.cli.output import print_csv, print_json, print_table, say, tell

__all__ = ["numbers_document", "print_numbers"]

_PAIRS = 5


def numbers_document(store: Store, run: Run, key: SnapshotKey, learned: Relations) -> dict[str, Any]:
    """All there is to say of one snapshot in numbers; penalty and J are None where none was logged there."""
    logged = {}
    for name in ("penalty", "objective", *RELATION_METRICS):
        for series in store.metrics([run.id], MetricKey(TOTAL, "train", name), after_step=key.step - 1):
            if series.step[0] == key.step:
                logged[name] = float(series.value[0])
    return {
        "run": run.id,
        "step": key.step,
        "epoch": key.epoch,
        "penalty": logged.get("penalty"),
        "objective": logged.get("objective"),
        "modes": {mode: _mode(run, learned, logged, mode) for mode in MODES},
    }


def _mode(run: Run, learned: Relations, logged: dict[str, float], mode: str) -> dict[str, Any]:
    matrix = learned.correlation(mode)
    names, owners = row_names(run.facts, run.config.tasks, mode, len(matrix))
    pairs = strongest_pairs(matrix, _PAIRS, impossible_blocks(run.facts, mode, owners))
    found = numbers_at(logged, mode, learned)
    return {
        "size": len(matrix),
        "learned": mode in (run.config.learn or MODES),
        "effective_rank": found.effective_rank,
        "trace": found.trace,
        "condition": found.condition,
        "strongest": found.strongest,
        "pairs": [{"first": names[i], "second": names[j], "correlation": value} for i, j, value in pairs],
    }


def print_numbers(document: dict[str, Any], *, csv: bool, json_: bool) -> None:
    """The document as JSON, or as two tables: a row per mode, a row per pair; as CSV the first of them."""
    if json_:
        print_json(document)
        return
    headers = ("mode", "rows", "learned", "effective rank", "trace", "condition", "strongest")
    modes = document["modes"]
    rows = [
        (mode, one["size"], "yes" if one["learned"] else "no", *map(_written, _values(one)))
        for mode, one in modes.items()
    ]
    if csv:
        print_csv(headers, [(*row[:3], *_values(one)) for row, one in zip(rows, modes.values(), strict=True)])
        return
    penalty, objective = _written(document["penalty"]), _written(document["objective"])
    say(f"Run {document['run']}, step {document['step']}, epoch {document['epoch']:.1f}.")
    say(f"Penalty {penalty or 'not logged at this step'}, objective J {objective or 'not logged'}.")
    print_table(headers, rows)
    pairs = [
        (mode, pair["first"], pair["second"], f"{pair['correlation']:z.3f}")
        for mode, one in modes.items()
        if one["learned"]
        for pair in one["pairs"]
    ]
    if pairs:
        tell("")
        print_table(("mode", "first", "second", "correlation"), pairs)


def _values(one: dict[str, Any]) -> tuple[float | None, ...]:
    return (one["effective_rank"], one["trace"], one["condition"], one["strongest"])


def _written(value: float | None) -> str:
    return "" if value is None else f"{value:.4g}"
