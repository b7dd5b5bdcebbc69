"""The card that a newcomer meets first: one click, five runs, a minute."""

from __future__ import annotations

from collections.abc import Callable

import streamlit as st

from core.errors import MRNLabError
from core.wording import plural
from dashboard.launch.presets import TRY_IT, LaunchPreset
from dashboard.shared import actions, resources
from dashboard.shared.states import problem
from jobs.submit import REUSABLE


def try_it(words: str) -> None:
    """The "Try it" card with a sentence on why it is here."""
    with st.container(border=True, width=520):
        st.markdown(f"**{TRY_IT.title}**")
        st.markdown(words)
        st.caption(TRY_IT.words)
        launch_button(TRY_IT, primary=True)


def launch_button(preset: LaunchPreset, *, primary: bool = False) -> None:
    """A button that goes to a preset's runs on Runs, and queues those that are missing. Where some are there,
    a second one queues all of them anew.
    """
    with st.container(horizontal=True, gap="xsmall"):
        if st.button(
            preset.button,
            type="primary" if primary else "secondary",
            icon=":material/play_arrow:",
            key=f"preset_{preset.button}",
        ):
            _launch(preset, reuse=True)
        configurations = {config.configuration_id for config in preset.configs}
        if resources.store().runs_of(configurations, REUSABLE) and st.button(
            "",
            type="tertiary",
            icon=":material/replay:",
            help="Train all of these runs anew.",
            key=f"preset_anew_{preset.button}",
        ):
            _launch(preset, reuse=False)


def _launch(preset: LaunchPreset, *, reuse: bool) -> None:
    try:
        runs, used = actions.launch(preset.configs, preset.title, reuse=reuse)
    except MRNLabError as error:
        problem(str(error))
    else:
        if used:
            new = len(runs) - len(used)
            actions.say(
                f"{plural(len(used), 'run')} of {preset.title} there already"
                + (f", {plural(new, 'run')} queued." if new else "; nothing was queued.")
            )
        st.switch_page("runs/page.py", query_params={"run": ",".join(map(str, runs))})


# What am I looking at: in a fold, what a number of MRN's is and the equation it comes from.
#
# The equations are those of docs/mathematics.md; Relations has a fold of its own (how_to_read.py).


PENALTY = r"""
\lambda\,\frac{r}{2N\,\lVert B\rVert^2}\;\frac{1}{s}\,\langle \mathcal{W},\, \Omega^{-1}\mathcal{W} \rangle,
\qquad \Omega = \Omega_\text{task} \otimes \Omega_\text{label} \otimes \Omega_\text{feature}
"""

_TEXTS: dict[str, tuple[str, str, str]] = {
    "train loss": (
        "The mean cross-entropy per word. The total is the mean over the tasks $t$; MRN adds its penalty:",
        r"\mathcal{L} = \tfrac{1}{T}\sum_t \mathcal{L}_t + \text{penalty}",
        "So the totals of MRN and MTL are not on one scale; the losses of a task are.",
    ),
    "train penalty": (
        r"What the prior adds to the loss, $\lambda$ included. The weights $\mathcal{W}$ of all "
        r"heads, stacked, "
        r"are held against the learned covariances:",
        PENALTY,
        r"$N$ counts the labelled training words, $s$ is the scale of the prior, and $r / \lVert B \rVert^2$ "
        r"makes alignments comparable; `paper` weighs with $\lambda$ alone. The penalty grows while "
        r"the heads "
        r"grow from zero. Where it stays near zero the run trains as MTL.",
    ),
    "train objective": (
        r"What the covariances are fitted by: twice the negative log posterior, up to a constant, "
        r"here as `map` "
        r"has it:",
        r"J(\mathcal{W}, \Omega) = \tfrac{1}{s} \langle \mathcal{W},\, \Omega^{-1} \mathcal{W} "
        r"\rangle + \sum_u "
        r"\bigl[ (n_u + \kappa d_u) \ln \lvert \Omega_u \rvert + \kappa\, d_u\, \tau_u\, "
        r"\mathrm{tr}(\Omega_u^{-1}) \bigr]",
        r"Only its course means something, and only within one prior. An update of the covariances by `map` "
        r"never raises it; between updates training moves $\mathcal{W}$. A mode $u$ (task, label, "
        r"feature) has "
        r"$d_u$ rows and $n_u$ columns, $\tau_u$ is its scale and $\kappa$ the shrinkage.",
    ),
    "strength": (
        r"$\lambda$ says how much the relations between tasks, labels and features count against "
        r"the data. It "
        r"weighs the penalty in the loss:",
        r"\mathcal{L} = \tfrac{1}{T}\sum_t \mathcal{L}_t + " + PENALTY,
        r"Towards 0 MRN becomes MTL. With `relational` and `map`, $\lambda = 1$ is the weight that Bayes' "
        r"rule gives the prior, however large the corpus ($N$ labelled words), where all tasks have equally "
        r"many words. A smaller one trusts the data more.",
    ),
}


def what_is_this(name: str) -> None:
    """Draws the fold on a curve (`train loss`, say) or on the `strength` λ; on others nothing."""
    if name not in _TEXTS:
        return
    before, equation, after = _TEXTS[name]

    def tell() -> None:
        st.markdown(before)
        st.latex(equation)
        st.markdown(after)

    fold(tell, key="what_is_this")


def fold(tell: Callable[[], None], *, key: str) -> None:
    """A fold whose content is drawn when it is opened: the browser takes long to set equations."""

    @st.fragment
    def part() -> None:
        label, icon = "What am I looking at?", ":material/help:"
        with st.expander(label, icon=icon, key=key, on_change="rerun") as opened:
            if opened.open:
                tell()

    part()
