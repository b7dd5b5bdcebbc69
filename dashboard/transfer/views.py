"""What the Transfer page shows, without Streamlit: sentences, tables of pairs, courses of losses."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from core.config import RunConfig
from core.store.records import MetricSeries
from core.transfer.gains import Gain, Gains, Pair
from core.wording import percent, plural, signed_points, unsigned_zero
from dashboard.components.pair_table import PairCell, PairRow, PairTable
from dashboard.text import escape
from jobs.naming import corpus_name, encoder_title, field_text, fields_apart
from jobs.transfer import PairGroup

Floats = NDArray[np.float64]

UNITS = {"points": "Points", "relative": "Percent of STL"}
_FULL = 0.9
"""The share of the values whose size lies within the scale: a few large ones would make all others pale."""
_BINS = 40


def group_names(groups: Sequence[PairGroup]) -> list[str]:
    """A name for each group of runs: its tasks, encoder and corpus, and what sets it apart."""
    names = [
        f"{plural(len(group.gains.pairs), 'pair')} of {plural(len(group.gains.tasks), 'task')} · "
        f"{encoder_title(field_text('encoder', group.config.encoder), group.config.encoder_training)} · "
        f"{corpus_text(group.config)}"
        for group in groups
    ]
    apart = list(fields_apart([group.config for group in groups]))
    for place, name in enumerate(names):
        if names.count(name) > 1:
            more = [
                texts[place] for field, texts in apart if texts[place] and field not in ("tasks", "paradigm")
            ]
            names[place] = " · ".join([name, *more, groups[place].key])
    return names


def corpus_text(config: RunConfig) -> str:
    """The corpus's name, without the list of tasks that a derived one may have."""
    name, _, options = corpus_name(config).partition("?")
    shown = [option for option in options.split("&") if option and not option.startswith("tasks=")]
    return "?".join([name, *filter(None, ["&".join(shown)])])


def value_of(gain: Gain, unit: str) -> float:
    """The gain in points, or in percent of STL."""
    return gain.relative if unit == "relative" else 100 * gain.paired.mean


def signed_number(value: float) -> str:
    """Two decimals and a sign, a real minus; no sign on zero."""
    return signed_points(value / 100)


def means(gains: Gains, unit: str) -> tuple[dict[str, float], dict[str, float]]:
    """By task: the mean of what it gains from the others, and of what the others gain by it."""
    by_main: dict[str, list[float]] = {}
    by_aux: dict[str, list[float]] = {}
    for (main, aux), gain in gains.pairs.items():
        by_main.setdefault(main, []).append(value_of(gain, unit))
        by_aux.setdefault(aux, []).append(value_of(gain, unit))
    gained, helped = (
        {task: float(np.mean(values)) for task, values in of.items()} for of in (by_main, by_aux)
    )
    return gained, helped


def answer(gains: Gains, unit: str) -> str:
    """Which pairs gain, which task helps most and which gains most, as Markdown."""
    pairs = list(gains.pairs.values())
    decided = [gain for gain in pairs if gain.is_decided]
    higher = sum(gain.paired.mean > 0 for gain in decided)
    counts = f"{higher} gain, {len(decided) - higher} lose, {len(pairs) - len(decided)} are undecided"
    words = f"Of {plural(len(pairs), 'pair')}, {counts}."
    gained, helped = means(gains, unit)
    if len(gains.tasks) > 2:
        helps, gains_most = (max(of, key=of.__getitem__) for of in (helped, gained))
        words += (
            f" {escape(helps)} helps most: beside it the others gain {_amount(helped[helps], unit)} on "
            f"average. {escape(gains_most)} gains most: {_amount(gained[gains_most], unit)} on average."
        )
    return words


def _amount(value: float, unit: str) -> str:
    return f"{signed_number(value)}{'%' if unit == 'relative' else ' points'}"


def caution(gains: Gains) -> str:
    """How far the verdicts of the pairs can be trusted, in a sentence."""
    seeds = {gain.paired.n for gain in gains.pairs.values()}
    if max(seeds) < 2:
        return "Every pair has one seed so far: no interval, so nothing is decided."
    by_chance = 0.05 * len(gains.pairs)
    fewest, most = min(seeds), max(seeds)
    count = plural(most, "seed") if fewest == most else f"{fewest} to {most} seeds"
    chance = f"; of {len(gains.pairs)} pairs without any effect, about {by_chance:.0f} would leave out zero"
    return (
        f"Gain: test score of MTL of the two less that of STL, paired by seed ({count}). The 95% interval is "
        f"of each pair by itself{chance if by_chance >= 1 else ''}."
    )


def gain_sentence(gain: Gain, unit: str) -> str:
    """What one task gains beside another, as Markdown."""
    paired = gain.paired
    verb = "is undecided:" if not gain.is_decided else "gains" if paired.mean > 0 else "loses"
    size = abs(value_of(gain, unit)) if gain.is_decided else value_of(gain, unit)
    amount = _amount(size, unit).lstrip("+") if gain.is_decided else _amount(size, unit)
    interval = ""
    if paired.low is not None and paired.high is not None:
        interval = f", 95% interval {signed_points(paired.low)} to {signed_points(paired.high)} points"
    return (
        f"**{escape(gain.main)}** beside {escape(gain.aux)} {verb} {amount}{interval}; "
        f"{percent(gain.alone)} alone, {percent(gain.alone + paired.mean)} beside it, "
        f"{plural(paired.n, 'seed')}."
    )


def gains_table(gains: Gains, unit: str, colours: Mapping[str, str]) -> PairTable:
    """The measured gains, grey where the interval includes zero; STL's score beside each main task."""
    values = {pair: value_of(gain, unit) for pair, gain in gains.pairs.items()}
    decided = {pair for pair, gain in gains.pairs.items() if gain.is_decided}
    limit = scale_limit([values[pair] for pair in decided or values])
    gained, helped = means(gains, unit)

    def cell(pair: Pair) -> PairCell | None:
        if (gain := gains.pairs.get(pair)) is None:
            return None
        verdict = "undecided" if pair not in decided else "gains" if gain.paired.mean > 0 else "loses"
        low, high = gain.paired.low, gain.paired.high
        interval = "" if low is None or high is None else f" [{signed_points(low)}, {signed_points(high)}]"
        title = (
            f"{gain.main} beside {gain.aux}: {verdict}, {signed_points(gain.paired.mean)}{interval} points, "
            f"{signed_number(gain.relative)}% of STL, {plural(gain.paired.n, 'seed')}"
        )
        return PairCell(signed_number(values[pair]), values[pair] / limit, title, pair not in decided)

    mark = "%" if unit == "relative" else ""
    return PairTable(
        [
            PairRow(
                task,
                colours.get(task, "transparent"),
                percent(gains.alone[task].mean) if task in gains.alone else "",
                signed_number(gained[task]) if task in gained else "",
            )
            for task in gains.tasks
        ],
        [[cell((main, aux)) for aux in gains.tasks] for main in gains.tasks],
        f"loses {limit:.2f}{mark} or more",
        f"gains {limit:.2f}{mark} or more",
        "Gain of each main task (row) by each auxiliary task (column)",
        means=[signed_number(helped[task]) if task in helped else "" for task in gains.tasks],
        corner="main ↓ · STL · aux →",
        grey="interval includes zero",
    )


def scale_limit(values: Sequence[float]) -> float:
    """Where the scale ends on both sides of zero; above 0."""
    sizes = [abs(value) for value in values if math.isfinite(value)]
    return float(np.quantile(sizes, _FULL)) or 1.0 if sizes else 1.0


def value_table(
    gains: Gains,
    values: Mapping[Pair, float],
    colours: Mapping[str, str],
    *,
    name: str,
    centre: float = 0.0,
    limit: float | None = None,
    ends: tuple[str, str],
) -> PairTable:
    """What a predictor has for each pair, on a scale around `centre`."""
    known = {pair: value for pair, value in values.items() if math.isfinite(value)}
    reach = limit or scale_limit([value - centre for value in known.values()])
    digits = 2 if reach >= 0.05 else 3

    def cell(pair: Pair) -> PairCell | None:
        if pair not in known:
            return None
        text = f"{unsigned_zero(known[pair], digits):.{digits}f}".replace("-", "−")
        return PairCell(text, (known[pair] - centre) / reach, f"{pair[0]} beside {pair[1]}: {name} {text}")

    return PairTable(
        [PairRow(task, colours.get(task, "transparent")) for task in gains.tasks],
        [[cell((main, aux)) for aux in gains.tasks] for main in gains.tasks],
        *ends,
        f"{name} of each main task (row) and auxiliary task (column)",
        corner="main ↓ · aux →",
    )


def pairs_frame(gains: Gains) -> pd.DataFrame:
    """The gains as a table, the largest first; points but for the relative gain, scores in percent."""
    rows = [
        {
            "Main": gain.main,
            "Auxiliary": gain.aux,
            "STL": 100 * gain.alone,
            "Gain": 100 * gain.paired.mean,
            "Low": None if gain.paired.low is None else 100 * gain.paired.low,
            "High": None if gain.paired.high is None else 100 * gain.paired.high,
            "% of STL": gain.relative,
            "Seeds": gain.paired.n,
            "Verdict": "undecided" if not gain.is_decided else "gains" if gain.paired.mean > 0 else "loses",
        }
        for gain in sorted(gains.pairs.values(), key=lambda gain: -gain.paired.mean)
    ]
    return pd.DataFrame(rows)


# One pair


@dataclass(frozen=True)
class Course:
    """The training loss of a task over the share of training: (B,) shares and means over seeds, (S, B)."""

    shares: Floats
    mean: Floats
    seeds: Floats


def course(curves: Sequence[MetricSeries], steps: Mapping[int, int]) -> Course | None:
    """The losses of seeds, each the mean over bins of training; None where there is none.

    `steps` are the steps of each run. Runs of one task and of two have different steps: their shares compare.
    """
    binned = np.full((len(curves), _BINS), np.nan)
    for row, curve in zip(binned, curves, strict=True):
        share = curve.step / max(steps[curve.run_id], 1)
        place = np.clip(np.ceil(_BINS * share).astype(int) - 1, 0, _BINS - 1)
        known = np.isfinite(curve.value)
        count = np.bincount(place[known], minlength=_BINS)
        total = np.bincount(place[known], curve.value[known], minlength=_BINS)
        row[count > 0] = total[count > 0] / count[count > 0]
    kept = np.isfinite(binned).any(axis=0)
    if not kept.any():
        return None
    binned = binned[:, kept]
    return Course((np.flatnonzero(kept) + 0.5) / _BINS, np.nanmean(binned, axis=0), binned)


def best_pair(gains: Gains) -> Pair:
    """The pair that is shown first: the largest decided gain, else the largest."""
    return max(gains.pairs, key=lambda pair: (gains.pairs[pair].is_decided, gains.pairs[pair].paired.mean))
