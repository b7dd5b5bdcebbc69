"""Relations: the learned relations of tasks, labels and features, at any step of training."""

from __future__ import annotations

from dashboard.relations.controls import mrn_runs, select
from dashboard.relations.pairs import draw, refresh_interval
from dashboard.shared.live import live
from dashboard.shared.newcomers import try_it
from dashboard.shared.presets import SCARCE
from dashboard.shared.selection import chosen
from dashboard.shared.states import empty, end_page, title

title("Relations", "What MRN learned of how tasks, labels and features relate, over training.")
runs = mrn_runs()
if runs is None:
    try_it("No MRN run yet. One click trains some and shows their relations live.", SCARCE)
    end_page()
if not runs:
    headline = "None of the chosen runs has relations" if chosen() else "No run chosen"
    empty(headline, "Choose an MRN run above to see its relations at every step.")
    end_page()
selection = select(runs)
live(lambda: draw(selection), lambda: refresh_interval(selection), key="relations")
