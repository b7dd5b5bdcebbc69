"""The reading report of a corpus by its layout: each column with its role, examples, notes and doubts."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace

from core.corpora.layout.doubts import with_doubts_on_words
from core.corpora.layout.fields import Layout
from core.corpora.layout.gold import untrained_doubt
from core.corpora.layout.rules import NO_ROW
from core.corpora.reading import ColumnReading, values_shown
from core.corpora.types import Corpus, Split


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
