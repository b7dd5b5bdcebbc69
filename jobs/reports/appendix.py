"""The reproducibility appendix of a paper, made from the runs of the store."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace

from core.config import FIELD_HELP, comparison_values, has_field
from core.config.typed import seeds_typed
from core.errors import MRNLabError
from core.events import RunFacts
from core.results.choice import dev_means
from core.results.methods import by_method
from core.results.naming import is_default, value_text
from core.results.samples import (
    RESOLVED,
    TEXT,
    UNKNOWN,
    DataGroup,
    alike,
    one_per_seed,
    readable,
)
from core.results.signature import signature
from core.results.stored import stored_results
from core.results.table import ResultRow, ResultTable, undefined_notes
from core.store import Conditions, Run, RunState, RunWithFacts, Store
from core.tasks.scores import scale_text
from core.wording import all_of, duration, plural
from jobs.queue.sweeps import launch_command
from jobs.reports.parts import Code, Entry, Heading, Part, Sheet, cost_entries, score_entry
from jobs.reports.render import row_label

NOT_RECORDED = "not recorded"
"""The text for a fact that the run's version did not store."""
_NAMED = ("corpus", "columns", "tasks", "seed")
"""The fields that are not listed among the hyperparameters."""


def appendix(store: Store, run_ids: Sequence[int]) -> list[Part]:
    """The appendix on the successful runs among these. Raises MRNLabError where none is."""
    if not any(run.state is RunState.SUCCEEDED for run in store.runs(run_ids)):
        raise MRNLabError("None of these runs has finished; the appendix reports finished runs.")
    results = stored_results(store, run_ids, with_facts=True)
    if not results.groups:
        raise MRNLabError(f"The appendix has no run to report. {results.note}")
    parts: list[Part] = [results.note] if results.note else []
    for group, runs in results.groups.items():
        by_id = {run.id: run for run in runs}
        tables = _by_method({split: results.table(group, split) for split in ("dev", "test")})
        rows = tables["test"].rows or tables["dev"].rows
        parts += [Heading(f"Data: {group.name}"), _data(runs, group)]
        if group.note:
            parts.append(group.note)
        undefined = undefined_notes(score for score in results.scores if score.run_id in by_id)
        parts += [Heading(f"Results: {group.name}"), _scores(tables, group), *undefined]
        parts.append(_costs(rows, by_id, group))
        for row in rows:
            parts += [
                Heading(f"Hyperparameters: {row.name}"),
                _fields(row, _tried(store, row)),
            ]
            parts.append(Code(tuple(_command(of, by_id) for of in row.tried)))
    counted = [run for runs in results.groups.values() for run in runs]
    return [*parts, Heading("Software"), _versions(sorted(counted, key=lambda run: -run.id))]


def configuration(store: Store, run_ids: Sequence[int]) -> list[Part]:
    """What was trained where at which cost, the commands that train it again, and the versions."""
    results = stored_results(store, run_ids, with_facts=True)
    parts: list[Part] = []
    for group, runs in results.groups.items():
        by_id = {run.id: run for run in runs}
        tables = _by_method({split: results.table(group, split) for split in ("dev", "test")})
        rows = tables["test"].rows or tables["dev"].rows
        parts.append(_costs(rows, by_id, group))
        commands = dict.fromkeys(_command(of, by_id) for row in rows for of in row.tried)
        parts += [f"These commands train the runs on {group.name} again:", Code(tuple(commands))]
    counted = [run for runs in results.groups.values() for run in runs]
    return [*parts, _versions(sorted(counted, key=lambda run: -run.id))]


def _facts(run: Run) -> RunFacts | None:
    return run.facts if isinstance(run, RunWithFacts) else None


def _by_method(tables: Mapping[str, ResultTable]) -> dict[str, ResultTable]:
    """The test table with a row a method, and the rows of dev of the same configurations.

    Where there are no test scores, dev has a row a method.
    """
    test = by_method(tables["test"])
    if not test.rows:
        return {"dev": by_method(tables["dev"]), "test": test}
    rows = {row.key: row for row in tables["dev"].rows}
    on_dev = tuple(
        replace(rows[row.key], name=row.name, label=row.label) for row in test.rows if row.key in rows
    )
    return {"dev": replace(tables["dev"], rows=on_dev), "test": test}


def _data(runs: Sequence[Run], group: DataGroup) -> Sheet:
    stored = [facts for run in runs if (facts := _facts(run))]
    facts = next((facts for facts in reversed(stored) if facts.sizes), stored[-1] if stored else None)
    sizes = facts.sizes if facts else {}
    splits: list[tuple[str | Entry | None, ...]] = [
        (split, _counted(sentences, "sentences"), _counted(words, "words"), None)
        for split, (sentences, words) in sizes.items()
    ]
    tasks = [
        (
            name,
            _counted(task.train_sentences, "training sentences"),
            _counted(task.train_tokens, "labelled"),
            Entry(len(task.labels), form=lambda labels: plural(int(labels), "label")),
        )
        for name, task in {task.name: task for facts in stored for task in facts.tasks}.items()
    ]
    held_out = facts is not None and facts.dev_from_train
    dev = " The dev split was held out of the training sentences." if held_out else ""
    return Sheet.of(
        ("Data", "", "", ""),
        [*(splits or [("splits", NOT_RECORDED, None, None)]), *tasks],
        f"{group.name}: sizes as the runs used them.{dev}",
    )


def _counted(number: int, noun: str) -> Entry:
    return Entry(number, form=lambda value: f"{value:,} {noun}")


def _scores(tables: Mapping[str, ResultTable], group: DataGroup) -> Sheet:
    tasks = list(dict.fromkeys(task for table in tables.values() for task in table.tasks))
    scored_by = {task: name for table in tables.values() for task, name in table.scored_by.items()}
    names = {row.key: row_label(row, whole=True) for table in tables.values() for row in table.rows}
    names |= {row.key: row_label(row, whole=True) for row in tables["test"].rows}
    cells = {
        (split, row.key, task): cell
        for split, table in tables.items()
        for row in table.rows
        for task, cell in row.cells.items()
    }
    rows = [
        (
            name,
            *(
                score_entry(cell.summary, scored_by[task])
                if (cell := cells.get((split, key, task)))
                else None
                for task in tasks
                for split in ("dev", "test")
            ),
        )
        for key, name in names.items()
    ]
    measures = {task: name for table in tables.values() for task, name in table.score_names.items()}
    head = [f"{task} {split} ({measures.get(task, '')})" for task in tasks for split in ("dev", "test")]
    sheet = Sheet.of(
        ("Configuration", *head),
        rows,
        f"{group.name}, {scale_text(scored_by.values())}: mean ± standard deviation over seeds "
        "(their number).",
    )
    return replace(sheet, signature=signature(tables["test"] if tables["test"].rows else tables["dev"]))


def _costs(rows: Iterable[ResultRow], runs: Mapping[int, Run], group: DataGroup) -> Sheet:
    lines = []
    for row in rows:
        row_runs = [runs[run_id] for run_id in row.run_ids]
        costs = (entry if entry.is_defined else NOT_RECORDED for entry in cost_entries(row.cost))
        parameters, trained, memory, seconds = costs
        hardware = {_hardware(run) for run in row_runs}
        seeds = seeds_typed(run.config.seed for run in row_runs)
        encoder, machines = row.config.encoder, all_of(sorted(hardware))
        lines.append((row.name, encoder, parameters, trained, seeds, seconds, memory, machines))
    head = ("Configuration", "Encoder", "Parameters", "Trained", "Seeds", "Time per seed", "Peak memory")
    total = duration(sum(run.seconds or 0.0 for run in runs.values()))
    return Sheet.of(
        (*head, "Hardware"),
        lines,
        f"{group.name}: what was trained, where. All runs together trained for {total}.",
    )


def _hardware(run: Run) -> str:
    if (facts := _facts(run)) is None:
        return NOT_RECORDED
    return f"{facts.hardware} ({facts.device})" if facts.hardware else facts.device


def _tried(store: Store, row: ResultRow) -> dict[str, dict[str, float]]:
    """By field the values among which this one was chosen, with their mean dev scores.

    They are the values of finished runs on the same text that differ from this configuration only in that
    field and the seed; the means are over common tasks and seeds (`dev_means`), NaN where there is none.
    """
    chosen = comparison_values(row.config)
    field_values: dict[int, tuple[str, str]] = {}  # by run the field in which it differs, and its value
    near: list[Run] = []
    for run in readable(store.runs(states={RunState.SUCCEEDED}))[0]:
        values = comparison_values(run.config)
        differ = [field for field in chosen if values.get(field) != chosen[field]]
        if run.config.corpus == row.config.corpus and len(differ) < 2:
            field = differ[0] if differ else ""
            field_values[run.id] = field, value_text(values.get(field))
            near.append(run)
    conditions = store.conditions(near)
    on_text = [
        run
        for of in alike(near, conditions, TEXT).values()
        if any(run.id in row.run_ids for run in of)
        for run in of
        if field_values[run.id][0] or _resolved_alike(conditions.get(run.id, UNKNOWN), row.conditions)
    ]
    field_values = {run.id: field_values[run.id] for run in one_per_seed(on_text, conditions)}
    by_id = {run.id: run for run in on_text}
    dev: dict[str, dict[str, dict[str, dict[int, float]]]] = {}
    for score in store.scores(list(field_values), "dev", with_reports=False):
        if score.is_defined:
            field, value = field_values[score.run_id]
            by_task = dev.setdefault(field, {}).setdefault(value, {})
            by_task.setdefault(score.task, {})[by_id[score.run_id].config.seed] = score.score
    same = next(iter(dev.pop("", {}).values()), None)
    if same is None:
        return {}
    return {
        field: {**dict.fromkeys([value_text(chosen[field]), *values], math.nan)}
        | dev_means({value_text(chosen[field]): same, **values})
        for field, values in dev.items()
    }


def _resolved_alike(a: Conditions, b: Conditions) -> bool:
    """Whether `auto` chose the same in both, where it is known."""
    return all(len({of(a), of(b)} - {None}) < 2 for of in RESOLVED.values())


def _fields(row: ResultRow, tried: Mapping[str, Mapping[str, float]]) -> Sheet:
    """A table of the fields with their values, the choice of `auto`, and how each was chosen."""
    config, values = row.config, row.config.values()
    lines = []
    for field in FIELD_HELP:
        if field in _NAMED or not has_field(config, field) or values[field] is None:
            continue
        value = value_text(values[field])
        if field in tried:
            means = {text: mean for text, mean in tried[field].items() if not math.isnan(mean)}
            highest = max(means, key=means.__getitem__, default=None)
            verdict = f"dev is highest for {highest}" if highest else "they share no seed on dev"
            how = f"of {', '.join(tried[field])}: {verdict}"
        else:
            how = "default" if is_default(config, field) else "set"
        resolved = RESOLVED[field](row.conditions) if value == "auto" and field in RESOLVED else None
        lines.append((field, f"{value}: {resolved}" if resolved else value, how))
    return Sheet.of(
        ("Field", "Value", "How chosen"),
        lines,
        f"{row.name}: all fields of the run's description. Values beside a field are those of finished runs "
        "that are the same in all else; dev scores are means over the tasks and seeds that all of them have.",
    )


def _command(row: ResultRow, by_id: Mapping[int, Run]) -> str:
    """The command that trains the runs of a row again."""
    runs = [by_id[run_id] for run_id in row.run_ids]
    tasks = list(dict.fromkeys(task for run in runs for task in run.config.tasks))
    return launch_command(runs[0].config, tasks, sorted({run.config.seed for run in runs}))


def _versions(runs: Sequence[Run]) -> Sheet:
    by_package: dict[str, dict[str, None]] = {}
    for run in runs:
        facts = _facts(run)
        for package, version in facts.versions.items() if facts else ():
            by_package.setdefault(package, {})[version] = None
    lines = [(package, ", ".join(of)) for package, of in by_package.items()]
    return Sheet.of(
        ("Package", "Version"), lines or [(NOT_RECORDED, None)], "Software, as the runs recorded it."
    )
