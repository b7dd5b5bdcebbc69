"""mrnlab launch: one run, or a sweep where lists are given."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Annotated, Any

import typer

from core.config import FIELD_HELP, PRESETS, RunConfig, public_name
from core.config.fields import comma_list
from core.config.sweep import LISTED
from core.config.task_groups import GROUPINGS
from core.config.typed import parse_values
from core.errors import FIELD, ConfigError
from core.plain_text import shortened
from core.recording.resolve import with_absolute_paths
from core.results.table import undefined_notes
from core.store import ENDED, Run, RunState, Store
from core.tasks.scores import score_text
from core.wording import about_time, all_of, duration, plural, which_runs
from jobs.cli.app import app, opened_store
from jobs.cli.corpus import log_readings
from jobs.cli.options import JSON_OPTION, grouped, number_option, one_of
from jobs.cli.output import log, print_json, print_table, print_text, run_document
from jobs.queue.control import MOST_RETRIES, PRIORITIES
from jobs.queue.estimates import Cost, cost, eta
from jobs.queue.maintenance import QueueMaintenance
from jobs.queue.sweeps import LAUNCH_OPTIONS, Sweep

_POLL_S = 0.5
_MOST_NOTES = 20
_RETRIES_HELP = "How often a run is resumed automatically when its worker dies."


def wait_for_runs(store: Store, ids: Sequence[int], sleep: Callable[[float], object] = time.sleep) -> None:
    """Prints the progress of these runs on standard error until all have ended.

    Ctrl-C ends the waiting, not the runs (exit code 130). Raises MRNLabError where one worker after another
    ends before it has claimed a run, for instance because torch cannot be imported.
    """
    maintenance = QueueMaintenance(store)
    shown: dict[int, tuple[RunState, int]] = {}
    try:
        while True:
            maintenance.look()
            runs = store.runs(ids=ids)
            for run in reversed(runs):
                moment = (run.state, int(run.epoch))
                if shown.get(run.id) != moment and run.state is not RunState.QUEUED:
                    log(_progress(run, eta(store, [run]).get(run.id)))
                shown[run.id] = moment
            if all(run.state in ENDED for run in runs):
                return
            maintenance.check_starts()
            sleep(_POLL_S)
    except KeyboardInterrupt:
        log(
            "The runs go on in the background: `mrnlab runs` shows them, "
            f"`mrnlab stop {' '.join(map(str, ids[:3]))}{' ...' if len(ids) > 3 else ''}` stops them."
        )
        raise typer.Exit(130) from None


def _progress(run: Run, left: float | None) -> str:
    if run.state in ENDED:
        why = "" if run.error is None else f": {run.error.message}"
        return f"Run {run.id} {run.state.word} after {duration(run.seconds or 0)}{why}"
    if not run.step:
        return f"Run {run.id} {run.state.word}."
    about = "about" if run.config.patience is None else "at most"
    soon = "" if left is None else f", {about} {duration(max(left, 1))} left"
    return (
        f"Run {run.id} {run.state.word}: epoch {run.epoch:.1f} of {run.config.epochs}, "
        f"step {run.step:,} of {run.total_steps or 0:,}{soon}."
    )


def _option(field: str, name: str | None = None) -> Any:
    return typer.Option(
        name or f"--{field.replace('_', '-')}",
        metavar="VALUE,..." if field in LISTED else "VALUE",
        help=FIELD_HELP[field].sentence,
    )


@dataclass(frozen=True)
class RunOptions:
    """The options of `mrnlab launch` that describe runs, as typed; None where one is not given."""

    corpus: Annotated[str | None, _option("corpus")] = None
    columns: Annotated[str | None, _option("columns")] = None
    tasks: Annotated[
        str | None,
        typer.Option(metavar="VALUE", help=f"{FIELD_HELP['tasks'].sentence} Without it all of the corpus."),
    ] = None
    task_groups: Annotated[
        str | None,
        typer.Option(
            metavar="GROUP;...",
            help=f"The tasks that are trained together: {all_of(list(GROUPINGS))} of --tasks (without it "
            "of the corpus), or groups written out, as 'ner,pos; ner,chunk'; several make a sweep.",
        ),
    ] = None
    encoder: Annotated[str | None, _option("encoder")] = None
    encoder_training: Annotated[str | None, _option("encoder_training")] = None
    paradigm: Annotated[str | None, _option("paradigm")] = None
    prior: Annotated[str | None, _option("prior")] = None
    added_to: Annotated[str | None, _option("added_to")] = None
    alignment: Annotated[str | None, _option("alignment")] = None
    lambda_: Annotated[str | None, _option("lambda")] = None
    seeds: Annotated[str | None, _option("seed", "--seeds")] = None
    epochs: Annotated[str | None, _option("epochs")] = None
    fraction: Annotated[str | None, _option("fraction")] = None
    setting: Annotated[
        list[str] | None,
        typer.Option(
            "--set",
            metavar="FIELD=VALUE,...",
            help="Any other field of a run, as head=linear,crf; may be given again. For learn, task_order "
            "and task_weights a list is one value: task_weights=3,1,1.",
        ),
    ] = None
    preset: Annotated[
        str | None,
        typer.Option(help=f"Start from all values of a preset: {', '.join(PRESETS)}."),
    ] = None

    def runs(self) -> list[RunConfig]:
        """The runs that these options make.

        Raises ConfigError naming the field that is wrong, and CorpusError.
        """
        lists = self._typed()
        if self.seeds is not None:
            lists["seed"] = _seeds(self.seeds)
        data = {name: tuple(comma_list(lists.pop(name))) for name in ("columns", "tasks") if name in lists}
        groups = "all" if self.task_groups is None else self.task_groups
        sweep = Sweep(lists.pop("corpus", ""), **data, task_groups=groups, lists=lists)
        preset = {} if self.preset is None else PRESETS[one_of("--preset", PRESETS)(self.preset)]
        return sweep.runs(preset)

    def _typed(self) -> dict[str, Any]:
        """The text of each field that is given, in the order of a sweep. Raises ConfigError."""
        options = {public_name(name): text for name, text in vars(self).items()}
        given = [(name, options[name], f"--{name.replace('_', '-')} ") for name in LAUNCH_OPTIONS]
        given += [*_settings(self.setting or []), ("seed", self.seeds, "--seeds ")]
        typed: dict[str, str] = {}
        for name, text, option in given:
            if text is None:
                continue
            if name in typed:
                hint = (
                    f"write {option}{shortened(f'{typed[name]},{text}')}"
                    if name in LISTED
                    else "give it once"
                )
                raise ConfigError(name, f"{FIELD} is given twice; {hint}.")
            typed[name] = text
        return {name: typed[name] for name in dict.fromkeys((*LAUNCH_OPTIONS, *typed)) if name in typed}


@dataclass(frozen=True)
class QueueOptions:
    """How runs are queued."""

    sweep: Annotated[str | None, typer.Option(help="A name for these runs, a sweep.")] = None
    priority: Annotated[
        int, number_option("--priority", "Higher ones start first (default: 0).", *PRIORITIES)
    ] = 0
    retries: Annotated[int, number_option("--retries", _RETRIES_HELP, 0, MOST_RETRIES)] = 0
    reuse: Annotated[
        bool,
        typer.Option("--reuse", help="Use runs of the store that are the same; queue only the others."),
    ] = False


@app.command()
@grouped
def launch(
    ctx: typer.Context,
    described: RunOptions,
    queueing: QueueOptions,
    wait: Annotated[bool, typer.Option("--wait", help="Follow the runs until they end.")] = False,
    dry_run: Annotated[
        bool, typer.Option("--dry-run", help="Check the runs and say how long they take; queue nothing.")
    ] = False,
    json_: Annotated[bool, JSON_OPTION] = False,
) -> None:
    """Queue runs; workers train them in the background.

    Options with VALUE,... take lists, which make a sweep: every combination once. Options of a derived corpus
    take them in braces: --corpus 'simulated:demo?alpha={0.2|0.9}'. STL makes a run for each task. With --wait
    the exit code is 1 where a run did not succeed.
    """
    configs = described.runs()
    with opened_store(ctx) as store:
        if dry_run:
            _print_price(_cost(store, configs, reuse=queueing.reuse), json_=json_)
            return
        takes_all = described.tasks is None and described.task_groups is None
        notes = _tasks_taken(configs) if takes_all else []
        ids, used = _queue(store, configs, queueing, notes)
        if wait:
            wait_for_runs(store, ids)
        if json_:
            print_json({"runs": _documents(store, ids), "notes": notes, "reused": used})
        elif wait:
            _print_scores(store, ids)
        else:
            print_text(",".join(map(str, ids)))
        if wait and any(run.state is not RunState.SUCCEEDED for run in store.runs(ids=ids)):
            raise typer.Exit(1)


def _queue(
    store: Store, configs: Sequence[RunConfig], queueing: QueueOptions, notes: list[str]
) -> tuple[list[int], list[int]]:
    """Queues these runs; their ids, and of these the ids of runs that the store had.

    Before a run is queued it logs how the corpora were read, adds the notes of the check to `notes`, and logs
    these.
    """
    from jobs.queue.submit import submit

    def show_check(check_notes: Sequence[str]) -> None:
        printed = log_readings(configs)
        notes.extend(check_notes)
        new = [note for note in notes if note not in printed]
        for note in new[:_MOST_NOTES]:
            log(note)
        if len(new) > _MOST_NOTES:
            log(f"{plural(len(new) - _MOST_NOTES, 'more note')} of this kind; --json has all.")

    ids, used = submit(
        store,
        configs,
        queueing.sweep,
        reuse=queueing.reuse,
        priority=queueing.priority,
        retries=queueing.retries,
        show_notes=show_check,
    )
    queued = [run_id for run_id in ids if run_id not in set(used)]
    if used:
        log(f"Uses {which_runs(used)}, already in the store.")
    log(f"Queued {which_runs(queued)}." if queued else "Nothing is left to queue.")
    return ids, used


def _cost(store: Store, configs: Sequence[RunConfig], *, reuse: bool) -> Cost:
    """The estimated cost of these runs, with `reuse` only of runs that the store lacks.

    Raises MRNLabError where a run cannot be trained here.
    """
    from jobs.queue.submit import check, same_runs

    runs = [with_absolute_paths(config) for config in configs]
    present = same_runs(store, runs) if reuse else {}
    missing = [run for run in runs if run not in present]
    check(missing)
    return cost(store, missing)


def _print_price(price: Cost, *, json_: bool) -> None:
    if json_:
        print_json({"runs": len(price.runs), "seconds": price.seconds})
        return
    about = "" if price.seconds is None else f", {about_time(price.seconds)}"
    print_text(f"{plural(len(price.runs), 'run')}{about}: {price.basis}.")


def _tasks_taken(configs: Sequence[RunConfig]) -> list[str]:
    """A sentence for each corpus with the tasks that these runs learn."""
    taken: dict[str, dict[str, None]] = {}
    for config in configs:
        taken.setdefault(config.corpus, {}).update(dict.fromkeys(config.tasks))
    return [f"Takes all tasks of {corpus}: {', '.join(tasks)}." for corpus, tasks in taken.items()]


def _seeds(text: str) -> list[int]:
    if text.strip() == "0":
        # Some mean "no seeds", others "the seed 0".
        raise ConfigError(
            "seed",
            "--seeds: 0 seeds make no run; name the seeds, such as 1,2,3 (the seed 0 is --set seed=0).",
        )
    return parse_values("seed", text)


def _settings(pairs: list[str]) -> list[tuple[str, str | None, str]]:
    """The field, the text and the option of each value of `--set`."""
    settings: list[tuple[str, str | None, str]] = []
    for pair in pairs:
        field, equals, value = pair.partition("=")
        if not equals:
            raise ConfigError(
                field, f"--set {pair}: write it as FIELD=VALUE; fields are {', '.join(FIELD_HELP)}."
            )
        name = field.strip().replace("-", "_")
        settings.append((name, value.strip(), f"--set {name}="))
    return settings


def _documents(store: Store, ids: list[int]) -> list[dict[str, Any]]:
    runs = {run.id: run for run in store.runs_with_facts(ids)}
    return [
        run_document(run, store.scores([run.id]), run.alignment) | {"config": run.config.values()}
        for run in map(runs.__getitem__, ids)
    ]


def _print_scores(store: Store, ids: list[int]) -> None:
    rows = []
    for run in sorted(store.runs(ids=ids), key=lambda run: run.id):
        scores = {score.task: score for score in store.scores([run.id], "test")}
        by_task = ", ".join(
            f"{task} {score_text(scores[task].score, scores[task].score_name)}"
            for task in run.config.tasks
            if task in scores
        )
        failed = "" if run.error is None else run.error.message
        took = "" if run.seconds is None else duration(run.seconds)
        rows.append((run.id, run.state.word, run.config.paradigm, run.config.seed, took, by_task or failed))
    print_table(("run", "state", "paradigm", "seed", "time", "test scores"), rows)
    for note in undefined_notes(store.scores(ids, "test", with_reports=False)):
        log(note)
