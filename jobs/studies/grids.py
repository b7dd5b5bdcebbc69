"""The table of a grid of simulated tasks, the recovery of planted relations, and the report of both."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import numpy as np
import pandas as pd

from core.config import RunConfig
from core.corpora.types import Planted
from core.evaluation.statistics import summary
from core.results.samples import readable
from core.store import RunWithFacts, Store
from core.studies import Study
from core.studies.simulator import ARCHITECTURES, DENSE_LAYERS, PLANTED, point_of
from core.studies.study import SettingRuns
from core.transfer.formulas import PUBLISHED, Learned, Published, learn
from core.transfer.grid import COLUMNS, FACTORS, PlantedTasks, bands, cells, factors, figure_3
from core.transfer.predictors import Floats
from core.wording import capitalised, plural
from jobs.reports.parts import Code, Entry, Heading, Items, Part, Sheet, mean_entry, spread_of
from jobs.studies.progress import StudyRuns, task_correlations

_FEWEST = 20  # cells from which formulas are learned
_NAMES = {"n_ner": "n of NER", "n_syn": "n of others", "T": "T", "alpha": "α"}


class GridRuns:
    """The successful runs of these settings, with the planted relations and the test score of each."""

    def __init__(self, store: Store, settings: Sequence[SettingRuns], runs: StudyRuns | None = None) -> None:
        self._store, self._settings = store, settings
        succeeded = (runs or StudyRuns(store, settings)).look().succeeded
        listed, _ = readable(store.runs_with_facts([run.id for run in succeeded.values()]))
        with_facts = {run.id: run for run in listed}
        self._runs: Mapping[RunConfig, RunWithFacts] = {
            config: with_facts[run.id] for config, run in succeeded.items() if run.id in with_facts
        }
        scores = store.scores(list(with_facts), "test", with_reports=False)
        self._scores = {(score.run_id, score.task): score.score for score in scores}

    def table(self) -> pd.DataFrame:
        """A row for each run of the grids, with the columns of `core.transfer.grid`."""
        rows = {}
        for setting_runs in self._settings:
            if (point := point_of(setting_runs.setting)) is None:
                continue
            for method, candidates in setting_runs.candidates.items():
                for seed, (config,) in candidates[0].runs.items():
                    if (run := self._runs.get(config)) is None:
                        continue
                    beside = method != setting_runs.study.reference
                    # NER alone has one row for all of its auxiliary tasks.
                    nan = math.nan
                    ami = float(np.mean(self._ami(run))) if beside else nan
                    n_syn, tasks, alpha = (
                        (point.words_beside, point.tasks, point.alpha) if beside else (nan, 0, nan)
                    )
                    f1 = 100 * self._scores[run.id, "ner"]
                    factors_of_run = (point.words, n_syn, tasks, ami, alpha, point.dense)
                    rows[point.part, config] = (point.part, *factors_of_run, f1, seed)
        return pd.DataFrame(list(rows.values()), columns=list(COLUMNS))

    def planted(self) -> PlantedTasks | None:
        """The planted, measured and learned relations over the complete seeds; None without one."""
        for setting_runs in self._settings:
            if setting_runs.setting.part == PLANTED:
                whole = [seed for seed in setting_runs.seeds if self._is_whole(setting_runs, seed)]
                return self._planted(setting_runs, whole) if whole else None
        return None

    def _is_whole(self, setting_runs: SettingRuns, seed: int) -> bool:
        return all(
            config in self._runs
            for candidates in setting_runs.candidates.values()
            for config in candidates[0].runs[seed]
        )

    def _planted(self, setting_runs: SettingRuns, seeds: Sequence[int]) -> PlantedTasks:
        target, *tasks = setting_runs.setting.base["tasks"]
        gains, ami = (np.empty((len(seeds), len(tasks))) for _ in range(2))
        learned = []
        alphas = np.empty(len(tasks))
        for row, seed in enumerate(seeds):
            runs = {
                name: self._runs[candidates[0].runs[seed][0]]
                for name, candidates in setting_runs.candidates.items()
            }
            alone = self._scores[runs.pop("stl").id, target]
            joint = runs.pop("mrn")
            if (correlations := task_correlations(self._store, joint)) is not None:
                learned.append(correlations[0, 1:])
            ami[row] = self._ami(joint)
            alphas[:] = self._planted_of(joint).alphas[1:]
            for run in runs.values():
                column = tasks.index(run.config.tasks[1])
                gains[row, column] = 100 * (self._scores[run.id, target] - alone)
        return PlantedTasks(alphas, ami, gains, np.array(learned) if len(learned) == len(seeds) else None)

    @staticmethod
    def _planted_of(run: RunWithFacts) -> Planted:
        assert run.facts is not None
        assert run.facts.planted is not None
        return run.facts.planted

    def _ami(self, run: RunWithFacts) -> list[float]:
        """The AMI of the run's first task with each other task."""
        return list(self._planted_of(run).ami[0][1:])


def table_csv(runs: GridRuns) -> str:
    """The table as CSV, a row for each run."""
    return str(runs.table().to_csv(index=False, float_format="%.6g", lineterminator="\n"))


def figure_csv(runs: GridRuns) -> str:
    """The points of the paper's Figure 3 as CSV, F1 in percent."""
    points = figure_3(runs.table())
    return str(points.to_csv(index=False, float_format="%.6g", lineterminator="\n"))


def grid_document(runs: GridRuns) -> dict[str, Any]:
    """The contents of the report as one document, F1 in percent, gains in points."""
    table, planted = runs.table(), runs.planted()
    document: dict[str, Any] = {"rows": table.astype(object).where(table.notna(), None).to_dict("records")}
    if planted is not None:
        document["planted"] = {
            "alphas": planted.alphas.tolist(),
            "ami": planted.ami.tolist(),
            "gains": planted.gains.tolist(),
            "rank_of_gains": planted.rank(planted.gains),
        }
        if planted.learned is not None:
            document["planted"] |= {
                "learned": planted.learned.tolist(),
                "rank_of_learned": planted.rank(planted.learned),
            }
    document["formulas"] = {
        part: {
            "front": [
                {"formula": formula.text(), "latex": formula.latex()}
                | {name: getattr(formula, name) for name in ("length", "train_mse", "test_mse")}
                for formula in learned.front
            ],
            "chosen": learned.chosen.text(),
            "linear_mse": learned.linear_mse,
            "constant_mse": learned.constant_mse,
        }
        for part, learned in _learned(table).items()
    }
    document["published"] = {
        part: {f"({each.equation})": error for each, error in judged(table, part)} for part in FACTORS
    }
    return document


def _learned(table: pd.DataFrame) -> dict[str, Learned]:
    made = {part: factors(table, part) for part in FACTORS if part in set(table["part"])}
    return {part: learn(columns, f1) for part, (columns, f1) in made.items() if len(f1) >= _FEWEST}


def grid_report(study: Study, runs: GridRuns) -> Iterator[Part]:
    """Yields the answer, then the planted relations, then each grid with its formulas."""
    table, planted = runs.table(), runs.planted()
    learned = _learned(table)
    yield Heading("The answer")
    answers = [] if planted is None else [_planted_answer(planted)]
    for part, formulas in learned.items():
        chosen = formulas.chosen
        answers.append(
            f"{capitalised(part)} data: F1 ≈ {chosen.text()}. MSE {chosen.test_mse:.1f} on "
            f"{plural(formulas.test_rows, 'held-out cell')}; a linear fit has {formulas.linear_mse:.1f}, the "
            f"mean {formulas.constant_mse:.1f}."
        )
    if answers:
        yield Items(tuple(answers))
    if planted is not None:
        yield Heading("Planted relations")
        yield _planted_table(planted)
    for part in [name for name in FACTORS if name in set(table["part"])]:
        yield Heading(f"{capitalised(part)} data")
        number = plural(len(cells(table[table["part"] == part])), "cell")
        yield f"{number}. F1 in percent, mean ± SD over all else that varies (runs):"
        for factor in ("n_ner", "n_syn", "T", "alpha"):
            if factor != "n_syn" or factor in FACTORS[part]:
                yield _band_table(table, part, factor)
        if part in learned:
            yield from _formulas(part, learned[part])
        if (published := published_sheet(table, part)) is not None:
            yield Heading(f"Published formulas on this table ({part})", 3)
            yield published
    if ARCHITECTURES in set(table["part"]):
        yield Heading("Architectures")
        yield "F1 in percent, mean ± SD (seeds), by α; the first column is NER alone:"
        yield architectures_sheet(table[table["part"] == ARCHITECTURES])
    yield study.protocol


def _planted_answer(planted: PlantedTasks) -> str:
    def ranks(values: Floats) -> tuple[str, str]:
        by_seed = planted.by_seed(values)
        return f"{planted.rank(values):.2f}", f"{min(by_seed):.2f} to {max(by_seed):.2f}"

    rank, in_seeds = ranks(planted.gains)
    seeds = plural(len(planted.ami), "seed")
    learned = ""
    if planted.learned is not None:
        learned = "; with MRN's learned task correlation: {} ({})".format(*ranks(planted.learned))
    return (
        f"Rank correlation of planted AMI with measured gains: {rank} (means over {seeds}; {in_seeds} in "
        f"single ones){learned}."
    )


def _planted_table(planted: PlantedTasks) -> Sheet:
    columns = [("planted AMI", planted.ami, 3), ("gain in points", planted.gains, 1)]
    if planted.learned is not None:
        columns.append(("learned correlation", planted.learned, 2))
    rows = [
        (f"{alpha:g}", *(mean_entry(summary(values[:, index]), digits) for _, values, digits in columns))
        for index, alpha in enumerate(planted.alphas)
    ]
    return Sheet.of(("α", *(title for title, _, _ in columns)), rows)


def _band_table(table: pd.DataFrame, part: str, factor: str) -> Sheet:
    by_alpha = factor == "alpha"
    figures = bands(table, part, factor)[[factor, "AMI", "mean", "SD", "runs"]].to_numpy(float)
    rows = [
        (
            f"{value:,g}",
            *([Entry(ami)] if by_alpha else []),
            Entry(mean, spread_of(sd), int(runs), "%", form=".1f"),
        )
        for value, ami, mean, sd, runs in figures
    ]
    return Sheet.of([_NAMES[factor], *(["AMI"] if by_alpha else []), "F1"], rows)


def _formulas(part: str, learned: Learned) -> Iterator[Part]:
    yield Heading(f"Formulas learned on {part} data", 3)
    yield Sheet.of(
        ("formula", "length", "MSE, fitted", "MSE, held out"),
        [
            (
                each.text(),
                Entry(each.length, form="d"),
                *(Entry(mse, form=".1f") for mse in (each.train_mse, each.test_mse)),
            )
            for each in learned.front
        ],
    )
    yield (
        f"Fitted on {plural(learned.train_rows, 'cell')}, judged on {learned.test_rows} others. There a "
        f"linear fit has {learned.linear_mse:.1f} and the mean {learned.constant_mse:.1f}. Length counts "
        f"operators, functions, factors and constants. The chosen one in LaTeX:"
    )
    yield Code((learned.chosen.latex(),))


def architectures_sheet(table: pd.DataFrame) -> Sheet:
    """A table of F1 by dense layers and α."""
    table = table.fillna({"alpha": 0})
    scores = {key: summary(f1) for key, f1 in table.groupby(["dense", "alpha"])["F1"]}
    alphas = sorted(table["alpha"].unique().tolist())
    rows = [
        (
            title,
            *(mean_entry(scores[dense, at], 1, unit="%") if (dense, at) in scores else None for at in alphas),
        )
        for dense, (title, _) in DENSE_LAYERS.items()
    ]
    return Sheet.of(("dense layers", *(f"α = {alpha:g}" if alpha else "STL" for alpha in alphas)), rows)


def judged(table: pd.DataFrame, part: str) -> list[tuple[Published, float]]:
    """The published formulas for the factors of this part, with their mean squared errors.

    The errors are in percent², on the cells with simulated tasks; without such cells there are no formulas.
    """
    if part not in FACTORS or not ((table["part"] == part) & (table["T"] > 0)).any():
        return []
    columns, f1 = factors(table, part)
    return [(each, each.error(columns, f1)) for each in PUBLISHED if set(each.factors) <= set(columns)]


def published_sheet(table: pd.DataFrame, part: str) -> Sheet | None:
    """A table of the formulas judged on this part, with printed errors and the errors here."""
    if not (judged_pairs := judged(table, part)):
        return None
    f1 = factors(table, part)[1]
    rows = [
        (
            f"({each.equation})",
            each.text,
            Entry(each.scale, form=","),
            Entry(error / 1e4, form=".3f"),
            None if each.printed_mse is None else Entry(each.printed_mse, form=".3f"),
            Entry(error, form=",.0f"),
        )
        for each, error in judged_pairs
    ]
    caption = (
        f"On {plural(len(f1), 'cell')}. MSE as the paper has it, of F1 in [0, 1], and in percent². F1 has a "
        f"variance of {np.var(f1) / 1e4:.3f} here, {np.var(f1):,.0f} percent². A formula gives F1 times its "
        "scale; the paper has scales of 100 and 1,000 and does not say where it uses which. Logarithms and "
        "roots are protected as in gplearn."
    )
    return Sheet.of(
        ("equation", "formula", "scale of F1", "MSE here", "MSE printed", "percent²"), rows, caption
    )
