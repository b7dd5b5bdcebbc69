"""The values of the Transfer page: sentences, tables of pairs, losses over training."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from core.evaluation.comparison import HIGHER, LOWER
from core.evaluation.mistakes import Errors, mistake_text, mistakes
from core.results.naming import SCORE_NAMES, corpus_name, encoder_title, field_text, fields_apart
from core.store.types import MetricSeries
from core.tasks.confusion import NOTHING
from core.transfer.gains import Gain, Gains, Pair
from core.transfer.predictors import Judgement
from core.wording import all_of, duration, p_text, percent, plural, signed_points, spread_text
from dashboard.components.pair_table import PairCell, PairRow, PairTable
from dashboard.text import escape
from jobs.reports.parts import SIGNED, Entry, Sheet, number_text, p_entry
from jobs.reports.transfer import PairGroup
from jobs.studies.pairs import amount_text, seeds_text

Floats = NDArray[np.float64]
_NO_TEXTS: Mapping[str, str] = {}

_FULL = 0.9
"""The share of the values whose size lies within the scale: a few large ones would make all others pale."""
_BINS = 40
_MOST_LABELS = 4
FEW_TASKS = 5
"""Cells of so few tasks have room for their intervals, and their table for a chart beside it."""


def group_names(groups: Sequence[PairGroup]) -> list[str]:
    """A name for each group of runs: its tasks, encoder and corpus, and its differences from the others."""
    names = [
        f"{plural(len(group.gains.pairs), 'pair')} of {plural(len(group.gains.tasks), 'task')} · "
        f"{encoder_title(field_text('encoder', group.config.encoder), group.config.encoder_training)} · "
        # The list of tasks that a derived corpus may have is long.
        f"{corpus_name(group.config.corpus, hidden=('tasks',))}"
        for group in groups
    ]
    taken = Counter(names)
    apart = [
        texts
        for field, texts in fields_apart([group.config for group in groups])
        if field not in ("tasks", "paradigm")
    ]
    for index, name in enumerate(names):
        if taken[name] > 1:
            more = [texts[index] for texts in apart if texts[index]]
            names[index] = " · ".join([name, *more, groups[index].key])
    return names


def no_percent_sentence(gains: Gains) -> str:
    """Says which pairs have no gain in percent of STL; empty where all have one."""
    tasks = dict.fromkeys(gain.main for gain in gains.pairs.values() if math.isnan(gain.relative))
    if not tasks:
        return ""
    return f"–: STL scores zero or less on {all_of(list(tasks))}, so there is no percentage."


def caution(gains: Gains) -> str:
    """Returns what a gain is, and what is coloured, as plain text; `ABOUT_GAINS` says more."""
    if max(gain.seeds for gain in gains.pairs.values()) < 2:
        return "Every pair has one seed so far: no interval, so nothing is decided."
    return f"Gain: test score of MTL less STL, {seeds_text(gains)}, with its 95% interval. Coloured: decided."


ABOUT_GAINS = (
    "MTL of the two tasks less STL of the main one, paired by seed. The interval is of each pair by itself; "
    "decided is what p says after correction for the pairs of a main task (Holm). Point at a cell for its p."
)


def _scored(score: float, score_name: str, between: str = " ") -> str:
    """The score and its name, where that is known."""
    return f"{percent(score)}{between}{SCORE_NAMES.get(score_name, score_name)}".rstrip()


def gain_sentence(gain: Gain, unit: str, score_name: str = "") -> str:
    """A sentence on the gain of a main task by an auxiliary one, as Markdown."""
    alone = _scored(gain.alone, score_name)
    seeds = plural(gain.seeds, "seed")
    pair = f"**{escape(gain.main)}** beside {escape(gain.aux)}"
    if gain.learned_nothing:
        return f"{pair} scores 0 on every seed, alone and beside it: the head learned nothing, {seeds}."
    if gain.is_equal:
        return f"{pair} has the same score as alone on every seed: {alone}, {seeds}."
    verdict = gain.word if gain.is_decided else f"is {gain.word}"
    amount = amount_text(gain, relative=unit == "relative")
    interval = gain.interval_in_points and (
        f", 95% interval {gain.interval_in_points} points, corrected p {p_text(gain.p)}"
    )
    return (
        f"{pair} {verdict}: {amount}{escape(interval)}; "
        f"{alone} alone, {percent(gain.alone + gain.mean)} beside it, {seeds}."
    )


def gains_sheet(gains: Sequence[Gain], unit: str, scored_by: Mapping[str, str]) -> Sheet:
    """The gains of a pair both ways, a row each."""
    relative = unit == "relative"
    rows = [
        (
            f"{gain.main} beside {gain.aux}",
            Entry("learned nothing" if gain.learned_nothing else gain.word),
            Entry(gain.amount(relative=relative), form=SIGNED),
            Entry(gain.interval_in_points or "–"),
            p_entry(gain.p),
            Entry(_scored(gain.alone, scored_by.get(gain.main, ""))),
            Entry(100 * (gain.alone + gain.mean)),
            Entry(gain.seeds, form="d"),
        )
        for gain in gains
    ]
    amount = "Gain, % of STL" if relative else "Gain, points"
    interval = f"95% interval{', points' * relative}"
    head = ("Pair", "Verdict", amount, interval, "Corrected p", "Score alone", "Beside it", "Seeds")
    return Sheet.of(head, rows)


def _note(gain: Gain) -> str:
    return "learned nothing" if gain.learned_nothing else gain.interval_in_points


def gains_table(
    gains: Gains,
    unit: str,
    colours: Mapping[str, str],
    scored_by: Mapping[str, str] = _NO_TEXTS,
    *,
    can_transfer: bool = True,
) -> PairTable:
    """The measured gains, grey if they are not decided, with the STL score of each main task.

    `scored_by` are the names of these scores, where they are known.

    All are grey where the encoder shares nothing, so that nothing can transfer. Where all are there is no
    scale.
    """
    relative, mark = unit == "relative", "%" if unit == "relative" else ""
    values = {pair: gain.amount(relative=relative) for pair, gain in gains.pairs.items()}
    decided = [values[pair] for pair, gain in gains.pairs.items() if gain.is_decided]
    limit = max(1, math.ceil(round(scale_limit(decided), 6)))
    has_room = len(gains.tasks) <= FEW_TASKS and not relative
    cells = {
        pair: PairCell(
            "–" if math.isnan(values[pair]) or gain.learned_nothing else signed_points(values[pair] / 100),
            0.0 if math.isnan(values[pair]) else values[pair] / limit,
            f"{gain.main} beside {gain.aux}: {gain.sentence}"
            + ("" if math.isnan(gain.relative) else f"; {signed_points(gain.relative / 100)}% of STL"),
            grey=not (gain.is_decided and can_transfer),
            note=_note(gain) if has_room else "",
            nearly=gain.only_before_correction in (HIGHER, LOWER) and can_transfer,
        )
        for pair, gain in gains.pairs.items()
    }
    alone = {task: _scored(score.mean, scored_by.get(task, ""), "\n") for task, score in gains.alone.items()}
    return _table(
        gains.tasks,
        cells,
        colours,
        (f"loses {limit}{mark} or more", f"gains {limit}{mark} or more")
        if can_transfer and decided
        else ("", ""),
        "Gain of each main task (row) by each auxiliary task (column)",
        alone,
        "undecided or equivalent" if can_transfer else "no transfer",
    )


def _table(
    tasks: Sequence[str],
    cells: Mapping[Pair, PairCell],
    colours: Mapping[str, str],
    ends: tuple[str, str],
    alt: str,
    alone: Mapping[str, str] = _NO_TEXTS,
    grey: str = "",
) -> PairTable:
    rows = [PairRow(task, colours.get(task, "transparent"), alone.get(task, "")) for task in tasks]
    by_row = [[cells.get((main, aux)) for aux in tasks] for main in tasks]
    corner = f"beside →\ntrained for{', score alone' * bool(alone)} ↓"
    nearly = "decided only before correction" * any(cell.nearly for cell in cells.values())
    return PairTable(rows, by_row, *ends, alt, corner, grey, nearly)


def scale_limit(values: Sequence[float]) -> float:
    """Returns the limit of the scale on both sides of zero; above 0."""
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
    """The values of a predictor for each pair, on a scale around `centre`."""
    known = {pair: value for pair, value in values.items() if math.isfinite(value)}
    reach = limit or scale_limit([value - centre for value in known.values()])
    digits = 2 if reach >= 0.05 else 3
    cells = {}
    for pair, value in known.items():
        text = number_text(value, f"z.{digits}f")
        cells[pair] = PairCell(text, (value - centre) / reach, f"{pair[0]} beside {pair[1]}: {name} {text}")
    alt = f"{name} of each main task (row) and auxiliary task (column)"
    return _table(gains.tasks, cells, colours, ends, alt)


def pairs_frame(gains: Gains) -> pd.DataFrame:
    """The gains as a table, the largest first; points but for the relative gain, scores in percent."""
    rows = []
    for gain in sorted(gains.pairs.values(), key=lambda gain: -gain.mean):
        numbers = {name.capitalize(): value for name, value in gain.as_numbers().items()}
        pair = {"Main": gain.main, "Auxiliary": gain.aux, "STL": 100 * gain.alone}
        rows.append(pair | numbers | {"% of STL": gain.relative, "Verdict": gain.word})
    return pd.DataFrame(rows)


def strongest_first(gains: Gains) -> list[Gain]:
    """The gains of main tasks that learned something: decided ones first, then by size."""
    learned = [gain for gain in gains.pairs.values() if not gain.learned_nothing]
    return sorted(learned, key=lambda gain: (not gain.is_decided, -abs(gain.mean)))


def best_pair(gains: Gains) -> Pair:
    """The pair that is shown first: the largest decided gain, else decided loss, else the largest of all."""

    def rank(pair: Pair) -> tuple[bool, bool, bool, float]:
        gain = gains.pairs[pair]
        has_gained = gain.is_decided and gain.mean > 0
        size = abs(gain.mean) if gain.is_decided else gain.mean
        return has_gained, gain.is_decided, not gain.learned_nothing, size

    return max(gains.pairs, key=rank)


def best_sentence(judged: Sequence[Judgement]) -> str:
    """A sentence on the best predictor of gains by ROC AUC and its cost, as Markdown."""
    best = max(judged, key=lambda each: -math.inf if math.isnan(each.auc.value) else each.auc.value)
    if math.isnan(best.auc.value):
        return ""
    if best.auc.value <= 0.5:
        return "No predictor is better than chance (AUC 0.5)."
    auc = f"{best.auc.value:.2f} {spread_text(best.auc.sd)}".rstrip()
    cost = "" if best.seconds is None else f", {duration(best.seconds)} to compute"
    return f"**{escape(best.predictor)}** predicts best which pairs gain: AUC {auc}{cost}."


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
    bins = np.arange(_BINS)
    seeds = []
    for curve in curves:
        bins_of_steps = np.ceil(_BINS * curve.step / max(steps[curve.run_id], 1)).astype(int) - 1
        known = pd.Series(curve.value).replace([np.inf, -np.inf], np.nan)
        seeds.append(known.groupby(np.clip(bins_of_steps, 0, _BINS - 1)).mean().reindex(bins))
    binned = pd.DataFrame(seeds, columns=bins).dropna(axis=1, how="all")
    if binned.empty:
        return None
    return Course((binned.columns.to_numpy() + 0.5) / _BINS, binned.mean().to_numpy(), binned.to_numpy())


def is_same_course(one: Course | None, other: Course | None) -> bool:
    """Whether both look like one line: their means differ by at most 1% of the range."""
    if one is None or other is None or not np.array_equal(one.shares, other.shares):
        return False
    return bool(np.abs(one.mean - other.mean).max() <= 0.01 * np.ptp(one.mean))


def changes(stl: Errors, mtl: Errors) -> pd.DataFrame:
    """The mistakes with different counts, the largest change first, in counts over all seeds."""
    made = mistakes(stl, mtl)
    texts = map(mistake_text, made["gold"], made["predicted"])
    counts = (stl.seeds * made[["A", "B"]]).round().astype(int)
    frame = pd.DataFrame({"Correct → predicted": list(texts), "STL": counts["A"], "MTL": counts["B"]})
    frame["Change"] = frame["MTL"] - frame["STL"]
    frame = frame[frame["Change"] != 0]
    return frame.iloc[frame["Change"].abs().argsort(kind="stable")[::-1]]


def label_sentence(stl: Errors, mtl: Errors) -> str:
    """Which labels are right more often and less often under MTL, as Markdown."""
    labels = [label for label in dict.fromkeys((*stl.table.gold, *mtl.table.gold)) if label != NOTHING]
    more = {label: round(stl.seeds * (mtl.count(label, label) - stl.count(label, label))) for label in labels}
    ranked = sorted(filter(more.get, labels), key=lambda label: -abs(more[label]))
    sentences = []
    for word, sign, mark in (("more", 1, "+"), ("less", -1, "−")):
        of_sign = [label for label in ranked if more[label] * sign > 0][:_MOST_LABELS]
        if of_sign:
            named = all_of([f"{escape(label)} {mark}{abs(more[label]):,}" for label in of_sign])
            sentences.append(f"Correct {word} often: {named}.")
    return " ".join(sentences) or "Every label is correct equally often."
