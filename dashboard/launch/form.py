"""The form, in the order a researcher thinks: data, tasks, encoder, paradigm with its prior,
seeds, budget.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from types import MappingProxyType

import streamlit as st
from streamlit.delta_generator import DeltaGenerator

from core.config import FIELD_HELP, PARADIGMS, RunConfig
from core.config.fields import attribute_name
from core.errors import ConfigError
from core.mrn.alignments.mapping import MOST_BYTES, fit, keep_mapping, parse_mapping, read_mapping, template
from core.registry import ALIGNMENTS, BILSTM_SUFFIX, ENCODERS, PRIORS, base_name, has_bilstm
from core.wording import number
from dashboard.launch.address import MAPPING_KEPT, filled_from, fresh, key_of, tasks_key
from dashboard.launch.data import choose_data, show_labels, show_samples, task_colours
from dashboard.launch.draft import EXECUTION, OPTIONS, RARE, START, Draft, applicable
from dashboard.shared import resources
from dashboard.text import escape
from dashboard.theme import PARADIGM_NAMES

_UNSET = {"batch_tokens": "none", "dev_sentences": "a tenth"}
_NO_UNIT = ("share", "choice", "name", "number", "yes or no", "factor", "device", "task, label, feature")


def start_fields() -> None:
    """Gives every field without a value its start value. To be called before the widgets, on each run."""
    for field, start in START.items():
        st.session_state.setdefault(key_of(field), start if isinstance(start, str) else list(start))


def field_label(field: str) -> str:
    """A field's name in words, with its unit where it has one."""
    help_ = FIELD_HELP[field]
    return help_.label if help_.unit in _NO_UNIT else f"{help_.label} ({help_.unit})"


def picks(
    field: str, label: str | None = None, *, names: Mapping[str, str] = MappingProxyType({})
) -> tuple[str, ...]:
    """The values picked among a field's options, in the order of these, whatever was clicked first.

    `names` says how options are written where not as they are.
    """
    picked = st.pills(
        label or field_label(field),
        OPTIONS[field],
        selection_mode="multi",
        format_func=lambda option: names.get(option, option),
        help=escape(FIELD_HELP[field].sentence),
        key=key_of(field),
        persist_state="session",
    )
    return tuple(option for option in OPTIONS[field] if option in picked)


def typed(field: str, label: str | None = None, *, placeholder: str = "automatic", words: str = "") -> str:
    """A number, a name, or a list of them as one types it.

    Text, since Streamlit's number field has one fixed format for 2e-4 and 256, and takes no list.
    """
    default = RunConfig.model_fields[attribute_name(field)].default
    return st.text_input(
        label or field_label(field),
        placeholder=_UNSET.get(field, placeholder) if default is None else str(START[field]),
        help=f"{words} {escape(FIELD_HELP[field].sentence)}".strip(),
        key=key_of(field),
        persist_state="session",
    ).strip()


def show_source() -> None:
    """What the form was filled in from, with the way back, and what could not be taken over."""
    runs, sentences = filled_from()
    if not runs and not sentences:
        return
    with st.container(gap="xsmall"):
        if runs:
            st.page_link(
                "runs/page.py",
                label=f"Filled in from {f'run {runs[0]}' if len(runs) == 1 else f'{len(runs)} runs'}",
                icon=":material/content_copy:",
                query_params={"run": ",".join(map(str, runs))},
            )
        for sentence in sentences:
            st.caption(f":material/info: {escape(sentence)}")


_PARADIGM_WORDS = {
    "stl": "One task alone: the yardstick. A run per task.",
    "mtl": "All tasks over one encoder, nothing more.",
    "mrn": "As MTL, and a prior on the heads that learns how tasks, labels and features relate.",
}
_TRAINING_WORDS = {
    "full": "Fine-tunes all of the encoder.",
    "frozen": "Computes the encoder's features once and trains only what stands on top, in seconds.",
}

_Lists = dict[str, str | tuple[str, ...]]


def form() -> tuple[Draft, dict[str, DeltaGenerator]]:
    """Draws the form; returns what it holds, and by field the place for a sentence on what is
    wrong with it.
    """
    start_fields()
    slots: dict[str, DeltaGenerator] = {}
    with st.container(horizontal=True, vertical_alignment="center", gap="small"):
        st.subheader("Data", anchor=False)
        st.space("stretch")
        st.button(
            "Start over", icon=":material/restart_alt:", type="tertiary", on_click=fresh, key="launch_fresh"
        )
    show_source()
    data = choose_data()
    slots["corpus"] = slots["columns"] = st.empty()
    colour = task_colours(data.tasks, resources.task_order())
    if data.summary:
        show_samples(data.summary, colour)

    st.subheader("Tasks", anchor=False)
    st.session_state.setdefault(tasks_key(data.corpus), list(data.tasks))
    tasks = (
        st.pills(
            "Tasks",
            data.tasks,
            selection_mode="multi",
            format_func=lambda task: f':color[●]{{foreground="{colour[task]}"}} {escape(task)}',
            key=tasks_key(data.corpus),
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
        show_labels(data.summary, tasks, colour)
    slots["tasks"] = st.empty()

    problems = {"corpus": data.error} if data.error else {}
    lists = _encoder(slots)
    lists |= _paradigm(slots, lists["encoder_training"], labels, problems)
    lists |= _budget(slots)
    lists |= _rare(slots, lists)
    draft = Draft(
        corpus=data.corpus,
        columns=data.columns,
        tasks=tuple(tasks),
        lists=lists,
        problems=problems,
        **_execution(),
    )
    return draft, slots


def _encoder(slots: dict[str, DeltaGenerator]) -> _Lists:
    st.subheader("Encoder", anchor=False)
    left, right = st.columns(2)
    encoders = left.multiselect(
        "Shared layers",
        OPTIONS["encoder"],
        accept_new_options=True,
        placeholder="Choose, or type a Hub id or a folder",
        wrap=True,
        help=escape(FIELD_HELP["encoder"].sentence),
        key=key_of("encoder"),
        persist_state="session",
    )
    with right:
        trainings = picks("encoder_training", "Training")
    with st.container(gap=None):
        for name in dict.fromkeys(base_name(encoder) for encoder in encoders):
            if name in ENCODERS:
                st.caption(f"**{escape(name)}** {escape(ENCODERS[name].description)}")
        if any(has_bilstm(encoder) for encoder in encoders):
            st.caption(f"**{escape(BILSTM_SUFFIX)}** A BiLSTM between the encoder and the heads.")
        for name in trainings:
            st.caption(f"**{name}** {_TRAINING_WORDS[name]}")
    slots["encoder"] = slots["encoder_training"] = st.empty()
    return {"encoder": tuple(encoders), "encoder_training": trainings}


def _paradigm(
    slots: dict[str, DeltaGenerator],
    trainings: Sequence[str],
    labels: Mapping[str, Sequence[str]],
    problems: dict[str, str],
) -> _Lists:
    """Paradigms and, where MRN is among them, what it asks. What is wrong goes to `problems`."""
    st.subheader("Paradigm", anchor=False)
    paradigms = picks("paradigm", "How tasks learn from each other", names=PARADIGM_NAMES)
    with st.container(gap=None):
        for name in PARADIGMS:
            if name in paradigms:
                st.caption(f"**{PARADIGM_NAMES[name]}** {_PARADIGM_WORDS[name]}")
    slots["paradigm"] = st.empty()
    if "mrn" not in paradigms:
        return {"paradigm": paradigms}
    with st.container(border=True):
        left, right = st.columns(2)
        with left:
            priors = picks("prior")
        with right:
            lambdas = typed(
                "lambda",
                "λ, strength of the prior",
                placeholder=_automatic_strength(trainings, priors),
                words="One number, or a list such as 0.01, 0.1.",
            )
        alignments = picks("alignment", "Alignment, Aₜ")
        with st.container(gap=None):
            for name in priors:
                st.caption(f"**{escape(name)}** {escape(PRIORS[name])}")
            for name in alignments:
                st.caption(f"**{escape(name)}** {escape(ALIGNMENTS[name])}")
        if "mapping" in alignments:
            try:
                mapping = _mapping(labels)
                alignments = tuple(mapping if name == "mapping" else name for name in alignments)
            except ConfigError as error:
                problems["alignment"] = str(error)
        slots["prior"] = slots["alignment"] = slots["lambda"] = st.empty()
    return {"paradigm": paradigms, "prior": priors, "alignment": alignments, "lambda": lambdas}


def _mapping(labels: Mapping[str, Sequence[str]]) -> str:
    """The alignment by an uploaded file, `mapping:FILE`. Raises ConfigError where there is none to be used.

    `labels` are those of each chosen task, empty where the corpus has not been looked into.
    """
    left, right = st.columns([3, 2], vertical_alignment="bottom")
    file = left.file_uploader(
        "A CSV file with the columns task, label, general and weight",
        type="csv",
        max_upload_size=MOST_BYTES // 1_000_000,
        key=key_of("mapping"),
    )
    right.download_button(
        "Template",
        # With a byte order mark, by which spreadsheets know UTF-8.
        template(labels.items()).encode("utf-8-sig"),
        file_name="mapping.csv",
        mime="text/csv",
        icon=":material/download:",
        on_click="ignore",
        disabled=not labels,
        key="launch_template",
        help="All labels of the chosen tasks, each with a general label of its own name: change that column. "
        "A corpus from the Hub must have been looked into.",
    )
    if file is not None:
        # The uploader forgets its file on another page; what is kept is found there again.
        st.session_state.pop(MAPPING_KEPT, None)
        st.session_state[MAPPING_KEPT] = str(keep_mapping(parse_mapping(file.getvalue(), file.name)))
    kept: str | None = st.session_state.get(MAPPING_KEPT)
    if kept is None:
        raise ConfigError("alignment", "Upload the CSV file of the mapping; the template is a beginning.")
    mapping = read_mapping(kept)
    if labels:
        fit(mapping, tuple(labels), tuple(labels.values()))
    st.caption(f"**{escape(mapping.name)}**")
    return f"mapping:{kept}"


def _automatic_strength(trainings: Sequence[str], priors: Sequence[str]) -> str:
    """What an empty λ stands for: the λ that these runs take where the form names none."""
    strengths = {
        RunConfig.build(
            corpus="demo", tasks=("pos", "ner"), paradigm="mrn", encoder_training=training, prior=prior
        ).lambda_: None
        for training in trainings
        for prior in priors
    }
    return ", ".join(["automatic", *map(number, strengths)])


def _budget(slots: dict[str, DeltaGenerator]) -> _Lists:
    st.subheader("Seeds and budget", anchor=False)
    columns = st.columns(3)
    with columns[0]:
        seeds = typed("seed", "Seeds", words="Such as 1, 2, 3 or 1-5. A run for each.")
    with columns[1]:
        epochs = typed("epochs", "Epochs", words="A list such as 5, 10 makes runs for each.")
    with columns[2]:
        fractions = typed(
            "fraction",
            "Share of the training sentences",
            words="1 is all; a list such as 0.05, 0.1 makes runs for each.",
        )
    slots["seed"] = slots["epochs"] = slots["fraction"] = st.empty()
    return {"seed": seeds, "epochs": epochs, "fraction": fractions}


def _rare(slots: dict[str, DeltaGenerator], lists: _Lists) -> _Lists:
    """The other fields that at least one of the runs has."""
    kinds = (lists.get(name, ()) for name in ("encoder", "encoder_training", "paradigm", "prior"))
    used = applicable(*kinds)
    values: _Lists = {}
    with st.expander("More settings", icon=":material/tune:"):
        st.caption("Lists such as 0.1, 0.2 and several choices make runs for each.")
        grid = st.grid(3, min_column_width=180)
        for field in RARE:
            if field in used:
                with grid.cell():
                    values[field] = picks(field) if field in OPTIONS else typed(field)
                    slots[field] = st.empty()
    return values


_EXECUTION_WORDS = {
    "priority": ("Priority", "Of all that waits, higher priorities start first."),
    "retries": (
        "If its worker dies, resume it by itself up to N times",
        "At 0 a run whose worker died is lost until you resume it. Either way it goes on from its last saved "
        "state.",
    ),
}


def _execution() -> dict[str, int]:
    """How the runs wait and come back."""
    numbers = {}
    with st.expander("How they run", icon=":material/low_priority:"):
        columns = st.columns(len(EXECUTION), vertical_alignment="bottom")
        for column, (name, (least, most)) in zip(columns, EXECUTION.items(), strict=True):
            st.session_state.setdefault(key_of(name), 0)
            label, words = _EXECUTION_WORDS[name]
            numbers[name] = column.number_input(
                label, least, most, step=1, key=key_of(name), help=words, persist_state="session"
            )
    return numbers


def show_error(slot: DeltaGenerator, sentence: str) -> None:
    """One sentence beside the field that is wrong."""
    slot.markdown(f":orange[:material/error: {escape(sentence)}]")
