"""Previews in the form: label counts, a sentence in subwords, and the mapping of labels."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path

import pandas as pd
import streamlit as st

from core.corpora import CorpusSummary, Sentence
from core.encoding.tokenizer import Subword, SubwordReader, load_subword_reader
from core.errors import ConfigError, EncoderError
from core.models.sources import tokenizer_file
from core.mrn.alignments.mapping import (
    MOST_BYTES,
    FittedMapping,
    MappingFile,
    fit,
    keep_mapping,
    parse_mapping,
    read_mapping,
    template,
)
from core.registry import base_name
from core.wording import all_of, number, plural
from dashboard.components.sentence import Lane, Mark, SentenceBlock, sentence
from dashboard.launch.address import MAPPING_KEPT, key_of
from dashboard.launch.views import LabelCounts, label_counts
from dashboard.text import escape, option

_HEIGHT = 246


def show_labels(summary: CorpusSummary, tasks: Sequence[str], colour: Mapping[str, str]) -> None:
    """A tab for each chosen task: its labels, their counts as numbers and bars, and what is odd."""
    views = [label_counts(summary, task) for task in summary.tasks if task.name in tasks]
    if not views:
        st.caption("None chosen.")
        return
    names = [f':color[●]{{foreground="{colour[view.task]}"}} {escape(view.task)}' for view in views]
    for tab, view in zip(st.tabs(names), views, strict=True):
        with tab:
            _told(view)
            _table(view)


def _told(view: LabelCounts) -> None:
    count = len(view.rows)
    what = f"{plural(count, 'kind')} of spans, which cover" if view.spans else f"{plural(count, 'label')} on"
    words = f"{what} {_share(view.labelled)} of the training words."
    if view.annotated < 0.995:
        words += f" Annotated on {_share(view.annotated)} of them."
    if odd := view.unseen:
        few = all_of([escape(label) for label in odd[:4]] + ([f"{len(odd) - 4} more"] if odd[4:] else []))
        words += f" :orange[:material/warning: Training never shows {few}.]"
    st.caption(words)


def _table(view: LabelCounts) -> None:
    frame = pd.DataFrame(
        {
            "Label": row.label,
            **{split.capitalize(): row.counts.get(split, 0) for split in view.splits},
            "": f"only in {all_of(row.only_in)}" if row.only_in else "",
        }
        for row in view.rows
    )
    if not any(frame[""]):
        del frame[""]
    unit = "Spans" if view.spans else "Words"
    st.dataframe(
        frame,
        hide_index=True,
        height="content" if len(frame) <= 6 else _HEIGHT,
        column_config={
            "Train": st.column_config.ProgressColumn(
                "Train",
                help=f"{unit} of the training split",
                format="localized",
                max_value=max(1, int(frame["Train"].max())),
            ),
            **{
                split.capitalize(): st.column_config.NumberColumn(
                    format="localized", help=f"{unit} of {split}"
                )
                for split in view.splits
                if split != "train"
            },
        },
        key=f"launch_labels_{view.task}",
        alt=f"How often each label of {view.task} stands in each split",
    )


def _share(share: float) -> str:
    return f"{100 * share:.1f}".removesuffix(".0") + "%"


IGNORED_LABEL = "−100"
"""What stands where a subword has no label, as in the loss of PyTorch."""

_MOST_WORDS = 60
_GREY = "#8A939B"


def show_subwords(
    encoders: Sequence[str], summary: CorpusSummary, tasks: Sequence[str], colour: Mapping[str, str]
) -> None:
    """A fold that reads a tokenizer only once it is opened."""
    names = list(dict.fromkeys(map(base_name, encoders)))
    if not names or not summary.samples:
        return
    with st.expander(
        "Subwords: a sentence as the encoder reads it",
        icon=":material/segment:",
        key="launch_subwords",
        on_change="rerun",
    ) as fold:
        if fold.open:
            _opened(names, summary, tasks, colour)


def _opened(
    names: Sequence[str], summary: CorpusSummary, tasks: Sequence[str], colour: Mapping[str, str]
) -> None:
    with st.container(horizontal=True):
        name = names[0]
        if len(names) > 1:
            name = _choice("Encoder", "launch_subwords_encoder", names, name)
        try:
            file = tokenizer_file(name)
            reader = _reader(str(file), file.stat().st_mtime_ns)
        except EncoderError as error:
            st.markdown(f":orange[:material/info:] {escape(error)}")
            return
        samples = [reader.read(one.tokens[:_MOST_WORDS]) for one in summary.samples]
        numbers = [str(place + 1) for place in range(len(samples))]
        number = _choice("Sentence", "launch_subwords_sentence", numbers, numbers[_most_split(samples)])
    chosen, read = summary.samples[int(number) - 1], samples[int(number) - 1]
    sentence([subword_block(read, chosen, tasks, colour)], key="launch_subwords_drawn", small=True)
    words = min(len(chosen.tokens), _MOST_WORDS)
    told = plural(words, "word")
    if words < len(chosen.tokens):
        told = f"The first {told} of {len(chosen.tokens):,}"
    st.caption(
        f"{told}, {plural(len(read), 'subword')}. The first subword of a word carries its label. The others "
        f"have {IGNORED_LABEL}, which counts in no loss. The mask is 1 for what is read, 0 for padding."
    )


def _most_split(samples: Sequence[Sequence[Subword]]) -> int:
    """The place of the sentence with the most subwords beyond one per word: it shows what splitting does."""
    return max(range(len(samples)), key=lambda place: sum(not one.is_first for one in samples[place]))


def _choice(label: str, key: str, options: Sequence[str], default: str) -> str:
    if st.session_state.get(key) not in options:
        st.session_state[key] = default
    return str(st.segmented_control(label, options, required=True, key=key, format_func=option))


@st.cache_resource(max_entries=4, show_spinner=False)
def _reader(file: str, changed: int) -> SubwordReader:
    """The tokenizer of that file, read anew when the file changes."""
    del changed
    return load_subword_reader(Path(file))


def subword_block(
    read: Sequence[Subword], chosen: Sentence, tasks: Sequence[str], colour: Mapping[str, str]
) -> SentenceBlock:
    """Subwords with their lanes: ids, attention mask, and the labels of each task."""
    lanes = [
        Lane("id", _GREY, "plain", tuple(Mark(str(one.id), "input id", quiet=True) for one in read)),
        Lane("mask", _GREY, "plain", tuple(Mark("1", "attention mask", quiet=True) for _ in read)),
    ]
    for task in tasks:
        if task in chosen.labels:
            marks = tuple(_label(one, chosen.labels[task]) for one in read)
            lanes.append(Lane(task, colour.get(task, _GREY), "plain", marks))
    return SentenceBlock(tuple(one.text for one in read), tuple(lanes))


def _label(read: Subword, labels: Sequence[str]) -> Mark:
    if read.word is None or not read.is_first:
        return Mark(IGNORED_LABEL, "no label", quiet=True)
    return Mark(labels[read.word], labels[read.word])


_MOST_ROWS = 8


def choose_mapping(labels: Mapping[str, Sequence[str]]) -> str:
    """Draws the widgets; returns the alignment, `mapping:FILE`.

    `labels` are those of each chosen task, empty where the corpus has not been looked into. Raises
    ConfigError where there is no file yet or it cannot be used.
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
        help="All labels of the chosen tasks, each with a general label of its own name: change that column."
        if labels
        else "Choose tasks of a corpus that has been looked into; the template then holds their labels.",
    )
    if file is not None:
        # The uploader forgets its file on another page; what is kept is found there again.
        st.session_state.pop(MAPPING_KEPT, None)
        st.session_state[MAPPING_KEPT] = str(keep_mapping(parse_mapping(file.getvalue(), file.name)))
    kept: str | None = st.session_state.get(MAPPING_KEPT)
    if kept is None:
        raise ConfigError("alignment", "Upload the CSV file of the mapping; the template is a beginning.")
    mapping = read_mapping(kept)
    known = labels
    if not known:  # as the file itself names them
        by_task: dict[str, dict[str, None]] = {}
        for row in mapping.rows:
            by_task.setdefault(row.task, {})[row.label] = None
        known = {task: list(names) for task, names in by_task.items()}
    _preview(mapping, fit(mapping, tuple(known), tuple(known.values())), tuple(known))
    return f"mapping:{kept}"


def _preview(mapping: MappingFile, fitted: FittedMapping, tasks: Sequence[str]) -> None:
    """A row for each general label, a column for each task: the labels that make it, with their weights."""
    told: dict[tuple[str, str], list[str]] = {}
    for (task, label, general), weight in fitted.weights.items():
        told.setdefault((general, task), []).append(label if weight == 1 else f"{number(weight)} {label}")
    st.caption(f"**{escape(mapping.name)}**, {len(fitted.owners)} general labels")
    st.dataframe(
        [
            {"General label": general} | {task: " + ".join(told.get((general, task), ())) for task in tasks}
            for general in fitted.owners
        ],
        hide_index=True,
        height="content" if len(fitted.owners) <= _MOST_ROWS else 320,
        key="launch_mapping_table",
        alt="General labels and the labels of each task that make them",
    )
