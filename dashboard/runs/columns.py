"""The columns of a table of runs: the values that sort them, their texts and their looks.

A new column is an entry of `_COLUMNS`.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Sequence
from dataclasses import dataclass
from typing import Literal

from core.evaluation.statistics import MeanSD
from core.results.naming import encoder_title, field_texts, number_texts
from core.store.types import RunState
from core.wording import ago, duration, percent, plural, spread_text, without_shared
from dashboard.components.run_table import Column
from dashboard.runs.views import MOST_TESTED, Line, Table
from dashboard.shared.run_views import tasks_and_seeds
from dashboard.shared.states import learned_nothing_text, state_text
from dashboard.theme import STATES

_MEANS = (
    "Mean over seeds, times 100, ± standard deviation (number of seeds). "
    "Bold: higher than each other method on the same text and share of the data, as Compare tests it "
    f"(up to {MOST_TESTED} lines). Of lines that differ in numbers such as λ, the one dev chooses counts."
)
_IN_RUN = "Times 100; on dev, a run in progress has the score of its last epoch"


def columns_of(
    table: Table, split: str, picked: Collection[int], *, spread: bool = False
) -> dict[str, Column]:
    """Returns the columns of a table behind the names, by what the reader chooses them by.

    `picked` runs are chosen; `spread`: means have room for a spread beside them.
    """
    lines = table.lines
    rows: _Rows = "configurations" if lines[0].run is None else "runs"
    return {
        **_scores(table, split, grouped=rows == "configurations", spread=spread),
        **{
            entry.head: entry.column(lines, picked)
            for entry in _COLUMNS
            if rows in entry.rows and any(map(entry.has_value, lines))
        },
    }


def _scores(table: Table, split: str, *, grouped: bool, spread: bool) -> dict[str, Column]:
    """The scores of each task on this split."""
    short = without_shared(table.tasks)
    columns: dict[str, Column] = {}
    for task in table.tasks:
        scores = [line.scores.get((split, task)) for line in table.lines]
        measure = "" if table.measure else table.measures.get(task, "")
        full = f"{task}. " if short[task] != task else ""
        columns[f"{task}, {split}"] = Column(
            "number",
            [None if score is None else 100 * score.mean for score in scores],
            [
                "–" * ((split, task) in line.undefined) if score is None else percent(score.mean)
                for score, line in zip(scores, table.lines, strict=True)
            ],
            _spreads(scores) if spread else (),
            head=", ".join(filter(None, (short[task], measure))),
            bold=table.best(split, task),
            help=full + (_MEANS if grouped else _IN_RUN),
            is_usual=True,
            is_score=True,
        )
    return columns


def _spreads(scores: Sequence[MeanSD | None]) -> list[str]:
    """`± 0.31 (5)` after each mean of several seeds."""
    return [
        "" if score is None or score.sd is None else f"{spread_text(100 * score.sd)} ({score.n})"
        for score in scores
    ]


def _problems(lines: Sequence[Line]) -> Column:
    help_ = "Why the run cannot be read, and is left out of comparisons"
    return _texts([line.problem for line in lines], help_, is_usual=True)


def _states(lines: Sequence[Line]) -> Column:
    grouped = lines[0].run is None
    states = [
        [
            *(_state(state, count * grouped) for state, count in line.states),
            *[("gray", tasks_and_seeds([run.config for run in line.runs]))]
            * (len({run.config.tasks for run in line.runs}) > 1),
            *(("orange", learned_nothing_text(task)) for task in line.learned_nothing),
        ]
        for line in lines
    ]
    order = list(RunState)  # the largest are those that ended badly
    values = [order.index(line.states[0][0]) + bool(line.learned_nothing) / 2 for line in lines]
    help_ = f"{STATES[RunState.SUCCEEDED].mark} and how many runs have succeeded; what is else is in words"
    return Column("words", values, states, shares=_shares(lines), help=help_, is_usual=True)


def _state(state: RunState, count: int) -> tuple[str, str]:
    """The colour and the text of so many runs in this state: those that succeeded are quiet and short."""
    if state is RunState.SUCCEEDED:
        return "gray", f"{STATES[state].mark} {count}" if count else state_text(state)
    return STATES[state].colour, state_text(state, count)


def _shares(lines: Sequence[Line]) -> list[float | None]:
    return [100 * line.done if line.is_active else None for line in lines]


def _shares_done(lines: Sequence[Line]) -> Column:
    shares = _shares(lines)
    texts = ["" if share is None else f"{share:.0f}%" for share in shares]
    return Column(
        "number", shares, texts, shares=shares, help="The share of the training steps that are done"
    )


def _seeds(lines: Sequence[Line], picked: Collection[int]) -> Column:
    help_ = "In brackets: the runs where a seed was repeated, or the chosen runs"
    texts = [_seeds_text(line, picked) for line in lines]
    return Column("number", [line.seeds for line in lines], texts, help=help_)


def _seeds_text(line: Line, picked: Collection[int]) -> str:
    """The number of seeds, and how many of the runs are chosen where only some are."""
    runs, chosen_runs = len(line.run_ids), len(set(picked).intersection(line.run_ids))
    if 0 < chosen_runs < runs:
        return f"{line.seeds} ({chosen_runs} chosen)"
    return str(line.seeds) + (f" ({plural(runs, 'run')})" if line.counted < runs else "")


def _numbers(values: Sequence[float | None], help_: str = "") -> Column:
    return Column("number", values, ["" if value is None else str(value) for value in values], help=help_)


def _texts(texts: Sequence[str], help_: str = "", *, is_usual: bool = False) -> Column:
    return Column("text", [text or None for text in texts], texts, help=help_, is_usual=is_usual)


def _lambdas(lines: Sequence[Line]) -> Column:
    values = [line.config.lambda_ for line in lines]
    return Column("number", values, number_texts(values), help="The strength of the MRN prior")


def _shares_of_data(lines: Sequence[Line]) -> Column:
    shares = [line.config.fraction for line in lines]
    texts = [text.removesuffix(" of the data") for text in field_texts("fraction", shares)]
    help_ = "The share of the training sentences used"
    return Column("number", shares, texts, help=help_)


def _encoders(lines: Sequence[Line]) -> Column:
    encoders = field_texts("encoder", [line.config.encoder for line in lines])
    trainings = [line.config.encoder_training for line in lines]
    texts = list(map(encoder_title, encoders, trainings))
    return _texts(texts)


def _priorities(lines: Sequence[Line]) -> Column:
    return _numbers([line.priority for line in lines], "Of queued runs: higher priorities start first")


def _times(lines: Sequence[Line]) -> Column:
    seconds = [line.seconds for line in lines]
    texts = ["" if value is None else duration(value) for value in seconds]
    return Column("number", seconds, texts, help="Wall-clock time of training, the mean over seeds")


def _ages(lines: Sequence[Line]) -> Column:
    values = [line.newest.timestamp() for line in lines]
    return Column("number", values, [ago(line.newest) for line in lines])


def _keywords(lines: Sequence[Line]) -> Column:
    values = [", ".join(line.keywords) or None for line in lines]
    return Column("chips", values, [[("gray", word) for word in line.keywords] for line in lines])


_Rows = Literal["configurations", "runs"]


@dataclass(frozen=True)
class _Entry:
    """A column of the table: its head, its drawing from the lines and the chosen runs, and where it shows.

    It shows in tables whose lines are of one of `rows`, where one of the lines has a value. Names need not
    have the `fields` that it shows.
    """

    head: str
    column: Callable[[Sequence[Line], Collection[int]], Column]
    rows: Collection[_Rows] = ("configurations", "runs")
    has_value: Callable[[Line], object] = lambda line: True
    fields: Collection[str] = ()


_RUNS: tuple[_Rows, ...] = ("runs",)
_CONFIGURATIONS: tuple[_Rows, ...] = ("configurations",)
_COLUMNS = (
    _Entry("Problem", lambda lines, _: _problems(lines), has_value=lambda line: line.problem),
    _Entry("State", lambda lines, _: _states(lines)),
    _Entry("Done", lambda lines, _: _shares_done(lines), has_value=lambda line: line.is_active),
    _Entry("Seeds", _seeds, rows=_CONFIGURATIONS),
    _Entry("Run", lambda lines, _: _numbers([line.run for line in lines]), rows=_RUNS),
    _Entry("Seed", lambda lines, _: _numbers([line.config.seed for line in lines]), rows=_RUNS),
    _Entry("λ", lambda lines, _: _lambdas(lines)),
    _Entry("Share", lambda lines, _: _shares_of_data(lines), fields=("fraction",)),
    _Entry("Encoder", lambda lines, _: _encoders(lines), fields=("encoder", "encoder_training")),
    _Entry("Priority", lambda lines, _: _priorities(lines), has_value=lambda line: line.priority),
    _Entry("Time", lambda lines, _: _times(lines)),
    _Entry("Queued", lambda lines, _: _ages(lines)),
    _Entry("Keywords", lambda lines, _: _keywords(lines), has_value=lambda line: line.keywords),
)
"""The columns behind the name and the scores, from left to right. A new one is an entry."""
FIELDS_SHOWN = {entry.head: entry.fields for entry in _COLUMNS}
"""By the head of a column the fields of a run that it shows, which a name beside it need not have."""
