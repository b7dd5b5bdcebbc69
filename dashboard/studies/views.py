"""The values of a study: its results with scores, its forests, its failures."""

from __future__ import annotations

import html
import itertools
import math
from collections import Counter
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Any

from core.evaluation.comparison import HIGHER, LOWER, UNDECIDED, Comparison
from core.results.figures import Forest, Mark
from core.studies.analysis import MEAN, RARE, Outcome, Result
from core.studies.answer import unit
from core.studies.factors import FACTORS, gains_by_factor, trends
from core.studies.meaning import meaning
from core.tasks.scores import percent_sign
from core.transfer.gains import Gains
from core.wording import all_of, capitalised, signed_points
from jobs.reports.parts import (
    SIGNED,
    Block,
    Entry,
    Sheet,
    difference_entry,
    mean_entry,
    p_entry,
    score_entry,
)

_ROOM = 0.05
"""The share of an axis beyond its lowest and highest interval."""
_STEPS = 2.5
"""An axis has at least so many steps from number to number."""
_PARTED = ", "
"""What separates the parts of a setting's title."""
_SHADES = 3
"""The number of grounds of gains and losses, from the smallest to the largest of a table."""
_MOST, _LOWEST = 5, 2
"""A small forest has at most so many rows; of more it has so many of the lowest, and else the highest."""


def has_scores(result: Result) -> bool:
    """Whether anything is known of this setting yet."""
    return any(outcome.scores for outcome in result.outcomes)


def scored(results: Iterable[Result]) -> list[Result]:
    """The results with a mean over tasks of some method."""
    return [result for result in results if any(MEAN in outcome.scores for outcome in result.outcomes)]


def largest_gain(results: Sequence[Result]) -> Result:
    """The setting with the largest decided gain; the first of several, or where none is decided."""

    def gain(result: Result) -> float:
        deltas = [outcome.differences.get(MEAN) for outcome in result.outcomes]
        return max((delta.mean for delta in deltas if delta and delta.verdict == HIGHER), default=0.0)

    return max(results, key=gain)


def plainly_named(result: Result) -> Result:
    """The result with methods titled as sentences name them: `One head for all tasks` for `Pooled`."""
    named = (
        replace(outcome, method=replace(outcome.method, title=capitalised(outcome.method.in_sentence)))
        for outcome in result.outcomes
    )
    return replace(result, outcomes=tuple(named))


def gains_forest(gains: Gains, names: Mapping[str, str]) -> Forest:
    """The decided gains and losses among pairs of tasks, from the largest gain to the largest loss.

    `names` are the tasks' titles.
    """
    decided = sorted(filter(lambda gain: gain.is_decided, gains.pairs.values()), key=lambda gain: -gain.mean)
    rows = tuple(f"{names[gain.main]} beside {names[gain.aux]}" for gain in decided)
    marks = tuple(
        Mark.from_comparison(gain, row, MEAN, f"{name}: {gain.sentence}")
        for row, (name, gain) in enumerate(zip(rows, decided, strict=True))
    )
    return Forest(rows, (MEAN,), "STL", marks)


def left_out(view: Forest) -> int:
    """The number of rows that are not in the small forest of this view."""
    return max(len(view.marks) - _MOST, 0)


def small_forest(view: Forest, axis: str, leads: Collection[str] = ()) -> str:
    """A forest of one target as HTML: by row the name, the interval with a mark, and the difference.

    The largest gain is first; of many rows it has `leads`, which are bold beside the others, then the highest
    and the lowest. A mark is filled where the difference is decided. `axis` says what differences are, in
    which unit.
    """
    marks = sorted(view.marks, key=lambda mark: -mark.points)
    if left_out(view):
        named = [mark for mark in marks if view.rows[mark.row] in leads][:_MOST]
        others = [mark for mark in marks if mark not in named]
        free = _MOST - len(named)
        lowest = min(_LOWEST, free)
        kept = [*named, *others[: free - lowest], *others[len(others) - lowest :]]
        marks = sorted(kept, key=lambda mark: -mark.points)
    if all(view.rows[mark.row] in leads for mark in marks):
        leads = ()  # nothing stands beside them
    ends = [0.0, *(end for mark in marks for end in (mark.points, mark.low, mark.high) if end is not None)]
    room = _ROOM * (max(ends) - min(ends))
    start, width = min(ends) - room, max(ends) - min(ends) + 2 * room or 1.0

    def share(points: float) -> str:
        return f"{100 * (points - start) / width:.1f}%"

    rows = []
    for mark in marks:
        low, high = (mark.points if end is None else end for end in (mark.low, mark.high))
        filled = " filled" * (mark.verdict in (HIGHER, LOWER))
        look = f' class="{"lead" if view.rows[mark.row] in leads else "other"}"' * bool(leads)
        rows.append(
            f'<tr{look} title="{html.escape(mark.hover)}">'
            f'<th scope="row">{html.escape(view.rows[mark.row])}</th>'
            f'<td><div class="track"><i class="zero" style="left: {share(0)}"></i>'
            f'<i class="bar" style="left: {share(low)}; right: calc(100% - {share(high)})"></i>'
            f'<i class="mark{filled}" style="left: {share(mark.points)}"></i></div></td>'
            f"<td>{signed_points(mark.points / 100)}</td></tr>"
        )
    ticks = (
        f'<i class="tick" style="left: {share(tick)}">{f"{tick:+g}".replace("-", "−") if tick else 0}</i>'
        for tick in _numbers(start, width)
    )
    rows.append(f'<tr><th></th><td><div class="track">{"".join(ticks)}</div></td><td></td></tr>')
    label = f"{axis} with 95% intervals; a filled mark is a decided difference"
    return f'<table class="small-forest" aria-label="{html.escape(label)}">{"".join(rows)}</table>'


def _numbers(start: float, width: float) -> list[float]:
    """The multiples of 1, 2 or 5 times a power of ten from `start` on, over this width."""
    power = 10.0 ** math.floor(math.log10(width / _STEPS))
    step = max(step for step in (1, 2, 5) if step * power <= width / _STEPS) * power
    first, last = math.ceil(start / step), math.floor((start + width) / step)
    return [round(step * number, 9) for number in range(first, last + 1)]


def study_forest(result: Result, shown: tuple[str, ...] = ()) -> Forest:
    """The paired differences of every method from the reference, on each target and in the mean."""
    shown = shown or targets(result)
    others = [outcome for outcome in ranked(result) if outcome.differences]
    marks = []
    for row, outcome in enumerate(others):
        for target in shown:
            if (delta := outcome.differences.get(target)) is not None:
                what = meaning(outcome.method, result.setting.base)
                words = f"{outcome.method.title}, {target}: {delta.sentence}. {what}".rstrip()
                marks.append(Mark.from_comparison(delta, row, target, words))
    titles = tuple(outcome.method.title for outcome in others)
    return Forest(titles, shown, result.outcome(result.reference).method.in_sentence, tuple(marks))


def trends_forest(results: Sequence[Result]) -> Forest:
    """By factor of a grid of simulated tasks the change of the gain, from its least value to its largest."""
    by_factor, tested = gains_by_factor(results), trends(results)
    titles, marks = [], []
    for row, (name, trend) in enumerate(tested.items()):
        factor = FACTORS[name]
        least, most = (factor.value(end(by_factor[name])) for end in (min, max))
        titles.append(f"{capitalised(factor.title)}: {least} to {most}")
        marks.append(Mark.from_comparison(trend, row, MEAN, f"{titles[row]}: {trend.sentence}"))
    reference = results[0].outcome(results[0].reference).method.in_sentence
    return Forest(tuple(titles), (MEAN,), reference, tuple(marks))


def settings_forest(results: Sequence[Result]) -> Forest:
    """The mean difference of each method from the reference by setting, these under what they share."""
    rows: list[str] = []
    heads: list[int] = []
    marks = []
    titles = [result.setting.title for result in results]
    for group, of_group in _by_shared_words(titles).items():
        if group:
            heads.append(len(rows))
            rows.append(group)
        for name, place in of_group.items():
            for outcome in results[place].outcomes:
                if (delta := outcome.differences.get(MEAN)) is not None:
                    method = outcome.method.title
                    what = meaning(outcome.method, results[place].setting.base)
                    hover = f"{method}, {titles[place]}: {delta.sentence}. {what}".rstrip()
                    marks.append(Mark.from_comparison(delta, len(rows), method, hover))
            rows.append(name)
    reference = results[0].outcome(results[0].reference).method.in_sentence
    methods = tuple(dict.fromkeys(mark.target for mark in marks))
    return Forest(tuple(rows), methods, reference, tuple(marks), frozenset(heads), of_methods=True)


def ranked(result: Result) -> list[Outcome]:
    """The outcomes but the reference, the largest mean gain first, those without one last."""

    def gain(outcome: Outcome) -> float:
        return outcome.differences[MEAN].mean if MEAN in outcome.differences else -math.inf

    others = [outcome for outcome in result.outcomes if outcome.method.name != result.reference]
    return sorted(others, key=gain, reverse=True)


def targets(result: Result) -> tuple[str, ...]:
    """The setting's targets, their mean where there are several, the rarer labels where known."""
    mean = (MEAN,) if len(result.setting.targets) > 1 else ()
    rare = (RARE,) if any(RARE in outcome.scores for outcome in result.outcomes) else ()
    return (*result.setting.targets, *mean, *rare)


def overview(results: Sequence[Result]) -> Sheet:
    """Settings × methods: the mean difference from the reference, with its verdict.

    Settings are in blocks by what they share, the largest gain of each is bold. Methods that are compared in
    one setting alone have no column (`alone_in_a_setting`). Blocks with the same settings are a grid, where
    one method is compared.
    """
    compared = [
        {o.method.title: o.differences[MEAN] for o in result.outcomes if MEAN in o.differences}
        for result in results
    ]
    counts = Counter(title for by_method in compared for title in by_method)
    shown = [title for title, count in counts.most_common() if count > 1] or list(counts)
    largest = max((abs(delta.mean) for each in compared for delta in each.values()), default=0.0)

    def cells(by_method: Mapping[str, Comparison]) -> tuple[Entry, ...]:
        return _best_bold([_shaded(by_method.get(title), largest) for title in shown])

    groups = _by_shared_words([result.setting.title for result in results])
    places = list(groups.values())
    if len(counts) == 1 and len(places) > 1 and len({tuple(place) for place in places}) == 1:
        rows = [
            _best_bold([_shaded(compared[place].get(shown[0]), largest) for place in of_row.values()])
            for of_row in groups.values()
        ]
        by_words = _by_shared_words(list(groups))
        return Sheet(
            ("Setting", *places[0]),
            tuple(
                Block(title, tuple((name, rows[row]) for name, row in named.items()))
                for title, named in by_words.items()
            ),
        )
    return Sheet(
        ("Setting", *shown),
        tuple(
            Block(group, tuple((name, cells(compared[place])) for name, place in of_group.items()))
            for group, of_group in groups.items()
        ),
    )


def alone_in_a_setting(results: Sequence[Result]) -> str:
    """The best of the methods that are compared in one setting alone, for each such setting, in words."""
    deltas = [
        (outcome.differences[MEAN], outcome.method.in_sentence, result.setting.title)
        for result in results
        for outcome in result.outcomes
        if MEAN in outcome.differences
    ]
    counts = Counter(method for _, method, _ in deltas)
    if max(counts.values(), default=0) < 2:
        return ""
    best: dict[str, tuple[Comparison, str]] = {}
    for delta, method, setting in deltas:
        if counts[method] == 1 and (setting not in best or delta.mean > best[setting][0].mean):
            best[setting] = delta, method
    named = [
        f"{method} on {setting} ({signed_points(delta.mean)})" for setting, (delta, method) in best.items()
    ]
    return f"Best of those in one setting alone: {all_of(named)}." if named else ""


def _best_bold(entries: Sequence[Entry]) -> tuple[Entry, ...]:
    """The entries, of which the largest gain is bold."""
    gains = [entry.value for entry in entries if entry.verdict == HIGHER and not isinstance(entry.value, str)]
    return tuple(
        replace(entry, bold=entry.verdict == HIGHER and entry.value == max(gains)) for entry in entries
    )


def _shaded(difference: Comparison | None, largest: float) -> Entry:
    """The entry of a difference with its step among differences up to `largest`."""
    if difference is None:
        return Entry(math.nan, verdict=UNDECIDED)
    return Entry(
        100 * difference.mean,
        unit="points",
        verdict=difference.verdict,
        form=SIGNED,
        step=math.ceil(_SHADES * abs(difference.mean) / (largest or 1.0)),
    )


def _by_shared_words(titles: Sequence[str]) -> dict[str, dict[str, int]]:
    """The places of titles by the first parts that several share, then by their other parts.

    `NER, 500 words, alike` and `NER, 500 words, mixed` are `alike` and `mixed` of `NER, 500 words`. They
    share two parts or one; those that share none come first, whole.
    """
    parts = [title.split(_PARTED) for title in titles]
    left, alike = dict.fromkeys(range(len(titles))), list[list[int]]()
    for depth in (2, 1):
        by_start: dict[tuple[str, ...], list[int]] = {}
        for place in left:
            by_start.setdefault(tuple(parts[place][:depth]), []).append(place)
        for places in by_start.values():
            if len(places) > 1:
                alike.append(places)
                left = {place: None for place in left if place not in places}
    groups = {"": {titles[place]: place for place in left}} if left else {}
    for places in sorted(alike):
        firsts = zip(*(parts[place][:-1] for place in places), strict=False)
        start = len(list(itertools.takewhile(lambda words: len(set(words)) == 1, firsts)))
        shared = _PARTED.join(parts[places[0]][:start])
        groups[shared] = {_PARTED.join(parts[place][start:]): place for place in places}
    return groups


def over_reference(result: Result) -> Sheet:
    """Methods × targets of one setting: scores, and the mean difference from the reference."""
    targets = (*result.setting.targets, *[MEAN] * (len(result.setting.targets) > 1))
    return _compared(result, targets, MEAN)


def over_reference_rare(result: Result) -> Sheet | None:
    """As `over_reference` for the rarer labels; None where they are not known."""
    return _compared(result, (RARE,), RARE) if RARE in targets(result) else None


def over_bases(result: Result) -> tuple[str, Sheet] | None:
    """The differences of methods from those that they change in one thing; with what they are over in words.

    None where no method has such a one. Of several such ones each row names its own.
    """
    named = [
        (outcome, result.outcome(outcome.method.base).method.in_sentence)
        for outcome in ranked(result)
        if MEAN in outcome.from_base
    ]
    bases = list(dict.fromkeys(base for _, base in named))
    if not bases:
        return None
    rows = [
        (
            f"{outcome.method.title}{f', over {base}' * (len(bases) > 1)}",
            *_difference_cells(outcome.from_base[MEAN], result),
        )
        for outcome, base in named
    ]
    over = bases[0] if len(bases) == 1 else "the method that each changes in one thing"
    return f"Over {over}", Sheet.of(("Method", "Difference", "p", "Verdict"), rows)


def _measures(outcome: Outcome, target: str) -> tuple[str, ...]:
    return ("f1",) if target == RARE else outcome.measures(target)


def _compared(result: Result, shown: Sequence[str], target: str) -> Sheet:
    reference = result.outcome(result.reference).method.in_sentence
    has_learned = any(outcome.learned is not None for outcome in result.outcomes)
    rows: list[list[Any]] = []
    for outcome in (result.outcome(result.reference), *ranked(result)):
        # Fields are written as in the form, without the underscores of their names.
        chosen = f" ({outcome.chosen.replace('_', ' ')})" if outcome.chosen else ""
        scores = (score_entry(outcome.scores.get(each), *_measures(outcome, each)) for each in shown)
        cells = _difference_cells(outcome.differences.get(target), result)
        if outcome.method.name == result.reference:
            cells = ("", "", "reference")
        rows.append([f"{outcome.method.title}{chosen}", *scores, *cells])
        rows[-1] += [outcome.learned and mean_entry(outcome.learned)] * has_learned
    # A correlation is no share, so that neither it nor a mean with one is in percent.
    signs = {
        each: {sign for outcome in result.outcomes if (sign := percent_sign(_measures(outcome, each)))}
        for each in shown
    }
    heads = {each: capitalised(each) if each == RARE else each for each in shown}
    head = ["Method", *(", ".join([name, *signs[each]]) for each, name in heads.items())]
    head += [
        f"{capitalised(unit(result))} over {reference}",
        "p",
        "Verdict",
        *["Task correlation"] * has_learned,
    ]
    return Sheet.of(head, rows)


def _difference_cells(difference: Comparison | None, result: Result) -> tuple[Entry | str | None, ...]:
    if difference is None:
        return None, None, ""
    seeds = not result.is_complete
    return difference_entry(difference, verdict=True, seeds=seeds), p_entry(difference.p), difference.verdict


def failures(results: Sequence[Result]) -> Iterator[tuple[str, int]]:
    """The settings in which runs failed, and how many."""
    for result in results:
        if count := sum(outcome.failed for outcome in result.outcomes):
            yield result.setting.title, count
