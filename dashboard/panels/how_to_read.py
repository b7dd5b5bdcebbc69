"""What am I looking at: the equation behind the relations and what the colours mean, folded."""

from __future__ import annotations

import streamlit as st

__all__ = ["how_to_read"]

_WORDS = r"""
Each task $t$ has a head with weights $W_t$, a row per label. MRN stacks all heads, each mapped by its
alignment $A_t$ to one space of labels, into a tensor $\mathcal{W}$ (tasks × labels × features) and believes
it to be normal with a covariance in each direction:

$$
\mathrm{vec}(\mathcal{W}) \sim \mathcal{N}\bigl(0,\;
\Omega_\text{task} \otimes \Omega_\text{label} \otimes \Omega_\text{feature}\bigr),
\qquad \mathcal{L} = \tfrac{1}{T}\sum_t \mathcal{L}_t
+ \lambda\, \langle \mathcal{W},\, \Omega^{-1}\mathcal{W} \rangle
$$

Shown is each covariance as a correlation, $R_{ij} = \Omega_{ij} / \sqrt{\Omega_{ii}\,\Omega_{jj}}$,
always on the same scale:

- **Red, towards 1**: the two rows pull in the same direction. Two tasks help each other; two labels look
  alike to the heads.
- **Neutral, 0**: what is learned of one says nothing of the other. Every run begins here.
- **Blue, towards −1**: where one is high the other is low.
- **Hatched**: the alignment leaves no way to learn a relation.

How large a correlation becomes depends on $\lambda$ too: large for the data, it drives related rows to 1.00.
In simulations with planted relations their order was right, their size at smaller $\lambda$ only.

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


def how_to_read() -> None:
    """The fold at the foot of the page."""
    with st.expander("How to read this", icon=":material/help:"):
        st.markdown(_WORDS)
