"""What the Transfer page shows, without Streamlit: sentences, tables of pairs, courses of losses."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from core.config import RunConfig
from core.evaluation.comparison import NEGLIGIBLE, UNDECIDED
from core.store.records import MetricSeries
from core.transfer.gains import GAINS, LOSES, Gain, Gains, Pair
from core.wording import first_of, percent, plural, signed_points, unsigned_zero
from dashboard.components.pair_table import PairCell, PairRow, PairTable
from dashboard.text import escape
from jobs.reports.naming import corpus_name, encoder_title, field_text, fields_apart
from jobs.reports.transfer import PairGroup

Floats = NDArray[np.float64]

UNITS = {"points": "Points", "relative": "Percent of STL"}
SHARES_NOTHING = (
    "Over a frozen encoder without a BiLSTM, STL and MTL are the same model by construction: no trained "
    "weight is shared, so no task can help another. A gain other than zero comes from other batches or "
    "steps. To measure transfer, add a BiLSTM or fine-tune the encoder."
)
_FULL = 0.9
"""The share of the values whose size lies within the scale: a few large ones would make all others pale."""
_BINS = 40
_MOST_NAMED = 3


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
    return gain.relative if unit == "relative" else 100 * gain.mean


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
    """How many pairs have which verdict, and the largest of the decided gains and losses, as Markdown."""
    by_verdict: dict[str, list[Gain]] = {word: [] for word in (GAINS, LOSES, UNDECIDED, NEGLIGIBLE)}
    for gain in gains.pairs.values():
        by_verdict[gain.word].append(gain)
    counts = {verdict: len(of) for verdict, of in by_verdict.items()}
    pairs = plural(len(gains.pairs), "pair")
    if all(gain.is_equal for gain in gains.pairs.values()):
        return f"Of {pairs}, none differs: every seed has the same score alone and beside the other task."
    negligible = f"{counts[NEGLIGIBLE]} {'is' if counts[NEGLIGIBLE] == 1 else 'are'} negligible"
    if not counts[GAINS] + counts[LOSES]:
        need = f"{counts[UNDECIDED]} of {pairs} {'needs' if counts[UNDECIDED] == 1 else 'need'} more seeds"
        return f"No pair is decided yet: {need}{'; ' + negligible if counts[NEGLIGIBLE] else ''}."
    parts = [
        f"{counts[verdict]} {one if counts[verdict] == 1 else more}{_largest(by_verdict[verdict], unit)}"
        for verdict, one, more in ((GAINS, "gains", "gain"), (LOSES, "loses", "lose"))
        if counts[verdict]
    ]
    if counts[UNDECIDED]:
        parts.append(f"{counts[UNDECIDED]} {'is' if counts[UNDECIDED] == 1 else 'are'} undecided")
    return f"Of {pairs}, {', '.join(parts + [negligible] * bool(counts[NEGLIGIBLE]))}."


def _largest(gains: Sequence[Gain], unit: str) -> str:
    """The largest of these gains, or losses, in brackets; no pair is named where several are all equal."""
    amounts = {gain: _amount(value, unit) for gain in gains if math.isfinite(value := value_of(gain, unit))}
    if not amounts:
        return ""
    largest = amounts[max(amounts, key=lambda gain: abs(value_of(gain, unit)))]
    named = [
        f"{escape(gain.main)} beside {escape(gain.aux)}"
        for gain, amount in amounts.items()
        if amount == largest
    ]
    if len(named) == len(gains) > 1:
        return f" (each {largest})"
    return f" ({'most: ' if len(gains) > 1 else ''}{first_of(named, _MOST_NAMED)}, {largest})"


def _amount(value: float, unit: str) -> str:
    return f"{signed_number(value)}{'%' if unit == 'relative' else ' points'}"


def caution(gains: Gains) -> str:
    """How far the verdicts of the pairs can be trusted, in a sentence."""
    seeds = {gain.seeds for gain in gains.pairs.values()}
    if max(seeds) < 2:
        return "Every pair has one seed so far: no interval, so nothing is decided."
    fewest, most = min(seeds), max(seeds)
    count = plural(most, "seed") if fewest == most else f"{fewest} to {most} seeds"
    return (
        f"Gain: test score of MTL of the two less that of STL, paired by seed ({count}). The 95% interval is "
        "of each pair by itself; verdicts follow p, corrected for the auxiliary tasks of a main task (Holm)."
    )


def gain_sentence(gain: Gain, unit: str) -> str:
    """What one task gains beside another, as Markdown."""
    if gain.is_equal:
        return (
            f"**{escape(gain.main)}** beside {escape(gain.aux)} has the same score as alone on every seed: "
            f"{percent(gain.alone)}, {plural(gain.seeds, 'seed')}."
        )
    verb = gain.word if gain.is_decided else f"is {gain.word}:"
    size = abs(value_of(gain, unit)) if gain.is_decided else value_of(gain, unit)
    amount = _amount(size, unit).lstrip("+") if gain.is_decided else _amount(size, unit)
    interval = ""
    if gain.interval is not None:
        low, high = gain.interval
        interval = f", 95% interval {signed_points(low)} to {signed_points(high)} points"
    return (
        f"**{escape(gain.main)}** beside {escape(gain.aux)} {verb} {amount}{interval}; "
        f"{percent(gain.alone)} alone, {percent(gain.alone + gain.mean)} beside it, "
        f"{plural(gain.seeds, 'seed')}."
    )


def gains_table(gains: Gains, unit: str, colours: Mapping[str, str]) -> PairTable:
    """The measured gains, grey where they are not decided; STL's score beside each main task."""
    values = {pair: value_of(gain, unit) for pair, gain in gains.pairs.items()}
    decided = [pair for pair, gain in gains.pairs.items() if gain.is_decided]
    limit = scale_limit([values[pair] for pair in decided or values])
    gained, helped = means(gains, unit)

    def cell(pair: Pair) -> PairCell | None:
        if (gain := gains.pairs.get(pair)) is None:
            return None
        title = (
            f"{gain.main} beside {gain.aux}: {gain.word}, {gain.in_points} points, "
            f"{signed_number(gain.relative)}% of STL, {plural(gain.seeds, 'seed')}"
        )
        return PairCell(signed_number(values[pair]), values[pair] / limit, title, not gain.is_decided)

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
        grey="undecided, or the same",
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
            "Gain": 100 * gain.mean,
            "Low": 100 * gain.interval[0] if gain.interval else None,
            "High": 100 * gain.interval[1] if gain.interval else None,
            "% of STL": gain.relative,
            "Seeds": gain.seeds,
            "p": gain.p,
            "Verdict": gain.word,
        }
        for gain in sorted(gains.pairs.values(), key=lambda gain: -gain.mean)
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
    return max(gains.pairs, key=lambda pair: (gains.pairs[pair].is_decided, gains.pairs[pair].mean))
