"""The texts of the Relations page: the summary, warnings about the runs, how to read the page."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import numpy as np
import streamlit as st

from core.config import FIELD_HELP
from core.config.fields import NOTHING
from core.evaluation.relation_verdicts import NEGLIGIBLE, OPPOSED, RELATED, UNDECIDED, RelationVerdicts
from core.metrics import DEV_SCORE, STATISTIC_MEANINGS
from core.metrics import PENALTY as PENALTY_METRIC
from core.mrn.relations import (
    Relations,
    effective_rank,
    eigenvalues,
    impossible_blocks,
    is_finite,
    task_groups,
)
from core.registry import feature_parts
from core.results.naming import is_default, run_name
from core.results.relations import RelationTable, counted, headline_of
from core.store.types import ACTIVE, Run, RunState, RunWithFacts
from core.wording import all_of, first_of, number, plural, without_shared
from dashboard.relations import sentences, views
from dashboard.relations.charts import CODES, COUNTED, UNTESTED
from dashboard.relations.controls import MODES, why_not_learned
from dashboard.relations.snapshots import RelationsState, Snapshots
from dashboard.relations.verdicts import Decided
from dashboard.relations.views import COUNTED_MARK, MARKS, Bools, Floats, Group, signed
from dashboard.shared import resources
from dashboard.shared.selection import choose
from dashboard.shared.states import empty, show_answer, show_note, show_reason, show_warning
from dashboard.text import coloured, escape
from dashboard.theme import STATES

_MOST_NAMED, _MOST_TITLES = 6, 3
_OTHERWISE = {
    "exact": "exact, if tasks share label names",
    "cooccurrence": "cooccurrence, if they share sentences",
    "mapping": "a mapping of your own",
}
"""What each alignment needs to relate tasks."""


def explain_missing(read: Snapshots) -> None:
    """Draws which runs are not shown and why; without any a card with the next step."""
    if read.state is None:
        run = read.waiting[0]
        headline = "No relations yet" if run.state in ACTIVE else "No relations"
        empty(
            headline, _without_snapshots(run), page="runs/page.py", label="Runs", icon=":material/list_alt:"
        )
        return
    for reason, runs in _by_reason(read.waiting).items():
        which = f"{escape(run_name(runs[0]))} is" if len(runs) == 1 else f"{len(runs)} runs are"
        st.caption(f"{which} left out. {reason}")
    if read.unfinished:
        count = plural(len(read.unfinished), "run that has not succeeded", "runs that have not succeeded")
        st.caption(f"Left out beside those that succeeded: {count}.")
    if read.alone:
        show_note(escape(read.alone))


def _by_reason(runs: Sequence[RunWithFacts]) -> dict[str, list[RunWithFacts]]:
    by_reason: dict[str, list[RunWithFacts]] = {}
    for run in runs:
        by_reason.setdefault(_without_snapshots(run), []).append(run)
    return by_reason


def _without_snapshots(run: Run) -> str:
    """Why a run has no snapshot, and what the reader can do."""
    if run.state in ACTIVE:
        return "The first snapshot comes when training begins."
    if run.state is RunState.SUCCEEDED:  # restored from a record, which may hold scores alone
        return "This run has succeeded, but its record holds no snapshots. Choose another above."
    return "This run ended before its first snapshot. Choose another above, or retry this one on Runs."


def draw_answer(
    state: RelationsState,
    answer: Decided,
    values: Floats,
    means: Floats,
    learned: Sequence[Relations],
    possible: Bools,
    alone: Floats | None,
) -> None:
    """Draws what is decided, of decided cells alone; of features and embeddings a sentence on what is shown.

    `values` (runs, n, n), their `means` (matrices, n, n) and `learned` are those at the step shown,
    `possible` (matrices, n, n) which pairs each could relate, `alone` (n, n) is what the alignment gives.
    """
    mode, rows = state.mode, state.shared.rows
    short = views.short_names(rows.names, mode)
    is_last = state.at == len(state.steps.steps) - 1
    step = "" if is_last else f"At step {state.steps.steps[state.at]:,}: "
    if not np.isfinite(values).all():
        what = "covariance holds" if state.is_learned else "embeddings hold"
        st.markdown(f"{step}The {what} values that are not numbers.")
        return
    tables = answer.shown(state)
    pair = answer.single_pair(state) if is_last else None
    strength = _strength(state) if state.is_learned else ""
    saturation = sentences.read_saturation(means, possible, strength) if state.is_learned else ""
    if pair is not None and saturation:
        text = sentences.read_driven(list(short.values()), pair.verdict, values[:, pair.i, pair.j], strength)
    elif tables:
        text = headline_of(tables, lambda name: short.get(name, name))
    elif answer.why_none:
        text = answer.why_none
    elif not state.is_learned and state.is_single:
        text = step + sentences.read_embeddings(list(short.values()), values)
    elif mode == "feature":
        ranks = state.by_group(np.array(_ranks(learned, mode)))
        if state.is_single:
            text = step + sentences.read_features(len(rows), ranks[0].tolist())
        else:
            each = [f"{of.mean():.0f} with {g.title}" for g, of in zip(state.groups, ranks, strict=True)]
            text = f"{step}Effective rank of {len(rows)} features: {first_of(each, _MOST_NAMED)}."
    else:
        return
    if saturation and pair is None:
        text = f"{text} {saturation}"
    show_answer(text, key="relations")
    if saturation:
        of = answer.of_matrices[0]
        _smaller(state, has_controls=of is not None and bool(of.controlled.any()))
    notes: list[str] = []
    if alone is not None and (of := answer.of_matrices[0]) is not None:
        more = int(np.triu(counted(of, alone), 1).sum())
        notes.append(sentences.read_alone(more, state.runs[0].alignment))
    if mode == "label" and state.is_single and tables:
        notes += _beyond_headline(tables[0], short)
    if mode == "label" and not saturation:
        notes.append(sentences.read_size(means, possible))
    if len(notes := [escape(note) for note in notes if note]) > 1:
        st.caption("\n".join(f"- {note}" for note in notes))
    elif notes:
        show_note(notes[0])
    if answer.why_none:
        _other_seeds(state)


def _beyond_headline(table: RelationTable, short: Mapping[str, str]) -> list[str]:
    """The pair of labels furthest beyond the alignment, and rows that are as strong as the headline's."""
    names = [short.get(name, name) for name in table.rows.names]
    furthest = []
    if table.alone is not None:
        furthest = [
            sentences.read_furthest(names, (c.i, c.j), c.mean, float(table.alone[c.i, c.j]))
            for c in table.beyond[:1]
        ]
    hubs = [hub for verdict in (RELATED, OPPOSED) if (hub := table.hub(verdict)) is not None]
    return [*furthest, *(sentences.read_hub(names, hub) for hub in hubs)]


def _strength(state: RelationsState) -> str:
    """The λ of the matrices, for sentences."""
    configs = [group.runs[0].config for group in state.groups]
    default = all(is_default(config, "lambda") for config in configs)
    return sentences.read_strength({number(config.lambda_) for config in configs}, is_default=default)


def _smaller(state: RelationsState, *, has_controls: bool) -> None:
    """Draws what to do where most correlations are at ±1, and a link to the same runs with a smaller λ."""
    strengths = {group.runs[0].config.lambda_ for group in state.groups}
    strength = min(strengths, key=lambda each: each or 0.0)
    with st.container(horizontal=True, vertical_alignment="center", gap="small"):
        if len(state.shared.rows) > 2:
            note = "Trust the order in which pairs became strong, and compare a smaller λ."
        elif has_controls:
            note = "A smaller λ can show how strongly."
        else:
            note = (
                "A smaller λ can show how strongly. Controls with shuffled labels show whether this λ makes "
                "unrelated tasks look related."
            )
        show_note(note, width="content")
        if strength and len(strengths) == 1:
            smaller = f"{strength / 10:.3g}"
            link = {"clone": ",".join(str(run.id) for run in state.runs), "lambda": smaller}
            label, icon = f"Launch these runs with λ={smaller}", ":material/rocket_launch:"
            if st.button(label, icon=icon, type="primary", key="smaller"):
                st.switch_page("launch/page.py", query_params=link)


_LOOKS = {
    "task": ("two tasks' heads weight features alike", "in opposite ways"),
    "label": (
        "two labels are predicted from the same features",
        "what speaks for one speaks against the other",
    ),
    "feature": ("the heads weight two features alike", "in opposite ways"),
}


def reading(state: RelationsState, verdicts: Sequence[RelationVerdicts | None], *, has_bars: bool) -> None:
    """Draws what the colours and the bars of the matrix say."""
    if not state.is_learned:
        embedding_note(state)
        return
    mode = state.mode
    red, blue = _LOOKS[mode]
    lines = [f"**Red**: {red}. **Blue**: {blue}."]
    lines += [sentences.read_undecided(of) for of in verdicts if of is not None and state.is_single]
    lines.append(_origin(state) if mode == "feature" else "")
    bars = (
        "The bars: how much the prior lets a row's weights vary; dashed: the mean row." if has_bars else None
    )
    with st.container(key="relations_reading"):
        st.caption(" ".join(filter(None, lines)), help=bars)


def possible_pairs(state: RelationsState) -> Bools:
    """(matrices, n, n): which pairs of each matrix could be learned and occur."""
    firsts = [group.runs[0] for group in state.groups]
    return ~views.impossible_pairs(firsts, state.mode, state.shared.rows) & _seen(state)


def _origin(state: RelationsState) -> str:
    """Which features of a recurrent encoder come from where; empty for others."""
    config = state.runs[0].config
    if config.shared_dense or config.task_dense:
        return ""
    return sentences.read_parts(feature_parts(config.encoder), len(state.shared.rows))


def _seen(state: RelationsState) -> Bools:
    """(n, n): pairs without a label that has no training words, which correlates with nothing."""
    size = len(state.shared.rows)
    if state.mode != "label" or (gold := views.gold_labels(state.runs[0])) is None:
        return np.ones((size, size), dtype=bool)
    seen = np.diagonal(gold)[state.shared.places[0]] > 0
    return np.asarray(seen[:, None] & seen)


def _other_seeds(state: RelationsState) -> None:
    """Draws a button that shows all seeds of a configuration of which one is chosen, where it has others."""
    if not state.is_single or state.selection.seed is not None or len(state.selection.run_ids) > 1:
        return
    run = state.runs[0]
    if run.state in ACTIVE:
        return
    same = [
        run.id,
        *(each.id for each in resources.store().runs_of([run.configuration_id], {RunState.SUCCEEDED})),
    ]
    ids = list(dict.fromkeys(same))
    if len(ids) < 2:
        st.caption(
            "With two seeds or more each pair has a verdict: launch this configuration with more seeds."
        )
        return
    st.button(
        f"Show all {len(ids)} runs of this configuration",
        icon=":material/layers:",
        key="all_seeds",
        on_click=choose,
        args=(ids,),
    )


def _ranks(learned: Sequence[Relations], mode: str) -> list[float]:
    """The effective rank of each covariance; NaN where it is not finite."""
    return [
        effective_rank(eigenvalues(covariances, mode)) if is_finite(covariances, mode) else math.nan
        for covariances in learned
    ]


def describe_rank(state: RelationsState, learned: Sequence[Relations]) -> None:
    """Draws the effective rank of one matrix, and whether correlations or variances lower it."""
    of_runs = zip(learned, state.shared.places, strict=True)
    each = [views.variances(covariances, state.mode)[places] for covariances, places in of_runs]
    rank = float(np.mean(_ranks(learned, state.mode)))
    if text := sentences.read_rank(np.mean(each, axis=0), rank):
        st.caption(f"{text} It is the {STATISTIC_MEANINGS['Effective rank']}.")


def describe_scores(state: RelationsState) -> None:
    """Draws the dev scores at the step shown."""
    for text in _with_titles(state.groups, [text for text, _ in _scores(state)]):
        st.caption(text)


def _warn_of_scores(state: RelationsState) -> None:
    """Draws warnings of dev scores too low for relations to have a meaning, equal texts once."""
    for text in _with_titles(state.groups, [warning for _, warning in _scores(state)]):
        show_warning(text)


def _scores(state: RelationsState) -> list[tuple[str, str]]:
    """For each matrix the dev scores at the step shown, and a warning of low ones."""
    tasks = list(dict.fromkeys(task for run in state.runs for task in run.config.tasks))
    steps = {run.id: keys[state.at].step for run, keys in zip(state.runs, state.steps.keys, strict=True)}
    curves = resources.curve_series(state.runs, [DEV_SCORE.key(task) for task in tasks])
    scores = views.dev_scores(curves, steps)
    return [_scores_in_words(group.runs, scores) for group in state.groups]


def _scores_in_words(
    runs: Sequence[RunWithFacts], scores: Mapping[str, Mapping[int, float]]
) -> tuple[str, str]:
    """The dev scores of these runs, and a warning of low scores."""
    tasks = [task for task in runs[0].config.tasks if task in scores]
    # A dot and its name stay on one line.
    short = without_shared(tasks)
    names = {
        task: coloured(short[task], resources.task_colour(task)).replace("} ", "}\u00a0", 1) for task in tasks
    }
    by_name = {
        names[task]: [scores[task][run.id] for run in runs if run.id in scores[task]] for task in tasks
    }
    majority: dict[str, float] = {}
    for run in runs:
        if run.state is RunState.SUCCEEDED:
            majority |= _majority_shares(run)
    known = {names[task]: share for task, share in majority.items() if task in names}
    return sentences.read_scores(by_name), sentences.read_unlearned(by_name, known)


@st.cache_resource(max_entries=600, show_spinner=False, hash_funcs=resources.BY_RUN)
def _majority_shares(run: Run) -> dict[str, float]:
    """`views.majority_shares` of a run that has ended."""
    return views.majority_shares(resources.store().scores([run.id], "dev"))


def embedding_note(state: RelationsState) -> None:
    """Draws a note on the vectors compared, and on cosines near 0."""
    ways = all_of(list(dict.fromkeys(str(run.config.task_embedding) for run in state.runs)))
    st.caption(
        f"Task embeddings: {ways}. They start as random vectors, whose cosines are near 0. A cosine near 0 "
        "after training does not mean that the embeddings are useless."
    )


def not_learned(state: RelationsState) -> bool:
    """Whether none of the runs learned this covariance; if so, draws the reason and a way to learn it."""
    mode, runs = state.selection.mode, state.runs
    if any(mode in run.config.learned for run in runs):
        return False
    config = runs[0].config
    names = [f"{name}s" for name in config.learn or () if name != NOTHING]
    learned = f"learns relations of {all_of(names)} only" if names else "learns no relations"
    if config.added_to is not None:
        empty(
            f"{MODES[mode]} have no matrix",
            "Where a task is added to a run, only relations between tasks are known.",
        )
        return True
    with st.container(border=True):
        st.markdown(
            f"**{MODES[mode]} were not learned.** Run {runs[0].id} {learned} ({why_not_learned(config)}). "
            f"Its {mode} covariance keeps its initial value, so no matrix is shown."
        )
        st.page_link(
            "launch/page.py",
            label="Launch it with all three learned",
            icon=":material/content_copy:",
            query_params={"clone": str(runs[0].id), "learn": ",".join(MODES)},
        )
    return True


def run_warnings(state: RelationsState) -> None:
    """Draws warnings from each run's configuration, state and scores, equal texts once."""
    runs = state.runs
    for run in runs:
        if run.state in (RunState.FAILED, RunState.LOST, RunState.CANCELLED):
            word = STATES[run.state].word.lower()
            st.caption(f"{escape(run_name(run))}: {word}. Shown up to step {run.step:,}.")
        if not state.is_learned:
            continue
        series = resources.curve_series([run], [PENALTY_METRIC.key()])
        if (vanished := views.penalty_vanished(series[0] if series else None)) is not None:
            largest, last = (number(float(f"{value:.2g}")) for value in vanished)
            show_warning(
                f"The penalty has vanished in run {run.id}: it fell from {largest} to {last}. The run trains "
                "as MTL, and its relations have no meaning. The relational prior cannot vanish in this way."
            )
    if state.is_learned:
        for text in _with_titles(state.groups, [_limits(state, group.runs[0]) for group in state.groups]):
            show_reason(text)
    if state.steps.cut:
        last_step = state.steps.steps[-1]
        st.caption(f"Shown up to step {last_step:,}: not all of these runs have later snapshots.")
    if not state.steps.exact:
        st.caption(
            "These runs have snapshots at different steps. Each is shown at the nearest share of training."
        )
    _warn_of_scores(state)
    for run, names in zip(runs, state.shared.left_out, strict=True):
        if names:
            some = ", ".join(map(escape, names[:_MOST_NAMED])) + (", …" if len(names) > _MOST_NAMED else "")
            st.caption(
                f"Shown are the {plural(len(state.shared.rows), state.mode)} that all these runs have. "
                f"Run {run.id} has {len(names)} more: {some}."
            )


def describe_runs(groups: Sequence[Group]) -> None:
    """Draws prior, λ, alignment and learned covariances of the configurations, equal texts once."""
    for text in _with_titles(groups, [_description(group.runs[0]) for group in groups]):
        st.caption(text, help=escape(FIELD_HELP["alignment"].description))


def _with_titles(groups: Sequence[Group], texts: Sequence[str]) -> Iterator[str]:
    """Each text once, without empty ones, with the configurations that it is about where it is not all."""
    for text in filter(None, dict.fromkeys(texts)):
        titles = [group.title for group, of in zip(groups, texts, strict=True) if of == text]
        yield text if len(titles) == len(groups) else f"{escape(first_of(titles, _MOST_TITLES))}: {text}"


def _description(run: RunWithFacts) -> str:
    config, facts = run.config, run.facts
    learned = ", ".join(config.learn or ()) or "nothing; shown is how the heads correlate"
    text = f"Prior {escape(config.prior)}, λ {number(config.lambda_)}, learned: {learned}."
    if facts and facts.related and config.added_to is None:
        others = [task for task in config.tasks if task not in facts.related]
        text += f" Left out: {escape(all_of(others))}, whose heads have another shape."
    if facts is None or not facts.alignment:
        return text
    because = f": {escape(facts.alignment_reason.rstrip('.'))}" if facts.alignment_reason else ""
    return f"{text} Alignment **{escape(facts.alignment)}**{because}."


def _limits(state: RelationsState, run: RunWithFacts) -> str:
    """The relations of this mode that the run could not learn; empty if it could learn all."""
    mode = state.mode
    initial = (run.config.task_correlation or 0) if mode == "task" else 0
    if mode not in run.config.learned:
        return (
            f"This run did not learn the {mode} covariance: all relations keep their initial value, "
            f"{number(initial)}."
        )
    if not impossible_blocks(run.facts, mode, state.shared.rows.owners):
        return ""
    groups = task_groups(run.facts)
    between = "tasks"
    if any(len(group) > 1 for group in groups):
        names = "; ".join(", ".join(map(escape, group)) for group in groups)
        between = f"these groups of tasks ({names})"
    others = "; ".join(words for name, words in _OTHERWISE.items() if name != run.alignment)
    stay = f" They stay at their initial value, {number(initial)}." if initial else ""
    return (
        f"This alignment shares no label between {between}, so it cannot learn relations between them "
        f"(hatched).{stay} Other alignments may: {others}."
    )


def gold_agreement(state: RelationsState, learned: Floats, gold: Floats | None) -> None:
    """Draws the rank correlation of learned and gold relations, (n, n), or why the run has no gold labels."""
    run, rows = state.runs[0], state.shared.rows
    if gold is None:
        show_reason(views.why_no_gold(run))
        return
    possible = ~views.impossible_pairs([run], "label", rows)[0]
    parts = [
        f"**{signed(agreed[0])}** over {agreed[1]:,} pairs of {labels}"
        for labels, pairs in (
            ("labels", possible),
            ("labels of different tasks", possible & ~views.same_task(rows)),
        )
        if (agreed := views.agreement(learned, gold, pairs)) is not None
    ]
    text = f"Rank correlation of learned and gold: {'; '.join(parts)}" if parts else "All values are equal"
    st.caption(
        f"{text}. 1: the same order. Labels of one task exclude each other on a word, so their gold "
        "correlations are negative."
    )


def player_words(mode: str, frame: Mapping[str, Any], size: int) -> dict[str, str]:
    """The words in and under the matrices, and of their colours."""
    block = frame["rows"]["block"]
    foot = faint = ""
    if block > 1:
        foot = (
            f"{size:,} features; a cell is the mean of {block} × {block}, to 0.004. Click a cell to zoom in."
        )
    elif mode == "feature":
        foot = "Exact values. Press Esc or Whole matrix to go back."
    if codes := {
        code for panel in frame["panels"] if panel["verdicts"] for code in panel["verdicts"]["codes"]
    }:
        marks = [
            f"{MARKS[verdict]} {verdict}"
            for verdict in (RELATED, OPPOSED, NEGLIGIBLE)
            if CODES[verdict] in codes
        ]
        marks += [f"{COUNTED_MARK} related as far as by the alignment alone"] * (COUNTED in codes)
        foot = "   ".join(marks)
        without = ["undecided"] * (CODES[UNDECIDED] in codes) + ["within a task"] * (UNTESTED in codes)
        faint = " or ".join(without)
    if block == 1 and mode != "feature":
        foot = "   ".join(filter(None, [foot, "grey: a row with itself"]))
    untested = "Not tested: not between two tasks, or without training words."
    return {
        "foot": foot,
        "faint": faint,
        "untested": untested,
        "cannot": "Cannot be learned: the alignment shares no label between these two.",
    }
