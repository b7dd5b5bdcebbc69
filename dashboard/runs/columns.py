"""The columns of a table of runs: the values that sort them, their texts and their looks.

A new column is an entry of `_COLUMNS`.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Sequence
from dataclasses import dataclass
from typing import Any, Literal

import streamlit as st

from core.evaluation.statistics import MeanSD
from core.results.naming import encoder_title, field_text
from core.wording import ago, duration, number, percent, plural, spread_text, without_shared
from dashboard.runs.views import MOST_TESTED, Line, Table
from dashboard.shared.states import learned_nothing_text, state_text
from dashboard.text import escape
from dashboard.theme import STATES

_MEANS = (
    "Mean over seeds, times 100, ± standard deviation (number of seeds). "
    "Bold: higher than each other method on the same text and share of the data, as Compare tests it "
    f"(up to {MOST_TESTED} lines). Of lines that differ in numbers such as λ, the one dev chooses counts."
)
_IN_RUN = "Times 100; on dev, a run in progress has the score of its last epoch"
_WIDEST_NAME, _WIDE_TABLE = (420, 240), 5
"""The widest name in pixels, in a table of few and of many columns of scores."""


@dataclass(frozen=True)
class Column:
    """A column: its values, which sort it, its look, the texts to show for the values, and the lines in bold.

    `is_usual`: whether it is shown where the reader chose no columns.
    """

    values: Sequence[Any]
    look: Any
    texts: Sequence[str] | None = None
    bold: Collection[int] = ()
    is_usual: bool = False


def columns_of(
    table: Table, split: str, picked: Collection[int], key: str, on_open: Callable[[], None]
) -> dict[str, Column]:
    """Returns the columns of a table by their names.

    `picked` runs are chosen; `key` is the table's; `on_open` is called when the eye of a line is pressed.
    """
    lines = table.lines
    rows: _Rows = "configurations" if lines[0].run is None else "runs"
    return {
        "": _eye(lines, key, on_open),
        "Name": _names(lines, _WIDEST_NAME[len(table.tasks) >= _WIDE_TABLE]),
        **_scores(table, split, grouped=rows == "configurations"),
        **{
            entry.head: entry.column(lines, picked)
            for entry in _COLUMNS
            if rows in entry.rows and any(map(entry.has_value, lines))
        },
    }


def _eye(lines: Sequence[Line], key: str, on_open: Callable[[], None]) -> Column:
    look = st.column_config.ButtonColumn(
        "Open", type="tertiary", width=52, pinned=True, key=f"{key}_eye", on_click=on_open,
        help="Show the runs of a configuration, or one run in full",
    )  # fmt: skip
    return Column([":material/visibility:"] * len(lines), look)


def _names(lines: Sequence[Line], widest: int) -> Column:
    names = [line.name for line in lines]
    look = st.column_config.TextColumn(width=min(widest, _width(names, bold=True)), pinned=True)
    return Column(names, look, None, range(len(lines)))


def _scores(table: Table, split: str, *, grouped: bool) -> dict[str, Column]:
    """The scores of each task on this split."""
    short = without_shared(table.tasks)
    columns: dict[str, Column] = {}
    for task in table.tasks:
        scores = [line.scores.get((split, task)) for line in table.lines]
        measure = "" if table.measure else table.measures.get(task, "")
        label = ", ".join(filter(None, (short[task], measure)))
        full = f"{escape(task)}. " if short[task] != task else ""
        texts = [
            "–" * ((split, task) in line.undefined) if score is None else _score_text(score)
            for score, line in zip(scores, table.lines, strict=True)
        ]
        columns[f"{task}, {split}"] = Column(
            [None if score is None else 100 * score.mean for score in scores],
            st.column_config.Column(
                label,
                help=full + (_MEANS if grouped else _IN_RUN),
                width=_width([label, *texts]),
                alignment="right",
            ),
            texts,
            table.best(split, task),
            is_usual=True,
        )
    return columns


def _score_text(score: MeanSD) -> str:
    """`89.79`; of several seeds `89.79 ± 0.31 (5)`."""
    several = "" if score.sd is None else f" {spread_text(100 * score.sd)} ({score.n})"
    return percent(score.mean) + several


def _problems(lines: Sequence[Line]) -> Column:
    look = st.column_config.TextColumn(
        width=260, help="Why the run cannot be read, and is left out of comparisons"
    )
    return Column([line.problem for line in lines], look, is_usual=True)


def _states(lines: Sequence[Line]) -> Column:
    grouped = lines[0].run is None
    states = [
        [
            *(state_text(state, count * grouped) for state, count in line.states),
            *map(learned_nothing_text, line.learned_nothing),
        ]
        for line in lines
    ]
    shown = dict.fromkeys(pair for line in lines for pair in line.states)
    empty_heads = dict.fromkeys(task for line in lines for task in line.learned_nothing)
    look = st.column_config.MultiselectColumn(
        options=[
            *(state_text(state, count * grouped) for state, count in shown),
            *map(learned_nothing_text, empty_heads),
        ],
        color=[*(STATES[state].colour for state, _ in shown), *("orange" for _ in empty_heads)],
        width=_width("".join(texts) + 3 * " " * len(texts) for texts in states),
    )
    return Column(states, look, is_usual=True)


def _shares_done(lines: Sequence[Line]) -> Column:
    look = st.column_config.ProgressColumn(
        min_value=0, max_value=100, format="%.0f%%", width=84, color="blue"
    )
    return Column([100 * line.done if line.is_active else None for line in lines], look)


def _seeds(lines: Sequence[Line], picked: Collection[int]) -> Column:
    help_ = "In brackets: the runs where a seed was repeated, or the chosen runs"
    texts = [_seeds_text(line, picked) for line in lines]
    return Column([line.seeds for line in lines], st.column_config.Column(width=84, help=help_), texts)


def _seeds_text(line: Line, picked: Collection[int]) -> str:
    """The number of seeds, and how many of the runs are chosen where only some are."""
    runs, chosen_runs = len(line.run_ids), len(set(picked).intersection(line.run_ids))
    if 0 < chosen_runs < runs:
        return f"{line.seeds} ({chosen_runs} chosen)"
    return str(line.seeds) + (f" ({plural(runs, 'run')})" if line.counted < runs else "")


def _numbers(values: Sequence[int | None], width: int, help_: str | None = None) -> Column:
    return Column(values, st.column_config.NumberColumn(width=width, help=help_))


def _lambdas(lines: Sequence[Line]) -> Column:
    values = [line.config.lambda_ for line in lines]
    look = st.column_config.Column(width=64, help="The strength of the MRN prior")
    return Column(values, look, ["" if value is None else number(value) for value in values])


def _shares_of_data(lines: Sequence[Line]) -> Column:
    shares = [line.config.fraction for line in lines]
    look = st.column_config.Column(width=64, help="The share of the training sentences used")
    return Column(shares, look, [f"{100 * share:g}%" for share in shares], is_usual=len(set(shares)) > 1)


def _encoders(lines: Sequence[Line]) -> Column:
    pairs = [(line.config.encoder, line.config.encoder_training) for line in lines]
    texts = [encoder_title(field_text("encoder", encoder), training) for encoder, training in pairs]
    look = st.column_config.TextColumn(width=_width(texts))
    return Column(texts, look, is_usual=len(set(pairs)) > 1)


def _priorities(lines: Sequence[Line]) -> Column:
    return _numbers([line.priority for line in lines], 72, "Of queued runs: higher priorities start first")


def _times(lines: Sequence[Line]) -> Column:
    seconds = [None if line.seconds is None else round(line.seconds, 1) for line in lines]
    texts = [duration(line.seconds) for line in lines]
    look = st.column_config.Column(
        width=_width(texts), help="Wall-clock time of training, the mean over seeds"
    )
    return Column(seconds, look, texts)


def _ages(lines: Sequence[Line]) -> Column:
    texts = [ago(line.newest) for line in lines]
    return Column([line.newest for line in lines], st.column_config.Column(width=_width(texts)), texts)


def _keywords(lines: Sequence[Line]) -> Column:
    keywords = sorted({word for line in lines for word in line.keywords})
    look = st.column_config.MultiselectColumn(options=keywords, color="gray", width=130)
    return Column([list(line.keywords) for line in lines], look)


def _width(texts: Iterable[str], *, bold: bool = False) -> int:
    return 24 + (8 if bold else 7) * max(map(len, texts))


_Rows = Literal["configurations", "runs"]


@dataclass(frozen=True)
class _Entry:
    """A column of the table: its head, its drawing from the lines and the chosen runs, and where it shows.

    It shows in tables whose lines are of one of `rows`, where one of the lines has a value.
    """

    head: str
    column: Callable[[Sequence[Line], Collection[int]], Column]
    rows: Collection[_Rows] = ("configurations", "runs")
    has_value: Callable[[Line], object] = lambda line: True


_ONE: tuple[_Rows, ...] = ("runs",)
_SEVERAL: tuple[_Rows, ...] = ("configurations",)
_COLUMNS = (
    _Entry("Problem", lambda lines, _: _problems(lines), has_value=lambda line: line.problem),
    _Entry("State", lambda lines, _: _states(lines)),
    _Entry("Done", lambda lines, _: _shares_done(lines), has_value=lambda line: line.is_active),
    _Entry("Seeds", _seeds, rows=_SEVERAL),
    _Entry("Run", lambda lines, _: _numbers([line.run for line in lines], 60), rows=_ONE),
    _Entry("Seed", lambda lines, _: _numbers([line.config.seed for line in lines], 60), rows=_ONE),
    _Entry("λ", lambda lines, _: _lambdas(lines)),
    _Entry("Share", lambda lines, _: _shares_of_data(lines)),
    _Entry("Encoder", lambda lines, _: _encoders(lines)),
    _Entry("Priority", lambda lines, _: _priorities(lines), has_value=lambda line: line.priority),
    _Entry("Time", lambda lines, _: _times(lines)),
    _Entry("Queued", lambda lines, _: _ages(lines)),
    _Entry("Keywords", lambda lines, _: _keywords(lines), has_value=lambda line: line.keywords),
)
"""The columns behind the eye, the name and the scores, from left to right. A new one is an entry."""
