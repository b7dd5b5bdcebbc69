"""The part of the Relations page that lives: the player, and with it the pairs, their line, the words."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import streamlit as st

from core.lists import whole_number
from core.store.states import ACTIVE
from dashboard import resources
from dashboard.caches.relations import Ready
from dashboard.components.matrix import matrix_player
from dashboard.panels.relation_numbers import numbers_panel, planted_panel
from dashboard.panels.relations_controls import MODES, Asked
from dashboard.panels.relations_pairs import line_panel, pairs_panel
from dashboard.panels.relations_parts import gold_words, player_words, run_words, size_words
from dashboard.panels.relations_scene import PLAYER, WHOLE, Scene, ready, scene_of, window
from dashboard.queries.relations import relations
from dashboard.queries.relations_pairs import half_interval

__all__ = ["draw", "pace"]

_SMALL = 12


def pace(asked: Asked) -> float | None:
    """How often to look for new snapshots, while any of the runs trains or waits."""
    runs = resources.store().runs(asked.run_ids, with_facts=False)
    return resources.LIVE if any(run.state in ACTIVE for run in runs) else None


def draw(asked: Asked) -> None:
    """The whole part: one matrix with what belongs to it on its right, several over the whole width."""
    scene = scene_of(asked)
    if scene is None:
        return
    shown, whole = ready(scene)
    at = scene.at
    learned = scene.learned(at)
    views = [
        relations(run, asked.mode, keys[at], one)
        for run, keys, one in zip(scene.runs, scene.moments.keys, learned, strict=True)
    ]
    if len(shown.frame["panels"]) == 1:
        left, right = st.columns([3, 2], gap="large")
        line = right.container()
        table = right.container()
    else:
        left = st.container()
        table, line = st.columns(2, gap="large")
    with left:
        run_words(scene.runs, views, scene.shared, scene.moments)
        _player(scene, shown, whole)
        size_words(views)
        if asked.gold:
            gold_words(scene.runs[0], views, scene.shared)
    with table:
        pair = pairs_panel(scene, learned, _pair(scene))
    with line:
        line_panel(scene, pair)
    with left if len(shown.frame["panels"]) == 1 else line:
        numbers_panel(scene.runs, views, learned, scene.moments.keys)
    if scene.view == "one":
        planted_panel(scene.runs[0], views[0])


def _pair(scene: Scene) -> tuple[str, str] | None:
    """The pair in the URL, where these rows have it."""
    names = st.query_params.get_all("pair")
    known = set(scene.shared.rows.names)
    return (names[0], names[1]) if len(names) == 2 and known.issuperset(names) else None


def _player(scene: Scene, shown: Ready, whole: bool) -> None:
    mode, names = scene.asked.mode, scene.shared.rows.names
    zoomed = window() is not None

    def cell(event: Mapping[str, Any]) -> None:
        row, column = (names[shown.places[int(event[side])]] for side in ("row", "column"))
        if row != column:
            st.query_params["pair"] = [row, column]

    def more(event: Mapping[str, Any]) -> None:
        st.session_state[WHOLE] = event["revision"]

    step = st.query_params.get("step", "")
    matrix_player(
        shown.frame
        | {
            "name": PLAYER,
            "alt": f"Correlations between {MODES[mode].lower()}, by training step",
            "filename": f"relations-{mode}-run-{'-'.join(str(run.id) for run in scene.runs[:4])}",
            "whole": whole,
            "at": scene.at,
            "step": whole_number(step),
            "pair": _marks(shown, names, _pair(scene)),
            "total": len(names),
            "zooms": len(names) > _SMALL,
            "zoomed": zoomed,
            "interval": half_interval(len(scene.runs)) if scene.view == "mean" else None,
            **player_words(mode, shown.frame, len(names), zoomed=zoomed),
        },
        shown.numbers,
        key=PLAYER,
        on_step=_step,
        on_cell=cell,
        on_zoom=_zoom,
        on_more=more,
    )


def _step(event: Mapping[str, Any]) -> None:
    """The newest step needs no place in the URL: a link without one follows the run."""
    if event["step"] is not None:
        st.query_params["step"] = str(event["step"])
    elif "step" in st.query_params:
        del st.query_params["step"]


def _zoom(event: Mapping[str, Any]) -> None:
    if not event.get("whole"):
        rows, columns = (
            f"{int(event[a])}-{int(event[b])}" for a, b in (("top", "bottom"), ("left", "right"))
        )
        st.query_params["zoom"] = f"{rows},{columns}"
    elif "zoom" in st.query_params:
        del st.query_params["zoom"]


def _marks(shown: Ready, names: Sequence[str], pair: tuple[str, str] | None) -> list[tuple[int, int]]:
    """The cells of the pair, as far as they are drawn as cells of their own."""
    rows, columns = shown.frame["rows"]["names"], shown.frame["columns"]["names"]
    if pair is None:
        return []
    return [
        (rows.index(one), columns.index(other))
        for one, other in (pair, pair[::-1])
        if one in rows and other in columns
    ]
