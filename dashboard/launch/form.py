"""The form: data, tasks, encoder, paradigm with its prior, seeds, budget."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager, nullcontext
from types import MappingProxyType
from typing import Any, Literal

import streamlit as st
from streamlit.delta_generator import DeltaGenerator

from core.config import FIELD_HELP, PARADIGMS
from core.config.task_groups import GROUPINGS, TASK_GROUPS
from core.config.typed import value_text
from core.errors import ConfigError, EncoderError
from core.models.sources import locate, signature
from core.mrn.alignments.mapping import MOST_BYTES, fit, keep_mapping, parse_mapping, read_mapping, template
from core.mrn.relations import related_tasks
from core.registry import (
    ALIGNMENTS,
    BILSTM_SUFFIX,
    ENCODER_TRAININGS,
    ENCODERS,
    PREDICTED,
    WORD_ENCODERS,
    base_name,
    prior_spec,
)
from core.store import RunWithFacts
from core.tasks import KINDS
from core.wording import all_of, number, without_shared
from dashboard.launch.address import (
    ALIGNMENT_FOLD,
    GROUPS_WRITTEN,
    MAPPING_KEPT,
    WRITTEN,
    added_to,
    fill,
    filled_from,
    fit_to,
    fresh,
    key_of,
    tasks_key,
)
from dashboard.launch.data import ChosenData, choose_data, show_data
from dashboard.launch.draft import (
    EXECUTION,
    OPTIONS,
    RARE,
    SELDOM,
    START,
    Draft,
    applicable,
    automatic,
    form_sentence,
)
from dashboard.launch.paradigms import paradigms
from dashboard.launch.presets import TABLES
from dashboard.shared import resources
from dashboard.shared.newcomers import fold, say
from dashboard.shared.selection import link_to_runs
from dashboard.shared.states import field_problem, show_note, show_reason
from dashboard.text import coloured, escape, with_code
from dashboard.theme import PARADIGM_NAMES

_NO_UNIT = (
    *("share", "choice", "name", "names", "number", "yes or no", "factor", "factors", "norm", "layers"),
    *("device", "task, label, feature", "name or file"),
)


def field_label(field: str) -> str:
    """A field's name in words, with its unit where it has one."""
    help_ = FIELD_HELP[field]
    has_no_unit = help_.unit in _NO_UNIT or help_.unit.casefold() == help_.label.casefold()
    return help_.label if has_no_unit else f"{help_.label} ({help_.unit})"


def picks(
    field: str,
    label: str | None = None,
    *,
    names: Mapping[str, str] = MappingProxyType({}),
) -> tuple[str, ...]:
    """Returns the values picked among a field's options, in the order of the options.

    `names` says how options are written where not as they are.
    """
    st.pills(
        label or field_label(field),
        OPTIONS[field],
        selection_mode="multi",
        format_func=lambda option: names.get(option, option),
        help=escape(FIELD_HELP[field].description),
        key=key_of(field),
        persist_state="session",
    )
    return _picked(field)


def _picked(field: str) -> tuple[str, ...]:
    return tuple(option for option in OPTIONS[field] if option in st.session_state[key_of(field)])


def typed(field: str, label: str | None = None, *, placeholder: str = "automatic") -> str:
    """A number, a name, or a list of them as one types it.

    Text, since Streamlit's number field has one fixed format for 2e-4 and 256, and takes no list.
    """
    help_ = FIELD_HELP[field]
    return st.text_input(
        label or field_label(field),
        placeholder=(help_.view.unset or placeholder) if help_.default is None else str(START[field]),
        help=f"{help_.view.hint} {escape(help_.description)}".strip(),
        key=key_of(field),
        persist_state="session",
    ).strip()


def show_source(added: RunWithFacts | None, corpus: str) -> None:
    """Draws the source of the form's values, a way back, and the fields that were not copied.
    The source is past runs, or the run that a task is added to.
    """
    runs, sentences = filled_from()
    if added is not None:
        over = ", over its corpus" * (corpus == added.config.corpus)
        link_to_runs([added.id], f"Adding a task to run {added.id}{over}", ":material/add_task:")
    if runs:
        which = f"run {runs[0]}" if len(runs) == 1 else f"{len(runs)} runs"
        link_to_runs(runs, f"Filled in from {which}", ":material/content_copy:")
    for sentence in sentences:
        show_note(escape(sentence))


_Lists = dict[str, str | tuple[str, ...]]
_Slots = dict[str, DeltaGenerator]


@contextmanager
def _field(
    slots: _Slots,
    field: str,
    place: DeltaGenerator | None = None,
    *,
    gap: Literal["xxsmall", "xsmall"] = "xxsmall",
) -> Iterator[None]:
    """Draws a field, in `place` if there is one, with room below it for its error."""
    with place or nullcontext():
        slots[field] = st.container(gap=gap)
    with slots[field]:
        yield


def form() -> tuple[Draft, _Slots]:
    """Draws the form and returns its values, and by field the place for its error."""
    for field, start in START.items():
        st.session_state.setdefault(key_of(field), start if isinstance(start, str) else list(start))
    slots: _Slots = {}
    problems: dict[str, str] = {}
    parts = st.container(gap="small")  # and the room above a heading (`style.css`)
    with parts.container(gap="xsmall"):
        data, tasks, task_groups = _data(slots, problems)
    with parts.container(gap="xsmall"):
        st.subheader("Model", anchor=False)
        lists = _encoder(slots, *st.columns(2))
    with parts.container(gap="xsmall"):
        st.subheader("Method", anchor=False)
        known = {task.name: task for task in data.summary.tasks} if data.summary else {}
        labels = {task: known[task].labels for task in tasks if task in known}
        lists |= _method(slots, lists, labels, problems)
    with parts.container(gap="xsmall"):
        st.subheader("Budget", anchor=False)
        lists |= _budget(slots)
        looked_into = known.keys() >= set(tasks)
        reads = frozenset(KINDS[known[task].scheme].reads for task in tasks) if looked_into else None
        rare, execution = _rare(slots, lists, reads)
    draft = Draft(
        corpus=data.corpus,
        columns=data.columns,
        tasks=tasks,
        task_groups=task_groups,
        lists=lists | rare,
        reads=reads,
        problems=problems,
        notes=data.summary.notes if data.summary else (),
        **execution,
    )
    return draft, slots


def _data(slots: _Slots, problems: dict[str, str]) -> tuple[ChosenData, tuple[str, ...], str]:
    """Draws the corpus and its tasks; returns them, and which tasks are trained together."""
    with st.container(horizontal=True, vertical_alignment="center", gap="small"):
        st.subheader("Data", anchor=False)
        st.menu_button(
            "Published tables",
            list(TABLES),
            icon=":material/menu_book:",
            type="tertiary",
            help="Fills in the settings of a paper's table.",
            key="fill_table",
            on_click=_fill_table,
        )
        st.button(
            "Start over", icon=":material/restart_alt:", type="tertiary", on_click=fresh, key="launch_fresh"
        )
    added, source = added_to(resources.store()), st.container()
    with _field(slots, "corpus", gap="xsmall"):
        data = choose_data()
    fit_to(data.corpus, data.kinds)
    with source:
        show_source(added, data.corpus)
    slots["columns"] = slots["corpus"]
    colour = resources.task_colours(data.tasks)
    if data.summary:
        show_data(data.summary, colour)
    problems |= {"corpus": data.error} if data.error else {}
    left, right = st.columns(2)
    with _field(slots, "tasks", left):
        tasks = _tasks(data, colour, added)
    with _field(slots, TASK_GROUPS, right):
        task_groups = _task_groups() if tasks and added is None else "all"
    return data, tasks, task_groups


def _fill_table() -> None:
    fill(TABLES[st.session_state["fill_table"]])


def captions(texts: Mapping[str, str]) -> None:
    """A description of each of the chosen options."""
    st.caption("  \n".join(f"**{escape(name)}** {with_code(text)}" for name, text in texts.items()))


def _explained_picks(
    field: str,
    label: str,
    ask: str,
    texts: Mapping[str, str],
    names: Mapping[str, str] = MappingProxyType({}),
) -> tuple[str, ...]:
    """Picks of a field, each chosen one with its text; `ask` opens those of all, the default marked.

    `names` says how options are written where not as they are, which the text then says.
    """
    texts = {name: text + f" Commands name it `{name}`." * (name in names) for name, text in texts.items()}
    with st.container(horizontal=True, vertical_alignment="bottom", gap="small"):
        with st.container(width="content"):
            chosen = picks(field, label, names=names)
        with st.popover(ask, type="tertiary", key=f"launch_about_{field}"):
            for name, text in texts.items():
                default = " :gray-badge[Default]" * (name in START[field])
                st.markdown(f"**{escape(names.get(name, name))}**{default}  \n{with_code(text)}")
    # The plan writes what `auto` takes here.
    if described := {
        names.get(name, name): texts[name] for name in chosen if name in texts and name != "auto"
    }:
        captions(described)
    return chosen


def _tasks(data: ChosenData, colour: Mapping[str, str], added: RunWithFacts | None) -> tuple[str, ...]:
    """The tasks chosen: at first all of the corpus; where one is `added` to a run, one it has not learned."""
    known = (related_tasks(added.facts) or added.config.tasks) if added else ()
    others = [task for task in data.tasks if task not in known]
    st.session_state.setdefault(tasks_key(data.corpus), others[:1] if added else others)
    if not data.tasks:
        st.markdown("Tasks")
        st.caption("Fix the data above first." if data.error else "They are read from the corpus.")
        return ()
    if added and not others and not st.session_state[tasks_key(data.corpus)]:
        st.markdown("Task to add")
        learned = escape(f"Run {added.id} has learned all tasks of this corpus: {all_of(list(known))}.")
        show_reason(f"{learned} Choose another corpus above, or use your data.")
        return ()
    short = without_shared(data.tasks)
    is_short = any(short[task] != task for task in data.tasks)
    chosen = tuple(
        st.pills(
            "Task to add" if added else "Tasks",
            data.tasks,
            selection_mode="multi",
            format_func=lambda task: coloured(short[task], colour[task]),
            help=f"In full: {escape(', '.join(data.tasks))}" if is_short else None,
            key=tasks_key(data.corpus),
            persist_state="session",
        )
    )
    if added:
        st.caption(escape(f"Run {added.id} has learned {all_of(list(known))}."))
    return chosen


def _task_groups() -> str:
    options = {name: words.capitalize() for name, words in GROUPINGS.items()}
    st.session_state.setdefault(key_of(TASK_GROUPS), "all")
    chosen: str = st.selectbox(
        "Trained together",
        [*options, WRITTEN],
        format_func=lambda name: options.get(name, "Custom groups"),
        help="Which tasks a run of MTL or MRN learns together; each group makes runs of its own. STL learns "
        "each task alone.",
        key=key_of(TASK_GROUPS),
        persist_state="session",
    )
    if chosen != WRITTEN:
        return chosen
    return st.text_input(
        "Groups of tasks",
        placeholder="ner,pos; ner,chunk",
        label_visibility="collapsed",
        key=GROUPS_WRITTEN,
        persist_state="session",
    ).strip()


def _encoder(slots: _Slots, left: DeltaGenerator, right: DeltaGenerator) -> _Lists:
    """Draws the encoder, and how it is trained where it can be."""
    with _field(slots, "encoder", left):
        encoders = _picked_or_typed("encoder", "Choose, or type a Hub id or a folder", _encoder_text)
        known = {name: spec.description for name, spec in ENCODERS.items()} | WORD_ENCODERS
        words = _known(map(base_name, encoders), known)
        if any(encoder.endswith(BILSTM_SUFFIX) for encoder in encoders):
            words[BILSTM_SUFFIX] = "A BiLSTM between the encoder and the heads."
        captions(words)
    lists: _Lists = {"encoder": encoders}
    if "encoder_training" in applicable(lists):
        with _field(slots, "encoder_training", right):
            lists["encoder_training"] = _picked_or_typed("encoder_training", "Choose, or type top:K")
            captions(_known(lists["encoder_training"], ENCODER_TRAININGS))
    return lists


def _encoder_text(encoder: str) -> str:
    """The name of an encoder in the list, with a note where its files are not on this machine."""
    if base_name(encoder) not in ENCODERS:
        return encoder
    try:
        is_here = signature(locate(encoder)) is not None
    except EncoderError:  # which the plan shows once it is chosen
        is_here = True
    return encoder if is_here else f"{encoder} (needs download)"


def _picked_or_typed(field: str, placeholder: str, text: Callable[[str], str] = str) -> tuple[str, ...]:
    """The values picked among a field's options, written as `text` says, or typed where there are others."""
    return tuple(
        st.multiselect(
            field_label(field),
            OPTIONS[field],
            accept_new_options=True,
            format_func=text,
            placeholder=placeholder,
            wrap=True,
            help=escape(FIELD_HELP[field].description),
            key=key_of(field),
            persist_state="session",
        )
    )


def _known(names: Iterable[str], texts: Mapping[str, str]) -> dict[str, str]:
    return {name: texts[name] for name in dict.fromkeys(names) if name in texts}


def _method(
    slots: _Slots, lists: _Lists, labels: Mapping[str, Sequence[str]], problems: dict[str, str]
) -> _Lists:
    """Draws the paradigm, and the fields of MRN where it is chosen."""
    names = {name: PARADIGM_NAMES[name] for name in PARADIGMS}
    with st.container(horizontal=True, vertical_alignment="bottom", gap="small"):
        with _field(slots, "paradigm", st.container(width="content")):
            chosen: _Lists = {"paradigm": picks("paradigm", names=names)}
        with st.popover("What are STL, MTL and MRN?", type="tertiary", key="launch_paradigms"):
            paradigms()
    return chosen | (_prior(slots, lists | chosen, labels, problems) if "mrn" in chosen["paradigm"] else {})


def _prior(
    slots: _Slots, lists: _Lists, labels: Mapping[str, Sequence[str]], problems: dict[str, str]
) -> _Lists:
    """Draws the fields of MRN. An error in the file of a mapping goes to `problems`."""
    specs = {name: spec for name in OPTIONS["prior"] if (spec := prior_spec(name))}
    texts = {name: spec.description for name, spec in specs.items()}
    names = {name: spec.title for name, spec in specs.items() if spec.title}
    left, right = st.columns([7, 3])
    with _field(slots, "prior", left):
        priors = _explained_picks("prior", "Prior of MRN", "Compare priors", texts, names)
    with _field(slots, "lambda", right):
        strengths = automatic({**lists, "prior": priors})["lambda"]
        lambdas = typed(
            "lambda",
            "λ, strength of the prior",
            placeholder=", ".join(["automatic", *map(number, strengths)]),
        )
    added: _Lists = {}
    if PREDICTED in priors:
        with _field(slots, "added_to"):
            added["added_to"] = typed("added_to")
    with st.container(gap=None):
        fold(lambda: say("strength"), key="what_is_this", label="What does λ do?")
        alignments = _alignments(slots, labels, problems)
    return {"prior": priors, "alignment": alignments, "lambda": lambdas, **added}


def _alignments(
    slots: _Slots, labels: Mapping[str, Sequence[str]], problems: dict[str, str]
) -> tuple[str, ...]:
    """Draws the alignment in a fold, which names it and opens by itself where it is not the default."""
    picked = _picked("alignment")
    st.session_state.setdefault(ALIGNMENT_FOLD, picked != START["alignment"])
    title = f"Alignment of labels: {', '.join(picked) or 'none'}"
    with (
        st.expander(title, key=ALIGNMENT_FOLD, type="compact", on_change="rerun"),
        _field(slots, "alignment"),
    ):
        label = "Alignment Aₜ: which labels of the tasks correspond"
        alignments = _explained_picks("alignment", label, "Compare alignments", ALIGNMENTS)
        if "mapping" in alignments:
            try:
                mapping = _mapping(labels)
                alignments = tuple(mapping if name == "mapping" else name for name in alignments)
            except ConfigError as error:
                problems["alignment"] = form_sentence(error)
    return alignments


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
        help="All labels of the chosen tasks. Edit the column *general*. For a corpus "
        "from the Hub switch on *Look inside* first.",
    )
    if file is not None:
        # The uploader forgets its file on another page; what is kept is found there again.
        st.session_state.pop(MAPPING_KEPT, None)
        st.session_state[MAPPING_KEPT] = str(keep_mapping(parse_mapping(file.getvalue(), file.name)))
    kept: str | None = st.session_state.get(MAPPING_KEPT)
    if kept is None:
        raise ConfigError("alignment", "Upload the CSV file of the mapping; start from the template.")
    mapping = read_mapping(kept)
    if labels:
        fit(mapping, tuple(labels), tuple(labels.values()))
    st.caption(f"**{escape(mapping.name)}**")
    return f"mapping:{kept}"


def _budget(slots: _Slots) -> _Lists:
    values: _Lists = {}
    labels = {"seed": "Seeds", "epochs": "Epochs", "fraction": "Share of the training data"}
    for (field, label), column in zip(labels.items(), st.columns(3), strict=True):
        with _field(slots, field, column):
            values[field] = typed(field, label)
    return values


_OPTION_WORDS = {
    "each_epoch": "every epoch",
    "crf_legal": "CRF with valid transitions",
    "crf": "CRF",
    "seqeval_f1": "span F1",
    "by_length": "by length",
    "in_turn": "in turn",
    "linear_warmup": "linear after a warm-up",
}
"""The options of further settings that are no words as they are."""
_EXECUTION_WORDS = {
    "priority": ("Priority", "Of all queued runs, higher priorities start first."),
    "retries": (
        "Automatic resumes",
        "How often a run is resumed automatically when its worker dies. At 0 it stays lost until you resume "
        "it. In both cases it continues from its last saved state.",
    ),
}


def _rare(slots: _Slots, lists: _Lists, reads: frozenset[str] | None) -> tuple[_Lists, dict[str, int]]:
    """The other fields that at least one of the runs has; how runs wait and come back."""
    pairs = {"pair_encoding": tuple(st.session_state[key_of("pair_encoding")])}
    unset = {field for field in SELDOM if not st.session_state[key_of(field)]}
    used, defaults = applicable(lists | pairs, reads) - unset, automatic(lists)
    values: _Lists = {}
    numbers = {}
    for name in EXECUTION:
        st.session_state.setdefault(key_of(name), 0)
    more = st.expander("More settings", key="launch_more", on_change="rerun")
    if not more.open:  # not drawn, which takes a browser half as long as all else; errors stand below
        below = st.container(gap=None)
        for field in (field for fields in RARE.values() for field in fields if field in used):
            values[field] = _picked(field) if field in OPTIONS else st.session_state[key_of(field)].strip()
            slots[field] = below
        return values, {name: st.session_state[key_of(name)] for name in EXECUTION}
    with more:
        st.caption("A list such as 0.1, 0.2, or several choices, makes runs for each value.")
        wanted = st.text_input(
            "Search the settings",
            placeholder="Words of a name or a description: dropout, batch, CRF",
            type="search",
            key="launch_search",
        ).casefold()
        for field in (field for fields in RARE.values() for field in fields if field in used):
            values[field] = _picked(field) if field in OPTIONS else st.session_state[key_of(field)].strip()
            slots[field] = more
        grid = st.grid(3, min_column_width=180)
        for group, fields in RARE.items():
            if not (shown := [field for field in fields if field in used and _is_about(field, wanted)]):
                continue
            with st.container(gap="xxsmall"):
                st.markdown(f"**{group}**")
                grid = st.grid(3, min_column_width=180)
            for field in shown:
                default = " or ".join(map(_default_text, defaults.get(field, ())))
                with grid.cell(), _field(slots, field):
                    if field not in OPTIONS:
                        values[field] = typed(field, placeholder=default or "automatic")
                        continue
                    values[field] = picks(field, names=_OPTION_WORDS)
                    if default and not values[field]:
                        st.caption(f"By default: {escape(default)}")
        for name, (least, most) in EXECUTION.items():
            label, words = _EXECUTION_WORDS[name]
            numbers[name] = st.session_state[key_of(name)]
            if wanted not in f"{label} {words}".casefold():
                continue
            with grid.cell():
                numbers[name] = st.number_input(
                    label, least, most, step=1, key=key_of(name), help=words, persist_state="session"
                )
    return values, numbers


def _is_about(field: str, wanted: str) -> bool:
    """Whether these words stand in the field's name, its title, its options or its description."""
    help_ = FIELD_HELP[field]
    text = " ".join([field, help_.label, help_.description, *OPTIONS.get(field, ())]).casefold()
    return all(word in text for word in wanted.split())


def _default_text(value: Any) -> str:
    return " + ".join(value) if isinstance(value, tuple) else value_text(value)


def anchor(field: str) -> str:
    """The id of the place for a field's error."""
    return f"problem-{field}"


def show_error(slot: DeltaGenerator, field: str, sentence: str) -> None:
    """Draws a field's error, to which the plan links; without a sentence only the place."""
    with slot.container(gap=None):
        st.html(f'<span id="{anchor(field)}" tabindex="-1" style="scroll-margin-top: 9rem"></span>')
        if sentence:
            field_problem(sentence)
