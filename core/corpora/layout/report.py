"""The reading report of a corpus by its layout: each column with its role, examples, notes and doubts."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import replace

from core.corpora.layout.doubts import Labels, label_doubts, untrained_doubt, with_doubts_on_words
from core.corpora.layout.fields import Layout
from core.corpora.layout.gold import WithoutCodes
from core.corpora.layout.rules import NO_ROW
from core.corpora.reading import EXAMPLES, ColumnReading, values_shown
from core.corpora.types import Corpus, Split
from core.tasks.kinds import TaskKind
from core.tasks.packed import Packed, all_counts
from core.tasks.schemes import NO_SPAN, SpanColumn
from core.wording import all_of, plural


def reported(
    corpus: Corpus,
    layout: Layout,
    title: str,
    examples: Mapping[str, Sequence[str]],
    labelled: Mapping[str, Sequence[Split]] | None = None,
    notes: Mapping[str, Sequence[str]] | None = None,
    revision: str = "",
) -> Corpus:
    """The corpus with a reading of each column of its layout, in their order.

    `title` says how the files are laid out. `examples` has values by column; `labelled`, by column that is
    left out, the splits that have labels of it; `notes`, by column of labels, further notes; `revision` is
    that of a dataset.
    """
    (reading,) = corpus.readings
    by_task = {column.name: column for column in reading.columns}
    columns = []
    for column in layout.columns:
        task = layout.tasks.get(column)
        if task is not None and task in by_task:
            named = column if column != task else ""
            more = (notes or {}).get(column, ())
            reading_of = replace(by_task[task], column=named, notes=(*by_task[task].notes, *more))
        else:
            role = "words" if column == layout.words else "text" if column in layout.texts else "skipped"
            reason = layout.left_out.get(column, NO_ROW if column in layout.tasks else "")
            reading_of = ColumnReading(
                column,
                role,
                examples=values_shown(examples.get(column, ())),
                notes=(f"left out: {reason}.",) * bool(reason),
                doubts=(untrained_doubt(list(splits)),) if (splits := (labelled or {}).get(column)) else (),
            )
        columns.append(replace(reading_of, guessed=column in layout.guessed))
    reading = replace(reading, columns=tuple(columns), layout=title, revision=revision)
    reading = with_doubts_on_words(reading, corpus)
    return replace(corpus, readings=(reading,), notes=reading.all_notes)


def read_spans(name: str, written: Mapping[Split, Packed], column: SpanColumn[Split]) -> ColumnReading:
    """The reading of a column of spans, from its labels in the files (`written`) and in IOB2."""
    counts = all_counts(written.values())
    notes = []
    by_scheme: dict[str, list[Split]] = {}
    for split, scheme in column.schemes.items():
        if set(written[split].counts()) - {"O", *NO_SPAN}:
            by_scheme.setdefault(scheme, []).append(split)
    for scheme, splits in by_scheme.items():
        as_written = "" if column.spelling in ("B-X", "X", "B") else f" as {column.spelling}"
        if scheme == "IOB2" and not as_written:
            continue
        where = f"{all_of(splits)} {'split' if len(splits) == 1 else 'splits'}"
        notes.append(f"written in {scheme}{as_written} in the {where}; converted to IOB2.")
    if column.spelling == "B-X" and any(label[0].islower() for label in counts if label):
        notes.append("prefixes in lower case were converted to upper case.")
    if column.spelling == "B":
        notes.append("spans have no type; it is shown as _.")
    if column.spelling == "X":
        notes.append("types stand alone, without B- and I-: adjacent spans of one type count as one.")
    if irregular := _by_split(column.irregular):
        notes.append(
            f"labels that continue no span or leave one open: {irregular}; read as seqeval reads them."
        )
    if unannotated := _by_split(column.unannotated):
        lacking = sum(int(lacks.sum()) for lacks in column.lacking.values())
        notes.append(
            f"words without a label: {unannotated}. {plural(lacking, 'sentence')} with such words "
            f"{'is' if lacking == 1 else 'are'} not annotated for it."
        )
    converted = all_counts(column.labels.values())
    spans = sum(count for label, count in converted.items() if label.startswith("B-"))
    types = sorted({label[2:] for label in converted if label != "O"})
    labels = Counter({label: count for label, count in counts.items() if label not in NO_SPAN})
    return ColumnReading(
        name, "spans", labels=len(labels), spans=spans, examples=_most_frequent(labels), notes=tuple(notes),
        doubts=label_doubts(Labels("spans", labels, name, types, counts, column.spelling)),
    )  # fmt: skip


def read_labels(
    name: str, kind: TaskKind, written: Mapping[Split, Packed], without: WithoutCodes | None = None
) -> ColumnReading:
    """The reading of a column of labels or numbers of this kind. `written` has them by split."""
    counts = all_counts(written.values())
    training, codes, notes = without or ({}, (), ())
    role = "number" if kind.is_number else kind.reads
    return ColumnReading(
        name,
        kind.role,
        labels=None if kind.is_number else len(counts),
        examples=_most_frequent(counts),
        notes=notes,
        doubts=label_doubts(Labels(role, counts, name, counts, training=training, codes=codes)),
    )


def _by_split(counts: Mapping[Split, int]) -> str:
    return ", ".join(f"{count:,} in {split}" for split, count in counts.items() if count)


def _most_frequent(counts: Counter[str]) -> tuple[str, ...]:
    return values_shown([label for label, _ in counts.most_common(EXAMPLES + 1) if label != "O"] or counts)
