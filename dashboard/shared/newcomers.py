"""Help for newcomers: the offer of an empty page, and folds that explain the numbers of MRN."""

from __future__ import annotations

from collections.abc import Callable
from typing import Literal

import streamlit as st

from core.config import FIELD_HELP
from core.errors import MRNLabError
from core.wording import plural
from dashboard.shared import actions
from dashboard.shared.delivery import fragment
from dashboard.shared.presets import TRY_IT, LaunchPreset
from dashboard.shared.selection import address_of
from dashboard.shared.states import problem


def try_it(text: str, preset: LaunchPreset = TRY_IT) -> None:
    """Draws the offer of an empty page: a sentence, and the card of a preset that the page answers."""
    with st.container(border=True, width=520):
        st.markdown(f"**{preset.title}**")
        st.markdown(text)
        st.caption(preset.description)
        launch_button(preset, "Try it", primary=True)


def launch_button(preset: LaunchPreset, label: str, *, primary: bool = False) -> None:
    """A button that queues the missing runs of a preset and goes to Runs with all of them chosen."""
    look: Literal["primary", "secondary"] = "primary" if primary else "secondary"
    if not st.button(label, type=look, icon=":material/play_arrow:", key=f"preset_{preset.title}"):
        return
    try:
        runs, reused = actions.launch(preset.configs, preset.title, reuse=True)
    except MRNLabError as error:
        problem(str(error))
        return
    if reused:
        new = len(runs) - len(reused)
        rest = f", {plural(new, 'run')} queued." if new else "; nothing was queued."
        actions.toast(f"{plural(len(reused), 'run')} from the store{rest}")
    st.switch_page("runs/page.py", query_params=address_of(runs))


LOOKING_AT = "What am I looking at?"

# The equations are those of docs/mathematics.md.
PENALTY = r"""
\lambda\,\frac{r}{2N\,\lVert B\rVert^2}\;\frac{1}{s}\,\langle \mathcal{W},\, \Omega^{-1}\mathcal{W} \rangle,
\qquad \Omega = \Omega_\text{task} \otimes \Omega_\text{label} \otimes \Omega_\text{feature}
"""

_TEXTS: dict[str, tuple[str, str, str]] = {
    "dev score": (
        "How well the run labels text it is not trained on, in percent, after each epoch. Tasks of spans "
        "(chunk, NER) are scored by the F1 of whole spans, from precision $P$ and recall $R$:",
        r"F_1 = \frac{2 P R}{P + R}",
        "Others (POS, labels of texts) are scored by accuracy, numbers by Pearson's correlation, times 100. "
        "The mean weights all tasks equally; STL's is over its runs of one seed. Higher is better. ◆ marks "
        "the epoch whose weights were kept.",
    ),
    "train loss": (
        "The mean cross-entropy per word, text or pair; of numbers the mean squared error. "
        "The total is the mean over the tasks $t$; MRN adds its penalty:",
        r"\mathcal{L} = \tfrac{1}{T}\sum_t \mathcal{L}_t + \text{penalty}",
        "So totals of MRN and MTL are on different scales; losses of a task are comparable.",
    ),
    "train penalty": (
        r"The prior's part of the loss, $\lambda$ included. It measures the stacked weights $\mathcal{W}$ of "
        r"all heads by the learned covariances:",
        PENALTY,
        r"$N$ is the number of labelled training words, $s$ the scale of the prior, and "
        r"$r / \lVert B \rVert^2$ makes alignments comparable; the published prior uses $\lambda$ alone. "
        r"The penalty grows as the heads grow from zero. If it stays near zero, the run trains as MTL.",
    ),
    "train objective": (
        r"The covariances minimise this: twice the negative log posterior, up to a constant, here for `map`:",
        r"J(\mathcal{W}, \Omega) = \tfrac{1}{s} \langle \mathcal{W},\, \Omega^{-1} \mathcal{W} \rangle "
        r"+ \sum_u \bigl[ (n_u + \kappa d_u) \ln \lvert \Omega_u \rvert + \kappa\, d_u\, \tau_u\, "
        r"\mathrm{tr}(M_u \Omega_u^{-1}) \bigr]",
        r"Only its change is meaningful, and only within one prior. An update of the covariances by `map` "
        r"never raises it; between updates training moves $\mathcal{W}$. A mode $u$ (task, label, feature) "
        r"has $d_u$ rows and $n_u$ columns, $\tau_u$ is its scale, $M_u$ what its covariance is drawn "
        r"to, and $\kappa$ the shrinkage. "
        f"{FIELD_HELP['shrinkage'].description}",
    ),
    "strength": (
        r"$\lambda$ says how much the relations between tasks, labels and features count against the data. "
        r"It weighs the penalty in the loss:",
        r"\mathcal{L} = \tfrac{1}{T}\sum_t \mathcal{L}_t + " + PENALTY,
        r"Towards 0 MRN becomes MTL. With `relational` and `map`, $\lambda = 1$ is the weight that Bayes' "
        r"rule gives the prior, however large the corpus ($N$ labelled words), where all tasks have equally "
        r"many words. A smaller one trusts the data more.",
    ),
}


def explain(name: str) -> None:
    """Draws a popover on a curve, such as `train loss`, if it has an explanation."""
    if name in _TEXTS:
        icon = ":material/help:"
        with st.popover(
            LOOKING_AT, icon=icon, type="tertiary", key="what_is_this", on_change="rerun"
        ) as opened:
            if opened.open:
                say(name)


def say(name: str) -> None:
    """Draws the explanation of a curve or of the `strength` λ, with its equation."""
    before, equation, after = _TEXTS[name]
    st.markdown(before)
    st.latex(equation)
    st.markdown(after)


def fold(draw: Callable[[], None], *, key: str, label: str, icon: str | None = None) -> None:
    """A fold that draws its content once it is opened: browsers are slow to set code and tables."""

    @fragment()
    def part() -> None:
        with st.expander(label, icon=icon, key=key, type="compact", on_change="rerun") as opened:
            if opened.open:
                draw()

    part()
