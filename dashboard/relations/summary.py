"""The texts of the Relations page: the summary, warnings about the runs, how to read the page."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import numpy as np
import streamlit as st

from core.config.fields import NOTHING
from core.evaluation.relation_verdicts import RelationVerdicts
from core.metrics import DEV_SCORE
from core.metrics import PENALTY as PENALTY_METRIC
from core.mrn.relations import Relations, covariance_statistics, impossible_blocks, task_groups
from core.registry import FROZEN, feature_parts, prior_spec
from core.results.naming import run_name
from core.results.relations import headline
from core.store.types import ACTIVE, Run, RunState, RunWithFacts
from core.wording import all_of, number, plural, without_shared
from dashboard.relations import sentences, views
from dashboard.relations.controls import EMBEDDING, MODES
from dashboard.relations.snapshots import RelationsState
from dashboard.relations.views import Floats, signed
from dashboard.shared import resources
from dashboard.shared.newcomers import PENALTY, fold
from dashboard.shared.states import empty
from dashboard.text import coloured, escape
from dashboard.theme import STATES

_MOST_NAMED = 6
_OTHERWISE = {
    "exact": "exact, if tasks share label names",
    "cooccurrence": "cooccurrence, if they share sentences",
    "mapping": "a mapping of your own",
}
"""What each alignment needs to relate tasks."""


def explain_waiting(runs: Sequence[Run], *, alone: bool) -> None:
    """Draws the reason for missing snapshots and the next step; `alone` if the page has nothing else."""
    for run in runs:
        text = _without_snapshots(run)
        headline = "No relations yet" if run.state in ACTIVE else "No relations"
        if alone:
            empty(headline, text, page="runs/page.py", label="Runs", icon=":material/list_alt:")
            return
        st.caption(f"{escape(run_name(run))} has {headline.lower()} and is left out. {text}")


def _without_snapshots(run: Run) -> str:
    """Why a run has no snapshot, and what the reader can do."""
    if run.state in ACTIVE:
        return "The first snapshot comes when training begins."
    if run.state is RunState.SUCCEEDED:  # restored from a record, which may hold scores alone
        return "This run has succeeded, but its record holds no snapshots. Choose another above."
    return "This run ended before its first snapshot. Choose another above, or retry this one on Runs."


def draw_summary(
    state: RelationsState,
    values: Floats,
    learned: Sequence[Relations],
    verdicts: RelationVerdicts | None = None,
) -> None:
    """Draws a sentence or two on the matrices at the step shown, (runs, n, n) `values` of the shared rows.

    Where seeds have verdicts it speaks of decided cells alone.
    """
    mode, runs, rows = state.mode, state.runs, state.shared.rows
    names = list(map(escape, without_shared(rows.names).values()))
    fixed = views.impossible_pairs(runs, mode, rows)
    possible = np.asarray(~fixed.any(axis=0))
    if mode == "label" and (gold := views.gold_labels(runs[0])) is not None:
        # A label without training words correlates with nothing there, not even with itself.
        seen = np.diagonal(gold)[state.shared.places[0]] > 0
        possible &= seen[:, None] & seen
    if not np.isfinite(values).all():
        what = "covariance holds" if state.is_learned else "embeddings hold"
        text = f"The {what} values that are not numbers."
    elif state.view == "side":
        if state.is_learned:
            fixed |= np.array([mode not in run.config.learned for run in runs])[:, None, None]
        text = sentences.read_difference(names, values, fixed, [run.id for run in runs])
    elif not state.is_learned:
        text = sentences.read_embeddings(names, values)
    elif verdicts is not None:
        text = headline(verdicts, [f"**{name}**" for name in names])
    elif mode == "task":
        text = sentences.read_tasks(names, values, possible)
    elif mode == "label":
        text = sentences.read_labels(names, values, possible, views.same_task(rows))
    else:
        text = sentences.read_features(names, values, _ranks(learned, mode))
    step = "" if state.at == len(state.steps.steps) - 1 else f"At step {state.steps.steps[state.at]:,}: "
    with st.container(key="relations_reading"):
        st.markdown(step + text)
    if not state.is_learned:
        return
    if mode != "feature" and len(runs) == 1:
        st.caption("One seed: nothing is decided. *Mean over seeds* has verdicts.")
    config = runs[0].config
    is_recurrent = not (config.shared_dense or config.task_dense)
    if (
        mode == "feature"
        and is_recurrent
        and (parts := sentences.read_parts(feature_parts(config.encoder), len(rows)))
    ):
        st.caption(parts)
    drawn, learnable = (values, ~fixed) if state.view == "side" else (values.mean(axis=0)[None], possible)
    if size := sentences.read_size(mode, drawn, learnable, runs[0].alignment):
        st.caption(size)


def _ranks(learned: Sequence[Relations], mode: str) -> list[float]:
    return [covariance_statistics(covariances, mode).effective_rank for covariances in learned]


def draw_scores(state: RelationsState) -> None:
    """Draws the dev scores of the runs at the step shown, and a warning where one is too low."""
    tasks = list(dict.fromkeys(task for run in state.runs for task in run.config.tasks))
    steps = {run.id: keys[state.at].step for run, keys in zip(state.runs, state.steps.keys, strict=True)}
    curves = resources.curve_series(state.runs, [DEV_SCORE.key(task) for task in tasks])
    scores = views.dev_scores(curves, steps)
    groups = [[run] for run in state.runs] if state.view == "side" else [list(state.runs)]
    shown = [group[0] for group in groups]
    scored, unknown, warnings = zip(*(_scores_in_words(group, scores) for group in groups), strict=True)
    st.caption("  \n".join((*_with_run_ids(shown, scored), *_with_run_ids(shown, unknown))))
    for text in _with_run_ids(shown, warnings):
        st.warning(text, icon=":material/warning:")


def _scores_in_words(
    runs: Sequence[RunWithFacts], scores: Mapping[str, Mapping[int, float]]
) -> tuple[str, str, str]:
    """The dev scores of these runs, from which tasks no majority is known, and a warning of low scores."""
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
    by_accuracy = {task.name for task in runs[0].task_facts if task.score_name == "accuracy"}
    unknown = [names[task] for task in tasks if task in by_accuracy and task not in majority]
    known = {names[task]: share for task, share in majority.items() if task in names}
    return (
        sentences.read_scores(by_name),
        sentences.read_unknown_majority(unknown),
        sentences.read_unlearned(by_name, known),
    )


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


def rank_note(state: RelationsState, learned: Sequence[Relations], *, has_bars: bool) -> None:
    """Draws a note on the bars, and on the effective rank."""
    mode = state.selection.mode
    rank = math.nan if state.view == "side" else float(np.mean(_ranks(learned, mode)))
    of_runs = zip(learned, state.shared.places, strict=True)
    spread = np.mean([views.variances(covariances, mode)[places] for covariances, places in of_runs], axis=0)
    if text := sentences.read_rank(spread, rank, has_bars=has_bars):
        st.caption(text)


def not_learned(state: RelationsState) -> bool:
    """Whether none of the runs learned this covariance; if so, draws the reason and a way to learn it."""
    mode, runs = state.selection.mode, state.runs
    if any(mode in run.config.learned for run in runs):
        return False
    config = runs[0].config
    reason = "as configured"
    spec = prior_spec(str(config.prior))
    if config.encoder_training == FROZEN and spec and spec.frozen_learn == config.learn:
        reason = "the default over a frozen encoder, where learning all three did not score clearly better"
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
            f"**{MODES[mode]} were not learned.** Run {runs[0].id} {learned} ({reason}). "
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
    """Draws warnings from each run's configuration and state, equal texts once."""
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
            st.warning(
                f"The penalty has vanished in run {run.id}: it fell from {largest} to {last}. The run trains "
                "as MTL, and its relations have no meaning. The relational prior cannot vanish in this way.",
                icon=":material/warning:",
            )
    if state.is_learned:
        for text in _with_run_ids(runs, [_limits(state, run) for run in runs]):
            st.info(text, icon=":material/info:")
    if state.steps.cut:
        last_step = state.steps.steps[-1]
        st.caption(f"Shown up to step {last_step:,}: not all of these runs have later snapshots.")
    if not state.steps.exact:
        st.caption(
            "These runs have snapshots at different steps. Each is shown at the nearest share of training."
        )
    for run, names in zip(runs, state.shared.left_out, strict=True):
        if names:
            some = ", ".join(map(escape, names[:_MOST_NAMED])) + (", …" if len(names) > _MOST_NAMED else "")
            st.caption(
                f"Shown are the {plural(len(state.shared.rows), state.mode)} that all these runs have. "
                f"Run {run.id} has {len(names)} more: {some}."
            )


def describe_runs(runs: Sequence[RunWithFacts]) -> None:
    """Draws prior, λ, alignment and learned covariances of the runs, equal texts once."""
    for text in _with_run_ids(runs, [_description(run) for run in runs]):
        st.caption(text)


def _with_run_ids(runs: Sequence[Run], texts: Sequence[str]) -> Iterator[str]:
    """Each text once, without empty ones, with the runs that it is about where these are not all."""
    for text in filter(None, dict.fromkeys(texts)):
        ids = [str(run.id) for run, of_run in zip(runs, texts, strict=True) if of_run == text]
        yield text if len(ids) == len(runs) else f"Run {all_of(ids)}: {text}"


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
        st.info(views.why_no_gold(run), icon=":material/info:")
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
    """The words in and under the matrices."""
    block = frame["rows"]["block"]
    foot = ""
    if block > 1:
        foot = (
            f"{size:,} features; a cell is the mean of {block} × {block}, to 0.004. Click a cell to zoom in."
        )
    elif mode == "feature":
        foot = "Exact values. Press Esc or Whole matrix to go back."
    if any(panel["verdicts"] for panel in frame["panels"]):
        foot = "● related  ○ opposed  – none that matters (within ±0.1); faded: undecided or not tested."
    untested = "Not tested: not between two tasks, or without training words."
    return {
        "foot": foot,
        "untested": untested,
        "cannot": "Cannot be learned: the alignment shares no label between these two.",
    }


# How to read the page: the equation of exactly what is drawn and what the colours mean, in a fold.

_ROWS = {
    "task": (r"\Omega_\text{task}", "two tasks"),
    "label": (r"\Omega_\text{label}", "two labels"),
    "feature": (r"\Omega_\text{feature}", "two features of the encoder"),
}

_VIEWS = {
    "one": (r"R_{ij} = \frac{\Omega_{ij}}{\sqrt{\Omega_{ii}\,\Omega_{jj}}}", ""),
    "side": (
        r"R^{(k)}_{ij} = \frac{\Omega^{(k)}_{ij}}{\sqrt{\Omega^{(k)}_{ii}\,\Omega^{(k)}_{jj}}}",
        "One matrix per run $k$, on the scale from −1 to 1. Runs with different steps are shown at the same "
        "share of training. A relation that a run cannot learn keeps its initial value, 0 by default, also "
        "in the difference of two runs. The difference has its own scale, the same at all steps. "
        "Seeds of one configuration differ too: check their spread first.",
    ),
    "mean": (
        r"\bar R_{ij} = \tfrac1n \sum_{k=1}^{n} R^{(k)}_{ij}, \qquad "
        r"s_{ij} = \sqrt{\tfrac{1}{n-1} \sum_k \bigl(R^{(k)}_{ij} - \bar R_{ij}\bigr)^2}",
        "Correlations are averaged over seeds. Hover for the 95% interval of the mean, "
        r"$\bar R_{ij} \pm t_{n-1}\, s_{ij} / \sqrt n$. A relation whose sign changes between seeds was not "
        "learned from the data.",
    ),
}

_COLOURS = r"""
- **Red, towards 1**: the heads of the two rows weight features alike.
- **Neutral, 0**: the weights of one row say nothing about those of the other. Initial value.
- **Blue, towards −1**: features that speak for one row speak against the other.
- **Hatched**: the alignment cannot learn this relation.
- **Bars**: the prior variances $\Omega_{ii}$ over their mean. Rows of small variance are regularised more.
- **Words**: from 0.1 a correlation is called weak, from 0.3 moderate, from 0.5 strong (Cohen 1988), from 0.9
  almost full; below 0.1 two rows are not called related.

A correlation does not mean that one task helps the other: 0.80 was measured without a gain. *Compare* shows
gains. Under the alignment `cooccurrence` a row for another task's label is a mean of a task's own rows, so
tasks correlate without any prior too: 0.56 to 0.61 were measured. The size of a correlation depends on
$\lambda$: in simulations with planted relations the order was right, the size only at small $\lambda$.

*Clustered* puts similar rows next to each other: average linkage over the distances $1 - R_{ij}$ at the last
step. *Gold labels* are the correlations of "this word has label $i$" and "this word has label $j$" over the
training words; learned − gold is what MRN learned beyond them.

MRN maps each head to one space of labels by its alignment, and puts a normal prior on them with a covariance
of tasks, labels and features, $\mathrm{vec}(\mathcal{W}) \sim \mathcal{N}(0,\; s\,\Omega)$. It adds to the
loss:

$$"""

_NUMBERS = r"""$$

In numbers, for a covariance with eigenvalues $s_1 \geq \dots \geq s_d$: **effective rank**
$\exp(-\sum_k p_k \ln p_k)$ with $p_k = s_k / \sum_j s_j$ (Roy and Vetterli 2007) starts at $d$ and falls
as rows become related or their variances unequal; **trace** $\sum_k s_k$, kept at $d$ by the `relational`
prior; **condition** $s_1 / s_d$, ∞ for a singular matrix. *Curves* shows them and the penalty over training.
"""


def how_to_read(mode: str, view: str) -> None:
    """The fold at the foot of the page, on the mode and the view shown."""

    def explain() -> None:
        if mode == EMBEDDING:
            st.markdown("Every cell is the cosine of the vectors by which tasks $i$ and $j$ are told apart:")
            st.latex(r"c_{ij} = \frac{e_i^\top e_j}{\lVert e_i \rVert \, \lVert e_j \rVert}")
            st.markdown(_EMBEDDINGS)
            return
        symbol, of = _ROWS[mode]
        equation, note = _VIEWS[view]
        st.markdown(f"Every cell is the correlation of {of} $i$ and $j$, from ${symbol}$:")
        st.latex(equation if view == "mean" else equation + rf", \qquad \Omega = {symbol}")
        st.markdown(note + _COLOURS + PENALTY + _NUMBERS)

    fold(explain, key="how_to_read")


_EMBEDDINGS = """
The encoder adds a vector for each task at its input, or through matrices of its layers. Where each layer has
vectors for queries, keys and values, those of queries and values are concatenated; those of keys change no
attention and are left out.

They start as random vectors of $d$ numbers, with cosines of $0 \\pm 1/\\sqrt{d}$ (0.05 for 384). **Red**: the
two tasks shift the states alike. **Blue**: they shift them in opposite directions. A mean over seeds near 0
beside large single values means that the directions were not learned from the data.

A cosine does not mean that one task helps the other, nor that task embeddings help: *Compare* shows that.
"""
