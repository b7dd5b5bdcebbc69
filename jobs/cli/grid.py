"""mrnlab study simulator: the report of a study of simulated tasks, and its table as CSV."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
import pandas as pd

from core.studies import Study
from core.transfer.formulas import PUBLISHED, Learned, learn
from core.transfer.grid import FACTORS, PlantedTasks, bands, cells, factors
from core.wording import all_of, plural
from jobs.reports.grids import GridRuns

Parts = Iterator[str | tuple[list[str], list[list[str]]]]

_FEWEST = 20  # cells from which formulas are learned
_NAMES = {"n_ner": "n of NER", "n_syn": "n of others", "T": "T", "alpha": "α"}


def table_csv(runs: GridRuns) -> str:
    """A row for each run."""
    return str(runs.table().to_csv(index=False, float_format="%.6g", lineterminator="\n"))


def grid_document(runs: GridRuns) -> dict[str, Any]:
    """All that the report says, as one document. F1 in percent, gains in points."""
    table, planted = runs.table(), runs.planted()
    document: dict[str, Any] = {"rows": table.astype(object).where(table.notna(), None).to_dict("records")}
    if planted is not None:
        document["planted"] = {
            "alphas": planted.alphas.tolist(),
            "ami": planted.ami.tolist(),
            "gains": planted.gains.tolist(),
            "learned": planted.learned.tolist(),
            "rank_of_gains": planted.rank_of_gains,
            "rank_of_learned": planted.rank_of_learned,
        }
    document["formulas"] = {
        part: {
            "front": [
                {
                    "formula": formula.text(),
                    "latex": formula.latex(),
                    "length": formula.length,
                    "train_mse": formula.train_mse,
                    "test_mse": formula.test_mse,
                }
                for formula in learned.front
            ],
            "chosen": learned.chosen.text(),
            "linear_mse": learned.linear_mse,
            "constant_mse": learned.constant_mse,
        }
        for part, learned in _learned(table).items()
    }
    return document


def _learned(table: pd.DataFrame) -> dict[str, Learned]:
    """What is learned of each part that has cells enough."""
    made = {part: factors(table, part) for part in FACTORS if part in set(table["part"])}
    return {part: learn(columns, f1) for part, (columns, f1) in made.items() if len(f1) >= _FEWEST}


def grid_report(study: Study, runs: GridRuns) -> Parts:
    """The answer, then what was planted, then each grid with its formulas."""
    table, planted = runs.table(), runs.planted()
    learned = _learned(table)
    yield "## The answer"
    if planted is not None:
        yield _planted_answer(planted)
    for part, formulas in learned.items():
        chosen = formulas.chosen
        yield (
            f"- {part.capitalize()} data: F1 ≈ `{chosen.text()}`. MSE {chosen.test_mse:.1f} on "
            f"{plural(formulas.test_rows, 'held-out cell')}; a linear fit has {formulas.linear_mse:.1f}, the "
            f"mean {formulas.constant_mse:.1f}."
        )
    if planted is not None:
        yield "## Planted relations"
        yield _planted_table(planted)
    for part in [name for name in FACTORS if name in set(table["part"])]:
        yield f"## {part.capitalize()} data"
        number = plural(len(cells(table[table["part"] == part])), "cell")
        yield f"{number}. F1 in percent, mean ± SD over all else that varies (runs):"
        for factor in ("n_ner", "n_syn", "T", "alpha"):
            if factor != "n_syn" or part == "unbalanced":
                yield _band_table(table, part, factor)
        if part in learned:
            yield from _formulas(part, learned[part])
            yield from _published(table, part)
    yield study.protocol


def _planted_answer(planted: PlantedTasks) -> str:
    seeds = plural(len(planted.ami), "seed")
    each = [
        " to ".join(f"{value:.2f}" for value in (min(by_seed), max(by_seed)))
        for by_seed in map(planted.by_seed, (planted.gains, planted.learned))
    ]
    return (
        f"- Rank correlation of planted AMI with measured gains: {planted.rank_of_gains:.2f} (means over "
        f"{seeds}; {each[0]} in single ones); with MRN's learned task correlation: "
        f"{planted.rank_of_learned:.2f} ({each[1]})."
    )


def _planted_table(planted: PlantedTasks) -> tuple[list[str], list[list[str]]]:
    def spread(values: Any, digits: int) -> str:
        sd = f" ± {np.std(values, ddof=1):.{digits}f}" if len(values) > 1 else ""
        return f"{np.mean(values):.{digits}f}{sd}"

    return ["α", "planted AMI", "gain in points", "learned correlation"], [
        [
            f"{alpha:g}",
            spread(planted.ami[:, place], 3),
            spread(planted.gains[:, place], 1),
            spread(planted.learned[:, place], 2),
        ]
        for place, alpha in enumerate(planted.alphas)
    ]


def _band_table(table: pd.DataFrame, part: str, factor: str) -> tuple[list[str], list[list[str]]]:
    by_alpha = factor == "alpha"
    figures = bands(table, part, factor)[[factor, "AMI", "mean", "SD", "runs"]].to_numpy(float)
    rows = [
        [
            f"{value:,g}",
            *([f"{ami:.2f}"] if by_alpha else []),
            f"{mean:.1f}" + ("" if np.isnan(sd) else f" ± {sd:.1f}") + f" ({number:.0f})",
        ]
        for value, ami, mean, sd, number in figures
    ]
    return [_NAMES[factor], *(["AMI"] if by_alpha else []), "F1"], rows


def _formulas(part: str, learned: Learned) -> Parts:
    yield f"### Formulas learned on {part} data"
    yield (
        ["formula", "length", "MSE, fitted", "MSE, held out"],
        [
            [f"`{each.text()}`", str(each.length), f"{each.train_mse:.1f}", f"{each.test_mse:.1f}"]
            for each in learned.front
        ],
    )
    yield (
        f"Fitted on {plural(learned.train_rows, 'cell')}, judged on {learned.test_rows} others. There a "
        f"linear fit has {learned.linear_mse:.1f} and the mean {learned.constant_mse:.1f}. Length counts "
        f"operators, functions, factors and constants. In LaTeX: ${learned.chosen.latex()}$"
    )


def _published(table: pd.DataFrame, part: str) -> Parts:
    columns, f1 = factors(table, part)
    judged = [each for each in PUBLISHED if set(each.factors) <= set(columns)]
    yield f"### Published formulas on this table ({part})"
    yield (
        ["equation", "F1 in percent", "MSE here", "printed"],
        [
            [
                f"({each.equation})",
                f"`{each.text}`",
                f"{each.error(columns, f1):,.0f}",
                "–" if each.printed_mse is None else f"{1e4 * each.printed_mse:,.0f}",
            ]
            for each in judged
        ],
    )
    numbers = all_of([f"({each.equation})" for each in judged if each.printed_mse is not None])
    yield (
        "MSE in percent²; functions as gplearn protects them. "
        + (f"The paper prints those of {numbers} for F1 in [0, 1], here times 10,000. " if numbers else "")
        + f"The variance of F1 in this table is {np.var(f1):,.0f}."
    )
