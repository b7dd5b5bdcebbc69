"""Tables and differences as records, which CSV, JSON and DataFrames share: scores in [0, 1]."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict

from core.config import OTHER
from core.evaluation.costs import Cost
from core.results.comparisons import Difference
from core.results.signature import signature
from core.results.table import ResultTable

SCORE_COLUMNS = (
    "corpus", "fraction", "configuration", "chosen", "candidates", "encoder", "encoder_training", "task",
    "split", "score_name", "mean", "sd", "n", "low", "high", "best", "precision", "text", "runs", "signature",
)  # fmt: skip

COST_COLUMNS = ("models", "parameters", "trained_parameters", "peak_memory", "devices", "seconds")
"""The cost of a configuration: its models' weights, bytes, the kinds of device, seconds per seed."""


_NO_SCORE = {"mean": None, "sd": None, "n": 0, "low": None, "high": None}


def score_records(table: ResultTable, *, cost: bool = False) -> list[dict[str, object]]:
    """A record per configuration and task with SCORE_COLUMNS, with `cost` also COST_COLUMNS.

    Scores are in [0, 1]. The mean is None where all scores are undefined. Of a method with several
    `candidates`, `chosen` is the name of the one that dev chose.
    """
    records, of_table = [], signature(table)
    for row in table.rows:
        for task in table.tasks:
            if task not in row.cells and task not in row.undefined:
                continue
            cell, chosen = row.cells.get(task), row.conditions.alignment
            is_known = row.config.paradigm != OTHER
            runs = row.undefined[task] if cell is None else cell.run_ids.values()
            record = {
                "corpus": row.config.corpus,
                "fraction": row.config.fraction,
                "configuration": row.name,
                "chosen": row.chosen,
                "candidates": len(row.tried),
                "encoder": row.config.encoder if is_known else None,
                "encoder_training": row.config.encoder_training if is_known else None,
                "task": task,
                "split": table.split,
                "score_name": table.scored_by[task],
                **(_NO_SCORE if cell is None else asdict(cell.summary)),
                "best": (row.key, task) in table.bold,
                "precision": row.conditions.precision,
                "text": row.conditions.text,
                "runs": " ".join(map(str, runs)),
                "signature": of_table,
                "auto_alignment": [chosen] if chosen and row.config.alignment == "auto" else [],
            }
            records.append(record | (_cost_record(row.cost) if cost else {}))
    return records


def _cost_record(cost: Cost | None) -> dict[str, object]:
    if cost is None:
        return dict.fromkeys(COST_COLUMNS)
    values = (cost.models, cost.parameters, cost.trained, cost.memory, " ".join(cost.devices), cost.seconds)
    return dict(zip(COST_COLUMNS, values, strict=True))


DIFFERENCE_COLUMNS = (
    "configuration", "baseline", "task", "split", "difference", "low", "high", "seeds", "p_seeds_holm",
    "sentences", "p_sentences_holm", "verdict", "remark",
)  # fmt: skip


def difference_records(differences: Sequence[Difference], table: ResultTable) -> list[dict[str, object]]:
    """A record of DIFFERENCE_COLUMNS per difference, scores in [0, 1]."""
    rows = (
        (
            *(delta.row.name, delta.base.name, delta.task, table.split, delta.mean),
            *(delta.interval or (None, None)),
            *(delta.seeds, delta.p, delta.sentences and delta.sentences.sentences, delta.p_sentences),
            *(delta.verdict, delta.remark),
        )
        for delta in differences
    )
    return [dict(zip(DIFFERENCE_COLUMNS, row, strict=True)) for row in rows]
