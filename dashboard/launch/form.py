"""The form, in the order a researcher thinks: data, tasks, encoder, paradigm with its prior,
seeds, budget.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import streamlit as st
from streamlit.delta_generator import DeltaGenerator

from core.config import FIELD_HELP, PARADIGMS, RunConfig, applicable_fields
from core.errors import ConfigError
from core.models.registry import BILSTM_SUFFIX, ENCODERS, base_name, has_bilstm
from core.mrn.registry import ALIGNMENTS, PRIORS
from dashboard import resources
from dashboard.launch.data import choose_data, show_samples, task_colours
from dashboard.launch.draft import Draft
from dashboard.launch.fields import RARE, field_widget, key_of
from dashboard.launch.mapping import choose_mapping
from dashboard.text import escape, number
from dashboard.theme import PARADIGM_NAMES

__all__ = ["fill", "form", "show_error"]

_PARADIGM_WORDS = {
    "stl": "One task alone: the yardstick. A run per task.",
    "mtl": "All tasks over one encoder, nothing more.",
    "mrn": "As MTL, and a prior on the heads that learns how tasks, labels and features relate.",
}
_TRAINING_WORDS = {"full": "Fine-tune all", "frozen": "Frozen features"}
_LISTS = {
    "encoders": "encoder",
    "paradigms": "paradigm",
    "lambdas": "lambda",
    "fractions": "fraction",
    "seeds": "seed",
}


def fill(values: Mapping[str, Any]) -> None:
    """Put these values into the form. To be called before its widgets (from a button's callback)."""
    for name, value in values.items():
        key = key_of(_LISTS.get(name, name))
        # Numbers that the form holds as text are written as one types them.
        is_text = isinstance(value, int | float) and not isinstance(value, bool) and name != "epochs"
        st.session_state[key] = f"{value:g}" if is_text else value
    if "tasks" in values:
        st.session_state[_tasks_key(str(values["corpus"]))] = list(values["tasks"])


def _tasks_key(corpus: str) -> str:
    # A key per corpus: the tasks of another one are another question.
    return f"launch_tasks_{corpus}"


def form() -> tuple[Draft, dict[str, DeltaGenerator]]:
    """Draws the form; returns what it holds, and by field the place for a sentence on what is
    wrong with it.
    """
    slots: dict[str, DeltaGenerator] = {}
    st.subheader("Data", anchor=False)
    data = choose_data()
    slots["corpus"] = slots["columns"] = st.empty()
    colour = task_colours(data.tasks, resources.task_order())
    if data.summary:
        show_samples(data.summary, colour)

    st.subheader("Tasks", anchor=False)
    tasks = (
        st.pills(
            "Tasks",
            data.tasks,
            selection_mode="multi",
            default=list(data.tasks),
            format_func=lambda task: f':color[●]{{foreground="{colour[task]}"}} {escape(task)}',
            key=_tasks_key(data.corpus),
            persist_state="session",
            label_visibility="collapsed",
        )
        if data.tasks
        else []
    )
    known = {task.name: task.labels for task in data.summary.tasks} if data.summary else {}
    labels = {task: known[task] for task in tasks if task in known}
    if not data.tasks:
        st.caption("Choose a corpus first.")
    elif data.summary:
        told = ", ".join(f"{escape(task)} {len(own)} labels" for task, own in labels.items())
        st.caption(told or "None chosen.")
    slots["tasks"] = st.empty()

    problems = {"corpus": data.error} if data.error else {}
    encoders, training = _encoder(slots)
    paradigms, mrn = _paradigm(slots, training, labels, problems)
    seeds, fractions, epochs = _budget(slots)
    lambdas = mrn.pop("lambdas", "")
    values = {"encoder_training": training, "epochs": epochs, **mrn}
    values |= _rare(slots, encoders, paradigms, training, values.get("prior"))
    draft = Draft(
        corpus=data.corpus,
        columns=data.columns,
        tasks=tuple(tasks),
        encoders=encoders,
        paradigms=paradigms,
        lambdas=lambdas,
        fractions=fractions,
        seeds=seeds,
        values=values,
        problems=problems,
    )
    return draft, slots


def _encoder(slots: dict[str, DeltaGenerator]) -> tuple[tuple[str, ...], str]:
    st.subheader("Encoder", anchor=False)
    left, right = st.columns(2)
    encoders = left.multiselect(
        "Shared layers",
        [name + suffix for name in ENCODERS for suffix in ("", BILSTM_SUFFIX)],
        default=["minilm"],
        accept_new_options=True,
        placeholder="Choose, or type a Hub id or a folder",
        wrap=True,
        help=escape(FIELD_HELP["encoder"].sentence),
        key=key_of("encoder"),
        persist_state="session",
    )
    training = right.segmented_control(
        "Training",
        list(_TRAINING_WORDS),
        format_func=_TRAINING_WORDS.__getitem__,
        default="frozen",
        required=True,
        help=escape(FIELD_HELP["encoder_training"].sentence),
        key=key_of("encoder_training"),
        persist_state="session",
    )
    with st.container(gap=None):
        for name in dict.fromkeys(base_name(encoder) for encoder in encoders):
            if name in ENCODERS:
                st.caption(f"**{escape(name)}** {escape(ENCODERS[name].description)}")
        if any(has_bilstm(encoder) for encoder in encoders):
            st.caption(f"**{escape(BILSTM_SUFFIX)}** A BiLSTM between the encoder and the heads.")
    slots["encoder"] = slots["encoder_training"] = st.empty()
    return tuple(encoders), training


def _paradigm(
    slots: dict[str, DeltaGenerator],
    training: str,
    labels: Mapping[str, Sequence[str]],
    problems: dict[str, str],
) -> tuple[tuple[str, ...], dict[str, Any]]:
    """Paradigms and, where MRN is among them, the values of its fields. What is wrong goes to `problems`."""
    st.subheader("Paradigm", anchor=False)
    paradigms = st.pills(
        "Paradigm",
        PARADIGMS,
        selection_mode="multi",
        default=["mrn"],
        format_func=PARADIGM_NAMES.__getitem__,
        key=key_of("paradigm"),
        persist_state="session",
        label_visibility="collapsed",
    )
    with st.container(gap=None):
        for name in PARADIGMS:
            if name in paradigms:
                st.caption(f"**{PARADIGM_NAMES[name]}** {_PARADIGM_WORDS[name]}")
    slots["paradigm"] = st.empty()
    if "mrn" not in paradigms:
        return tuple(paradigms), {}
    with st.container(border=True):
        columns = st.columns(3)
        prior = columns[0].selectbox(
            "Prior",
            list(PRIORS),
            key=key_of("prior"),
            persist_state="session",
            help=escape(FIELD_HELP["prior"].sentence),
        )
        alignment = columns[1].selectbox(
            "Alignment, Aₜ",
            list(ALIGNMENTS),
            key=key_of("alignment"),
            persist_state="session",
            help=escape(FIELD_HELP["alignment"].sentence),
        )
        lambdas = columns[2].text_input(
            "λ, strength of the prior",
            placeholder=f"automatic, {number(_default_strength(training, prior))}",
            key=key_of("lambda"),
            persist_state="session",
            help="One number, or a list such as 0.01, 0.1. " + escape(FIELD_HELP["lambda"].sentence),
        )
        with st.container(gap=None):
            st.caption(f"**{escape(prior)}** {escape(PRIORS[prior])}")
            st.caption(f"**{escape(alignment)}** {escape(ALIGNMENTS[alignment])}")
        if alignment == "mapping":
            try:
                alignment = choose_mapping(labels)
            except ConfigError as error:
                problems["alignment"] = str(error)
        slots["prior"] = slots["alignment"] = slots["lambda"] = st.empty()
    return tuple(paradigms), {"prior": prior, "alignment": alignment, "lambdas": lambdas}


def _default_strength(training: str, prior: str) -> float | None:
    """The λ that a run takes where the form names none."""
    return RunConfig.build(
        corpus="demo", tasks=("pos", "ner"), paradigm="mrn", encoder_training=training, prior=prior
    ).lambda_


def _budget(slots: dict[str, DeltaGenerator]) -> tuple[str, str, int]:
    st.subheader("Seeds and budget", anchor=False)
    columns = st.columns(3)
    seeds = columns[0].text_input(
        "Seeds",
        value="1-3",
        key=key_of("seed"),
        persist_state="session",
        help="Such as 1, 2, 3 or 1-5. A run for each.",
    )
    epochs = columns[1].number_input(
        "Epochs",
        min_value=1,
        max_value=1000,
        value=int(RunConfig.model_fields["epochs"].default),
        key=key_of("epochs"),
        persist_state="session",
        help=escape(FIELD_HELP["epochs"].sentence),
    )
    fractions = columns[2].text_input(
        "Share of the training sentences",
        value="1",
        key=key_of("fraction"),
        persist_state="session",
        help="1 is all; a list such as 0.05, 0.1 makes runs for each. "
        + escape(FIELD_HELP["fraction"].sentence),
    )
    slots["seed"] = slots["epochs"] = slots["fraction"] = st.empty()
    return seeds, fractions, int(epochs)


def _rare(
    slots: dict[str, DeltaGenerator],
    encoders: tuple[str, ...],
    paradigms: tuple[str, ...],
    training: str,
    prior: str | None,
) -> dict[str, Any]:
    """The other fields that at least one of the runs has."""
    applicable = {
        field
        for encoder in encoders
        for paradigm in paradigms
        for field in applicable_fields(paradigm, encoder, training, prior)
    }
    values: dict[str, Any] = {}
    with st.expander("More settings", icon=":material/tune:"):
        grid = st.grid(3, min_column_width=180)
        for field in RARE:
            if field in applicable:
                with grid.cell():
                    values[field] = field_widget(field)
                    slots[field] = st.empty()
    return values


def show_error(slot: DeltaGenerator, sentence: str) -> None:
    """One sentence beside the field that is wrong."""
    slot.markdown(f":orange[:material/error: {escape(sentence)}]")
