"""The words of the Relations page: warnings about the runs shown, and how to read what is shown."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import numpy as np
import streamlit as st

from core.mrn.relations import impossible_blocks, task_groups
from core.records import TOTAL
from core.store.records import ACTIVE, MetricKey, Run, RunState
from core.wording import all_of, number, plural
from dashboard.relations.state import RelationsState
from dashboard.relations.views import (
    RelationsView,
    agreement,
    gold_labels,
    learns,
    penalty_vanished,
    saturated,
    why_no_gold,
)
from dashboard.shared.newcomers import PENALTY, fold
from dashboard.shared.resources import curve_series
from dashboard.shared.states import empty
from dashboard.text import escape
from dashboard.theme import STATES
from jobs.naming import run_name

_PENALTY = MetricKey(TOTAL, "train", "penalty")
_MOST_NAMED = 6


def explain_waiting(runs: Sequence[Run], *, alone: bool) -> None:
    """Of runs without a snapshot, why they have none and what to do; `alone` where there is nothing else."""
    for run in runs:
        words = (
            "The first snapshot comes when training begins."
            if run.state in ACTIVE
            else "This run ended before its first snapshot. Choose another above, or retry this one on Runs."
        )
        if alone:
            empty("No relations yet", words, page="runs/page.py", label="Runs", icon=":material/list_alt:")
            return
        st.caption(f"{escape(run_name(run))} has no relations yet and is left out. {words}")


def run_warnings(state: RelationsState, views: Sequence[RelationsView]) -> None:
    """What each run's configuration and state mean for what can be seen; the same text only once."""
    runs = state.runs
    for run in runs:
        if run.state in (RunState.FAILED, RunState.LOST, RunState.CANCELLED):
            word = STATES[run.state].word.lower()
            st.caption(f"{escape(run_name(run))}: {word}. Shown is what it learned up to step {run.step:,}.")
        series = curve_series([run], [_PENALTY])
        if (vanished := penalty_vanished(series[0] if series else None)) is not None:
            largest, last = (number(float(f"{value:.2g}")) for value in vanished)
            st.warning(
                f"The penalty has vanished in run {run.id}, from {largest} at most to {last}. The run trains "
                "as MTL, and the relations shown are what the procedure left behind. The relational prior "
                "cannot vanish in this way.",
                icon=":material/warning:",
            )
    descriptions = [_description(run) for run in runs]
    for text in dict.fromkeys(descriptions):
        ids = [str(run.id) for run, other in zip(runs, descriptions, strict=True) if other == text]
        st.caption(text if len(ids) == len(runs) else f"Run {all_of(ids)}: {text}")
    for text in dict.fromkeys(_limits(run, view) for run, view in zip(runs, views, strict=True)):
        if text:
            st.info(text, icon=":material/info:")
    if state.steps.cut:
        last_step = state.steps.steps[-1]
        st.caption(f"Shown up to step {last_step:,}: not all of these runs have got further.")
    if not state.steps.exact:
        st.caption(
            "These runs were stored at other steps: each is shown at the snapshot nearest in training."
        )
    for run, names in zip(runs, state.shared.left_out, strict=True):
        if names:
            some = ", ".join(map(escape, names[:_MOST_NAMED])) + (", …" if len(names) > _MOST_NAMED else "")
            st.caption(
                f"Shown are the {plural(len(state.shared.rows), views[0].mode)} that all these runs have. "
                f"Of run {run.id} {len(names)} are left out: {some}."
            )


def _description(run: Run) -> str:
    config, facts = run.config, run.facts
    learned = ", ".join(config.learn or ())
    words = f"Prior {escape(config.prior)}, λ {number(config.lambda_)}, learned: {learned}."
    if not facts.get("alignment"):
        return words
    reason = facts.get("alignment_reason")
    because = f": {escape(reason.rstrip('.'))}" if reason else ""
    return f"{words} Alignment **{escape(facts['alignment'])}**{because}."


def _limits(run: Run, view: RelationsView) -> str:
    """What this run could not learn of the mode shown; empty where it could learn everything."""
    if not learns(run, view.mode):
        return (
            f"The {view.mode} covariance was not learned in this run: it stays as it began, all relations 0."
        )
    if not view.impossible:
        return ""
    what = "tasks" if view.mode == "task" else "labels of different tasks"
    groups = task_groups(run.facts)
    which, between = "different tasks", f"between {what}"
    if any(len(group) > 1 for group in groups):
        names = "; ".join(", ".join(map(escape, group)) for group in groups)
        which, between = f"these groups of tasks ({names})", f"of {what} between groups"
    cooccurrence = run.facts.get("alignment") == "cooccurrence"
    better = "a mapping of your own" if cooccurrence else "the alignment cooccurrence"
    return (
        f"Hatched: with this alignment the rows of {which} never meet, so the relations {between} "
        f"stay at zero whatever the data say. Launch the run with {better} to learn them."
    )


def saturation_warning(views: Iterable[RelationsView]) -> None:
    """Where nearly all correlations are ±1: their size shows λ, not the data."""
    shares = [share for view in views if (share := saturated(view)) is not None]
    if shares:
        st.warning(
            f"{100 * max(shares):.0f}% of the correlations are all but ±1 at this step. How large one "
            "becomes depends on λ too: large for the data, it drives related rows to ±1. Read the order in "
            "which they got there at earlier steps, and compare with a smaller λ before reading their size.",
            icon=":material/warning:",
        )


def gold_agreement(state: RelationsState, views: Sequence[RelationsView]) -> None:
    """The rank correlation of learned and gold relations, or why the run has no gold labels."""
    run, shared = state.runs[0], state.shared
    gold = gold_labels(run)
    if gold is None:
        st.info(why_no_gold(run), icon=":material/info:")
        return
    run_views = zip(views, shared.places, strict=True)
    learned = np.mean([view.matrix[np.ix_(places, places)] for view, places in run_views], axis=0)
    gold = gold[np.ix_(shared.places[0], shared.places[0])]
    impossible = impossible_blocks(run.facts, "label", shared.rows.owners)
    parts = [
        f"**{_signed(agreed[0])}** over {agreed[1]:,} pairs of {labels}"
        for labels, between in (("labels", False), ("labels of different tasks", True))
        if (agreed := agreement(learned, gold, shared.rows, impossible, between=between)) is not None
    ]
    words = f"Rank correlation of learned and gold: {'; '.join(parts)}." if parts else "Nothing varies."
    st.caption(
        f"{words} 1: counting gold labels on the training words says the same. Labels of one task never "
        "stand on the same word, so counted they repel each other."
    )


def _signed(value: float) -> str:
    return f"{value:z.2f}".replace("-", "−")


def player_words(mode: str, frame: Mapping[str, Any], size: int) -> dict[str, str]:
    """The words in and under the matrices."""
    block = frame["rows"]["block"]
    foot = ""
    if block > 1:
        foot = (
            f"{size:,} features; a cell is the mean of {block} × {block}, to 0.004. Click one for the values."
        )
    elif mode == "feature":
        foot = "Exact values. Esc or Whole matrix leads back."
    return {"foot": foot, "cannot": "With this alignment the rows of these two never meet."}


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
        "One matrix per run $k$, all on the scale from −1 to 1. Runs with other steps are shown at the same "
        "share of their training. The difference of two runs has a scale of its own, the same at all steps. "
        "Two seeds of one configuration differ too: look at their spread first.",
    ),
    "mean": (
        r"\bar R_{ij} = \tfrac1n \sum_{k=1}^{n} R^{(k)}_{ij}, \qquad "
        r"s_{ij} = \sqrt{\tfrac{1}{n-1} \sum_k \bigl(R^{(k)}_{ij} - \bar R_{ij}\bigr)^2}",
        "Each seed's matrix is made a correlation first, then they are averaged. On hover stands the 95% "
        r"interval of the mean, $\bar R_{ij} \pm t_{n-1}\, s_{ij} / \sqrt n$. What changes its sign from "
        "seed to seed was not learned from the data.",
    ),
}

_COLOURS = r"""
- **Red, towards 1**: the heads of the two rows weigh features alike.
- **Neutral, 0**: the weights of one row say nothing about those of the other. Every run begins here.
- **Blue, towards −1**: features that speak for one row speak against the other.
- **Hatched**: the alignment leaves no way to learn a relation.

A correlation does not say that one task helps the other: in a measured case 0.80 went with no gain. *Compare*
shows gains. Under the alignment `cooccurrence` a row of another task is a mean of a task's own rows, so tasks
correlate before a prior has learned anything: 0.56 to 0.61 were measured without one. How large a correlation
becomes depends on $\lambda$ too: in simulations with planted relations their order was right, their size at
smaller $\lambda$ only.

*Clustered* sets rows of like relations beside each other: average linkage over the distances $1 - R_{ij}$ at
the last step. *Gold labels* are counted: the correlation of "this word has label $i$" with "this word has
label $j$" over the training words. Learned − gold is what MRN found beyond it.

MRN gives the heads, each mapped by its alignment to one space of labels, a normal prior with a covariance in
each direction (tasks, labels, features), $\mathrm{vec}(\mathcal{W}) \sim \mathcal{N}(0,\; s\,\Omega)$. It
adds to the loss:

$$"""

_NUMBERS = r"""$$

In numbers, for a covariance with eigenvalues $s_1 \geq \dots \geq s_d$: **effective rank**
$\exp(-\sum_k p_k \ln p_k)$ with $p_k = s_k / \sum_j s_j$ (Roy and Vetterli 2007) begins at $d$ and falls as
rows turn out to be related or to vary unlike; **trace** $\sum_k s_k$, kept at $d$ by the `relational` prior;
**condition** $s_1 / s_d$; **penalty**, the prior's term of the loss, $\lambda$ included; **J**, twice the
negative log posterior up to a constant, which an update of the `map` prior never raises.
"""


def how_to_read(mode: str, view: str) -> None:
    """The fold at the foot of the page, on the mode and the view shown."""
    symbol, of = _ROWS[mode]
    equation, words = _VIEWS[view]

    def explain() -> None:
        st.markdown(f"Every cell is the correlation of {of} $i$ and $j$, from ${symbol}$:")
        st.latex(equation if view == "mean" else equation + rf", \qquad \Omega = {symbol}")
        st.markdown(words + _COLOURS + PENALTY + _NUMBERS)

    fold(explain, key="how_to_read")
