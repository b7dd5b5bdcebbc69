"""What am I looking at: the equation of exactly what is drawn and what the colours mean, folded."""

from __future__ import annotations

import streamlit as st

from dashboard.panels.what_is_this import PENALTY, fold

__all__ = ["how_to_read"]

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
