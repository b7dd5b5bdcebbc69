"""What the Relations page shows at the moment: runs, moments, rows, and the picture made of them."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import streamlit as st

from core.config.sweep import whole_number
from core.mrn.relations import Relations
from core.store.records import Run, SnapshotKey
from dashboard.relations.charts import player_frame, player_numbers
from dashboard.relations.controls import Asked
from dashboard.relations.matrices import Ready, Window, arrangement, picture, pictures
from dashboard.relations.notes import waiting
from dashboard.relations.views import (
    Course,
    Moments,
    Shared,
    aligned,
    gold_labels,
    not_comparable,
    rows_of,
    shared_rows,
)
from dashboard.shared import resources
from dashboard.theme import colours
from jobs.naming import run_name

PLAYER = "relations_matrix"
WHOLE = "relations_whole"
"""Where the session keeps the picture of which the browser has asked for all moments."""

# So many snapshots are read before the first paint; of more, the moment asked for comes first, alone.
_AT_ONCE = 24


@dataclass(frozen=True)
class Scene:
    """What is shown: the runs that have relations, their moments, the rows they share. `view` is the one
    asked for, or `one` where the runs leave no other.
    """

    asked: Asked
    view: str
    runs: tuple[Run, ...]
    moments: Moments
    shared: Shared

    @property
    def at(self) -> int:
        """The moment shown: the URL's step, else the newest."""
        step = st.query_params.get("step", "")
        return self.moments.at(whole_number(step))

    def courses(self, moments: Moments) -> list[Course]:
        """The runs at these of its moments."""
        return [
            Course(run, keys, tuple(resources.learned(run, key) for key in keys))
            for run, keys in zip(self.runs, moments.keys, strict=True)
        ]

    def learned(self, moment: int) -> list[Relations]:
        """What each run had learned by then."""
        return [course.learned[0] for course in self.courses(self.moments.only(moment))]


def scene_of(asked: Asked) -> Scene | None:
    """The scene of what is asked for; None, with a word on why, where there is nothing to show yet."""
    store = resources.store()
    found = {run.id: run for run in store.runs(asked.run_ids)}
    runs = [found[run_id] for run_id in asked.run_ids if run_id in found]
    snapshots = {run.id: store.snapshots(run.id) for run in runs}
    begun = tuple(run for run in runs if snapshots[run.id])
    waiting([run for run in runs if not snapshots[run.id]], alone=not begun)
    if not begun:
        return None
    scene = _scene(asked, begun, snapshots)
    reason = not_comparable(begun, asked.mode, scene.shared) if len(begun) > 1 else None
    if reason is not None:
        st.info(reason, icon=":material/info:")
        scene = _scene(asked, begun[:1], snapshots)
    return scene


def _scene(asked: Asked, runs: tuple[Run, ...], snapshots: Mapping[int, Sequence[SnapshotKey]]) -> Scene:
    moments = aligned(runs, snapshots)
    ends = [resources.learned(run, keys[-1]) for run, keys in zip(runs, moments.keys, strict=True)]
    rows = [rows_of(run, asked.mode, end) for run, end in zip(runs, ends, strict=True)]
    return Scene(asked, asked.view if len(runs) > 1 else "one", runs, moments, shared_rows(rows))


def window() -> Window | None:
    """The part of the matrix that the URL zooms into: `zoom=12-76,100-164`."""
    numbers = [edge for span in st.query_params.get("zoom", "").split(",") for edge in span.split("-")]
    edges = [edge for number in numbers if (edge := whole_number(number)) is not None and edge >= 0]
    if len(numbers) != 4 or len(edges) != 4:
        return None
    top, bottom, left, right = edges
    return Window(top, bottom, left, right) if top < bottom and left < right else None


def ready(scene: Scene) -> tuple[Ready, bool]:
    """The picture at all moments; or, while these are still to be read, at the moment shown, and False."""
    asked, moments = scene.asked, scene.moments
    attempts = tuple(run.attempt for run in scene.runs)
    signature = (asked, scene.view, window(), attempts, moments.keys)
    few = len(moments.steps) * len(scene.runs) <= _AT_ONCE
    if few or pictures().has(signature) or st.session_state.get(WHOLE) == identity(signature):
        return pictures().get(signature, lambda: _made(scene, moments, identity(signature))), True
    alone = (*signature, scene.at)
    only = moments.only(scene.at)
    made = pictures().get(alone, lambda: _made(scene, only, identity(alone)))
    return Ready(made.frame | {"revision": identity(signature)}, made.numbers, made.places), False


def _made(scene: Scene, moments: Moments, name: str) -> Ready:
    asked = scene.asked
    last = scene.learned(len(scene.moments.steps) - 1)
    places = arrangement(asked.mode, scene.shared, last, asked.order)
    shown = picture(
        scene.courses(moments),
        [run_name(run) for run in scene.runs],
        asked.mode,
        scene.view,
        scene.shared,
        places,
        window(),
        gold_labels(scene.runs[0]) if asked.gold else None,
    )
    frame = player_frame(shown, scene.moments, colours(resources.task_order()), blocks=asked.order == "task")
    return Ready(frame | {"id": name, "revision": name}, player_numbers(shown, PLAYER, name), places)


def identity(signature: object) -> str:
    """A short name for what a picture depends on."""
    return hashlib.sha256(repr(signature).encode()).hexdigest()[:16]
