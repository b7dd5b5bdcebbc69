"""Tag: sentences, texts and pairs with every task's answers, of one run or of several side by side."""

from __future__ import annotations

import streamlit as st

from core.errors import MRNLabError
from core.tagging import text_of
from dashboard.shared import resources
from dashboard.shared.newcomers import try_it
from dashboard.shared.run_picker import pick_runs
from dashboard.shared.selection import chosen
from dashboard.shared.states import problem, title
from dashboard.tag.answers import show_answers
from dashboard.tag.controls import FILE, TEXT, bounded, input_kind, nothing_yet, test_sentence, text
from dashboard.tag.files import tag_file
from dashboard.tag.models import answers, models, reads_of
from dashboard.tag.views import MOST_SYSTEMS, System, first_choice, has_model, systems, why_not

title(
    "Tag",
    "Enter a sentence, a text or a pair to see every task's answer, the confidence of each run, and where "
    "runs disagree.",
)

picked = pick_runs(key="tag_runs", suitable=has_model, instead=first_choice, label="Models", run_by_run=True)
if picked is None:
    try_it("No finished run yet, so nothing to tag with. One click trains STL, MTL and MRN.")
    st.stop()
for run in resources.store().runs(chosen(), with_facts=False):
    if not has_model(run):
        st.caption(f":material/info: {why_not(run)}")
chosen_systems = systems(picked)
if not chosen_systems:
    st.caption("Choose at least one model.")
    st.stop()
first = picked[0]
if len(chosen_systems) > MOST_SYSTEMS:
    st.caption(f"The first {MOST_SYSTEMS} of {len(chosen_systems)} models are shown.")
    chosen_systems = chosen_systems[:MOST_SYSTEMS]
for system in chosen_systems:
    for checkpoint in system.checkpoints:
        models().load(checkpoint)  # in the background, while the reader types


def ready() -> list[System]:
    """The systems once their models are loaded; the page says why a model cannot be read."""
    readable = []
    with st.spinner("Loading the models", show_time=True):
        for run in [run for system in chosen_systems for run in system.runs]:
            try:
                models().load(run.checkpoint or "").result()
                readable.append(run)
            except MRNLabError as error:
                problem(f"Run {run.id}: {error}")
    return systems(readable)


reads = reads_of(chosen_systems)
kind = input_kind()


@st.fragment
def ask() -> None:
    """Draws the input and its answers; typing runs only this part of the page again."""
    try:
        typed = text(reads) if kind == TEXT else test_sentence(chosen_systems, first)
        if not typed:
            nothing_yet(kind, chosen_systems[0], reads)
            return
        sentences = bounded(typed)
        able = ready()
        if able:
            words = tuple(sentence.tokens for sentence in sentences if not sentence.whole)
            texts = tuple(text_of(sentence) for sentence in sentences if sentence.whole)
            tagged, seconds = answers(able, words, texts)
            show_answers(able, sentences, tagged, seconds)
    except MRNLabError as error:
        problem(str(error))


if kind != FILE:
    ask()
elif able := ready():
    try:
        tag_file(able)
    except MRNLabError as error:
        problem(str(error))
