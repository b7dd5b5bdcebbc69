"""The words of the Relations page: why something is not there yet, what was not or cannot be learned, what to
make of what is shown.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import streamlit as st

from core.mrn.relations import impossible_blocks, task_groups
from core.records import TOTAL
from core.store.records import ACTIVE, MetricKey, Run, RunState
from core.wording import all_of, number, plural
from dashboard.relations.views import (
    Moments,
    RelationsView,
    Shared,
    agreement,
    gold_labels,
    learns,
    penalty_vanished,
    saturated,
    why_no_gold,
)
from dashboard.shared.curve_cache import curve_series
from dashboard.shared.newcomers import PENALTY, fold
from dashboard.shared.states import empty
from dashboard.text import escape
from dashboard.theme import STATES
from jobs.naming import run_name

_PENALTY = MetricKey(TOTAL, "train", "penalty")
_MOST_NAMED = 6


def waiting(runs: Sequence[Run], *, alone: bool) -> None:
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


def run_words(runs: Sequence[Run], views: Sequence[RelationsView], shared: Shared, moments: Moments) -> None:
    """What each run's setting means for what can be seen; said once for runs of which the same is true."""
    mode = views[0].mode
    for run in runs:
        if run.state in (RunState.FAILED, RunState.LOST, RunState.CANCELLED):
            word = STATES[run.state].word.lower()
            st.caption(f"{escape(run_name(run))}: {word}. Shown is what it learned up to step {run.step:,}.")
        _vanished(run, len(runs) > 1)
    settings = [_setting(run) for run in runs]
    for sentence in dict.fromkeys(settings):
        of = [str(run.id) for run, one in zip(runs, settings, strict=True) if one == sentence]
        st.caption(sentence if len(of) == len(runs) else f"Run {all_of(of)}: {sentence}")
    told = (_limits(run, view) for run, view in zip(runs, views, strict=True))
    for sentence in dict.fromkeys(sentence for sentence in told if sentence):
        st.info(sentence, icon=":material/info:")
    if moments.cut:
        st.caption(f"Shown up to step {moments.steps[-1]:,}: not all of these runs have got further.")
    if not moments.exact:
        st.caption(
            "These runs were stored at other steps: each is shown at the snapshot nearest in training."
        )
    for run, names in zip(runs, shared.left_out, strict=True):
        if names:
            some = ", ".join(map(escape, names[:_MOST_NAMED])) + (", …" if len(names) > _MOST_NAMED else "")
            st.caption(
                f"Shown are the {plural(len(shared.rows), mode)} that all these runs have. Of run {run.id} "
                f"{len(names)} are left out: {some}."
            )


def _setting(run: Run) -> str:
    config, facts = run.config, run.facts
    learned = ", ".join(config.learn or ())
    words = f"Prior {escape(config.prior)}, λ {number(config.lambda_)}, learned: {learned}."
    if not facts.get("alignment"):
        return words
    reason = facts.get("alignment_reason")
    because = f": {escape(reason.rstrip('.'))}" if reason else ""
    return f"{words} Alignment **{escape(facts['alignment'])}**{because}."


def _limits(run: Run, view: RelationsView) -> str:
    """What this run could not learn of the mode shown."""
    if not learns(run, view.mode):
        return (
            f"The {view.mode} covariance was not learned in this run: it stays as it began, all relations 0."
        )
    if not view.impossible:
        return ""
    what = "tasks" if view.mode == "task" else "labels of different tasks"
    groups = task_groups(run.facts)
    if all(len(group) == 1 for group in groups):
        which, between = "different tasks", f"between {what}"
    else:
        told = "; ".join(", ".join(map(escape, group)) for group in groups)
        which, between = f"these groups of tasks ({told})", f"of {what} between groups"
    better = (
        "a mapping of your own"
        if run.facts.get("alignment") == "cooccurrence"
        else "the alignment cooccurrence"
    )
    return (
        f"Hatched: with this alignment the rows of {which} never meet, so the relations {between} "
        f"stay at zero whatever the data say. Launch the run with {better} to learn them."
    )


def _vanished(run: Run, several: bool) -> None:
    """Whether the penalty has vanished, and what that makes of the relations shown."""
    series = curve_series([run], [_PENALTY])
    vanished = penalty_vanished(series[0] if series else None)
    if vanished is not None:
        st.warning(
            (f"Run {run.id}. " if several else "")
            + f"The penalty has vanished: it was {_rough(vanished[0])} at most and is {_rough(vanished[1])} "
            "now, so this run trains as MTL, and the relations shown are what the procedure left behind. "
            "The relational prior cannot vanish in this way.",
            icon=":material/warning:",
        )


def _rough(value: float) -> str:
    return number(float(f"{value:.2g}"))


def size_words(views: Sequence[RelationsView]) -> None:
    """Where nearly all correlations are ±1: that their size tells of λ, not of the data."""
    shares = [share for view in views if (share := saturated(view)) is not None]
    if shares:
        st.warning(
            f"{100 * max(shares):.0f}% of the correlations are all but ±1 at this step. How large one "
            "becomes depends on λ too: large for the data, it drives related rows to ±1. Read the order in "
            "which they got there at earlier steps, and compare with a smaller λ before reading their size.",
            icon=":material/warning:",
        )


def gold_words(run: Run, views: Sequence[RelationsView], shared: Shared) -> None:
    """How far learned and gold relations go together, or why the run has none of the latter."""
    gold = gold_labels(run)
    if gold is None:
        st.info(why_no_gold(run), icon=":material/info:")
        return
    own = zip(views, shared.places, strict=True)
    learned = np.mean([view.matrix[np.ix_(places, places)] for view, places in own], axis=0)
    gold = gold[np.ix_(shared.places[0], shared.places[0])]
    rows, cannot = shared.rows, impossible_blocks(run.facts, "label", shared.rows.owners)
    all_pairs = agreement(learned, gold, rows, cannot, between=False)
    if all_pairs is None:
        st.caption("Learned and gold correlations cannot be compared: one of them is the same for all pairs.")
        return
    words = (
        f"Learned and counted go together with a rank correlation of **{_signed(all_pairs.spearman)}** "
        f"(Pearson {_signed(all_pairs.pearson)}) over {all_pairs.pairs:,} pairs of labels"
    )
    between = agreement(learned, gold, rows, cannot, between=True)
    if between is not None:
        words += f"; **{_signed(between.spearman)}** over the {between.pairs:,} of different tasks"
    st.caption(
        f"{words}. 1 is what counting gold labels on the training words already tells; what the "
        "difference shows was learned beyond it. Labels of one task never stand on the same word, so counted "
        "they repel each other."
    )


def _signed(value: float) -> str:
    return f"{value:z.2f}".replace("-", "−")


def player_words(mode: str, frame: Mapping[str, Any], size: int, *, zoomed: bool) -> dict[str, str]:
    """The words in and under the matrices."""
    block = max(frame["rows"]["block"], frame["columns"]["block"])
    if block > 1:
        foot = (
            f"{size:,} features; a cell is the mean of {block} × {block}, to 0.004. Click one or drag a "
            "rectangle for the exact values."
        )
    elif mode == "feature":
        foot = "Exact values. Esc or Whole matrix leads back."
    else:
        foot = "Drag a rectangle to zoom in." if size > 12 and not zoomed else ""
    return {"foot": foot, "cannot": "With this alignment the rows of these two never meet."}


# What am I looking at: the equation of exactly what is drawn and what the colours mean, folded.


_ROWS = {
    "task": (r"\Omega_\text{task}", "T", "two tasks"),
    "label": (r"\Omega_\text{label}", "C", "two labels"),
    "feature": (r"\Omega_\text{feature}", "D", "two features of the encoder"),
}

_VIEWS = {
    "one": (r"R_{ij} = \frac{\Omega_{ij}}{\sqrt{\Omega_{ii}\,\Omega_{jj}}}", ""),
    "side": (
        r"R^{(k)}_{ij} = \frac{\Omega^{(k)}_{ij}}{\sqrt{\Omega^{(k)}_{ii}\,\Omega^{(k)}_{jj}}}",
        "One matrix per run $k$, all on the scale from −1 to 1. Runs with other steps are shown at the same "
        "share of their training.",
    ),
    "difference": (
        r"D_{ij} = R^{(A)}_{ij} - R^{(B)}_{ij}",
        "The difference has a scale of its own, symmetric around zero and the same at all steps; its ends "
        "stand under it. Two seeds of one configuration differ too: look at their spread first.",
    ),
    "mean": (
        r"\bar R_{ij} = \tfrac1n \sum_{k=1}^{n} R^{(k)}_{ij}, \qquad "
        r"s_{ij} = \sqrt{\tfrac{1}{n-1} \sum_k \bigl(R^{(k)}_{ij} - \bar R_{ij}\bigr)^2}",
        "Each seed's matrix is made a correlation first, then they are averaged. On hover stands the 95% "
        r"interval of the mean, $\bar R_{ij} \pm t_{n-1}\, s_{ij} / \sqrt n$. What changes its sign from "
        "seed to seed was not learned from the data.",
    ),
}

_MODEL = (
    r"""
Each task $t$ has a head with weights $W_t$, a row per label. MRN stacks all heads, each mapped by its
alignment $A_t$ to one space of labels, into a tensor $\mathcal{W}$ (tasks × labels × features). Its prior is
normal, with a covariance in each direction:

$$
\mathrm{vec}(\mathcal{W}) \sim \mathcal{N}(0,\; s\,\Omega),
\qquad \mathcal{L} = \tfrac{1}{T}\sum_t \mathcal{L}_t + """
    + PENALTY
    + r"""$$

$N$ counts the labelled training words, $r / \lVert B \rVert^2$ makes alignments comparable; `paper` weighs
with $\lambda$ alone.
"""
)

_COLOURS = r"""
- **Red, towards 1**: the heads of the two rows weigh features alike.
- **Neutral, 0**: the weights of one row say nothing about those of the other. Every run begins here.
- **Blue, towards −1**: features that speak for one row speak against the other.
- **Hatched**: the alignment leaves no way to learn a relation.

A correlation does not say that one task helps the other: in a measured case 0.80 went with no gain. *Compare*
shows gains. Under the alignment `cooccurrence` a row of another task is a mean of a task's own rows, so tasks
correlate before a prior has learned anything: 0.56 to 0.61 were measured without one.

How large a correlation becomes depends on $\lambda$ too: large for the data, it drives related rows to 1.00.
In simulations with planted relations their order was right, their size at smaller $\lambda$ only.

*Clustered* sets rows of like relations beside each other: average linkage over the distances $1 - R_{ij}$ at
the last step, so that nothing moves about during play. *Gold labels* are counted, not learned: the
correlation of "this word has label $i$" with "this word has label $j$" over the training words. Learned −
gold is what MRN found beyond it.
"""

_NUMBERS = r"""
In numbers, for a covariance of $d$ rows with eigenvalues $s_1 \geq \dots \geq s_d$:

- **Effective rank** $\exp(-\sum_k p_k \ln p_k)$ with $p_k = s_k / \sum_j s_j$ (Roy and Vetterli 2007): how
  many directions share the variance. It begins at $d$ and falls as rows turn out to be related, or as some
  vary more than others.
- **Trace** $\sum_k s_k$: all variance together. The `relational` prior keeps it at $d$; under `map` it tells
  whether the scale runs away or collapses.
- **Condition** $s_1 / s_d$: how lopsided the matrix is. Where it is large, the prior holds some differences
  between rows to be all but impossible.
- **Penalty**: the prior's term of the loss, $\lambda$ included.
- **J**: twice the negative log posterior of heads and covariances, up to a constant, so only its course means
  something. An update of the `map` prior never raises it.
"""


def how_to_read(mode: str, view: str) -> None:
    """The fold at the foot of the page, on the mode and the view shown."""
    symbol, size, of = _ROWS[mode]
    equation, words = _VIEWS[view]

    def tell() -> None:
        st.markdown(
            f"Every cell is the correlation of {of} $i$ and $j$, from ${symbol}$ (${size} \\times {size}$):"
        )
        st.latex(equation + rf", \qquad \Omega = {symbol}" if view in ("one", "side") else equation)
        st.markdown(words + _COLOURS if words else _COLOURS)
        st.markdown(_MODEL)
        st.markdown(_NUMBERS)

    fold(tell, key="how_to_read")
