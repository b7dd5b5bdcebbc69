"""The controls of the Relations page: which matrices are shown, of which configurations and seeds."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import streamlit as st

from core.config import RunConfig
from core.registry import FROZEN, prior_spec
from core.results.naming import configuration_titles
from core.results.samples import by_configuration, one_per_seed
from core.store.types import Run
from core.wording import all_of, plural
from dashboard.relations.reading import how_to_read
from dashboard.shared import resources
from dashboard.shared.run_picker import pick_runs
from dashboard.shared.selection import choice, newest_sweep, segments, switch

MODES = {"task": "Tasks", "label": "Labels", "feature": "Features"}
EMBEDDING = "embedding"
"""The mode of the task embeddings, which MTL has too; the others are what MRN learned."""
PLAYER = "relations_matrix"
_ORDERS = {"task": "By task", "cluster": "Clustered"}
_MOST_BESIDE = {"task": 6, EMBEDDING: 6, "label": 4, "feature": 4}
"""So many matrices are read beside each other; the others are a click away."""
_MOST_OPENED = 60
_MOST_SEEDS = 50


@dataclass(frozen=True)
class Configuration:
    """A configuration chosen, and its runs that count, a run a seed."""

    title: str
    run_ids: tuple[int, ...]


@dataclass(frozen=True)
class Selection:
    """The reader's selection.

    `configurations` are all that are chosen, `shown` the places of those with a matrix; with `seed` they have
    the run of that seed alone. `gold` and `gradients` add their matrices.
    """

    mode: str
    order: str
    gold: bool
    gradients: bool
    configurations: tuple[Configuration, ...]
    shown: tuple[int, ...]
    seed: int | None = None

    @property
    def rows(self) -> str:
        """The kind of the matrices' rows: task, label or feature."""
        return "task" if self.mode == EMBEDDING else self.mode

    @property
    def run_ids(self) -> tuple[int, ...]:
        """The runs of all configurations."""
        return tuple(run_id for each in self.configurations for run_id in each.run_ids)


def mrn_runs() -> list[Run] | None:
    """The chosen runs of MRN or with task embeddings; None without one.
    By default those of the newest sweep that have begun.
    """
    return pick_runs(
        key="relations_runs",
        suitable=lambda run: run.config.paradigm == "mrn" or run.config.embeds_tasks,
        instead=lambda runs: newest_sweep(_opened_on(runs), _MOST_OPENED),
        label="Configurations",
    )


def _opened_on(runs: Sequence[Run]) -> Sequence[Run]:
    """Those that have begun, and of these rather what controls are of than controls."""
    begun = [run for run in runs if run.step] or runs
    return [run for run in begun if run.config.permuted is None] or begun


def select(runs: Sequence[Run]) -> Selection:
    """One row of controls. Runs that have nothing of the mode chosen are left out."""
    mrn = [run for run in runs if run.config.paradigm == "mrn"]
    embedding = [run for run in runs if run.config.embeds_tasks]
    modes = (MODES if mrn else {}) | ({EMBEDDING: "Embeddings"} if embedding else {})
    with st.container(horizontal=True, vertical_alignment="center", gap="small", key="relations_controls"):
        # The style sheet greys what none of these runs learned, by the name of the container.
        missing = [mode for mode in MODES if mrn and not any(mode in run.config.learned for run in mrn)]
        with st.container(key="-".join(["not_learned", *missing]), width="content"):
            mode = segments("Relations between", modes, key="mode", on_change=_unzoom)
        if missing:
            st.caption("Why?", help=_why_missing(missing, mrn[0].config), width="content")
        groups, note = _configurations(embedding if mode == EMBEDDING else mrn)
        titles = configuration_titles(groups)
        shown = _pick_shown(titles, _MOST_BESIDE[mode])
        seed = _pick_seed([groups[place] for place in shown])
        order, gold, gradients = "task", False, False
        if mode in ("label", "feature") and mode not in missing:
            names = _ORDERS if mode == "label" else {**_ORDERS, "task": "Encoder's order"}
            order = segments("Order", names, key="order", on_change=_unzoom)
        if mode == "label" and mode not in missing and len(shown) == 1:
            gold = switch(
                "Show gold labels",
                key="gold",
                help="Correlations of gold labels on the training words, and the learned ones less these.",
            )
        measured = len(shown) == 1 and any(run.config.affinity_every for run in groups[shown[0]])
        if mode == "task" and mode not in missing and measured:
            gradients = switch(
                "Show gradients",
                key="gradients",
                help="The cosine of two tasks' gradients, averaged over training.",
            )
        how_to_read(mode)
    if note:
        st.caption(note)
    configurations = tuple(
        Configuration(title, tuple(run.id for run in group if seed in (None, run.config.seed)))
        for title, group in zip(titles, groups, strict=True)
    )
    return Selection(mode, order, gold, gradients, configurations, shown, seed)


def _why_missing(missing: Sequence[str], config: RunConfig) -> str:
    names = all_of([MODES[mode].lower() for mode in missing])
    return (
        f"Relations of {names} were not learned ({why_not_learned(config)}). Choose one to launch these runs "
        "with all three."
    )


def why_not_learned(config: RunConfig) -> str:
    """Why a run does not learn all covariances."""
    spec = prior_spec(str(config.prior))
    if config.encoder_training == FROZEN and spec and spec.frozen_learn == config.learn:
        return "the default over a frozen encoder, where learning all three did not score clearly better"
    return "as configured"


def _unzoom() -> None:
    """A zoomed part belongs to one matrix in one order."""
    st.query_params.pop("zoom", None)


def _configurations(runs: Sequence[Run]) -> tuple[list[list[Run]], str]:
    """The runs that count by configuration, of one sweep by λ, and a sentence on those that do not count."""
    counted = one_per_seed(runs, resources.store().conditions(runs))
    groups = [
        sorted(group, key=lambda run: (run.config.seed, run.id))[:_MOST_SEEDS]
        for group in by_configuration(counted).values()
    ]
    others: dict[str, int] = {}
    for group in groups:
        others.setdefault(_without_lambda(group[0]), len(others))
    groups.sort(key=lambda group: (others[_without_lambda(group[0])], group[0].config.lambda_ or 0.0))
    left_out = len(runs) - sum(map(len, groups))
    note = "Of each seed the newest successful run counts, on the newest text and precision"
    return groups, f"{note}: {plural(left_out, 'run')} left out." if left_out else ""


def _without_lambda(run: Run) -> str:
    config = run.config.with_(seed=0)
    return (config.with_(**{"lambda": 1.0}) if config.paradigm == "mrn" else config).to_json()


def _pick_shown(titles: Sequence[str], most: int) -> tuple[int, ...]:
    """The places of the configurations with a matrix: as many as are read side by side, or one."""
    every = range(len(titles))
    if len(titles) == 1:
        return (0,)
    of_all = "Both configurations" if len(titles) == 2 else f"All {len(titles)} configurations"
    names = {"": of_all} | {title: title for title in titles}
    picked = choice(
        "Matrices", names, key="matrices", label_visibility="collapsed", width=280, on_change=_unzoom
    )
    if picked:
        return (titles.index(picked),)
    if len(titles) <= most:
        return tuple(every)
    parts = {
        str(number): " to ".join(dict.fromkeys((str(start + 1), str(min(start + most, len(titles))))))
        for number, start in enumerate(range(0, len(titles), most), 1)
    }
    part = int(segments("Part", parts, key="part", on_change=_unzoom)) - 1
    return tuple(every[part * most : (part + 1) * most])


def _pick_seed(groups: Sequence[Sequence[Run]]) -> int | None:
    """The one seed that is shown; None for the mean of seeds, and where no configuration has several."""
    if max(map(len, groups)) < 2:
        return None
    seeds = sorted({run.config.seed for group in groups for run in group})
    names = {"": "Mean of seeds"} | {str(seed): f"Seed {seed}" for seed in seeds}
    picked = choice("Seeds", names, key="seed", label_visibility="collapsed", width=160, on_change=_unzoom)
    return int(picked) if picked else None
