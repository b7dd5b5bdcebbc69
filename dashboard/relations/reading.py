"""How to read Relations: the equation of exactly what is drawn, and what the colours mean."""

from __future__ import annotations

import streamlit as st

from dashboard.shared.newcomers import LOOKING_AT, PENALTY

_ROWS = {
    "task": (r"\Omega_\text{task}", "two tasks"),
    "label": (r"\Omega_\text{label}", "two labels"),
    "feature": (r"\Omega_\text{feature}", "two features of the encoder"),
}

_MEAN = (
    r"\bar R_{ij} = \tfrac1n \sum_{k=1}^{n} R^{(k)}_{ij}, \qquad "
    r"R_{ij} = \frac{\Omega_{ij}}{\sqrt{\Omega_{ii}\,\Omega_{jj}}}, \qquad \Omega = "
)
_NOTE = """
Each matrix is of one configuration: the mean over its seeds, or one seed. Runs with different steps are shown
at the same share of training. A relation that a run cannot learn keeps its initial value, 0 by default.
Intervals and verdicts are over seeds, by Fisher's z.
"""

_COLOURS = r"""
- **Red, towards 1**: the heads of the two rows weight features alike.
- **Neutral, 0**: the weights of one row say nothing about those of the other. Initial value.
- **Blue, towards −1**: features that speak for one row speak against the other.
- **Hatched**: the alignment cannot learn this relation.
- **Bars**: the prior variances $\Omega_{ii}$ over their mean. Rows of small variance are regularised more.
- **Grey**: a row with itself, always 1.

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

_EMBEDDINGS = """
The encoder adds a vector for each task at its input, or through matrices of its layers. Where each layer has
vectors for queries, keys and values, those of queries and values are concatenated; those of keys change no
attention and are left out.

They start as random vectors of $d$ numbers, with cosines of $0 \\pm 1/\\sqrt{d}$ (0.05 for 384). **Red**: the
two tasks shift the states alike. **Blue**: they shift them in opposite directions. A mean over seeds near 0
beside large single values means that the directions were not learned from the data.

From 0.1 a cosine is called weak, from 0.3 moderate, from 0.5 strong (Cohen 1988), from 0.9 almost full.

A cosine does not mean that one task helps the other, nor that task embeddings help: *Compare* shows that.
"""


def how_to_read(mode: str) -> None:
    """Draws a popover on the mode shown; browsers are slow to set equations, so it is empty until opened."""
    icon = ":material/help:"
    with st.popover(LOOKING_AT, icon=icon, type="tertiary", key="how_to_read", on_change="rerun") as opened:
        if not opened.open:
            return
        if mode not in _ROWS:  # of embeddings
            st.markdown("Every cell is the cosine of the embeddings of tasks $i$ and $j$:")
            st.latex(r"c_{ij} = \frac{e_i^\top e_j}{\lVert e_i \rVert \, \lVert e_j \rVert}")
            st.markdown(_EMBEDDINGS)
            return
        symbol, of = _ROWS[mode]
        st.markdown(f"Every cell is the correlation of {of} $i$ and $j$, from ${symbol}$, over $n$ seeds:")
        st.latex(_MEAN + symbol)
        st.markdown(_NOTE + _COLOURS + PENALTY + _NUMBERS)
