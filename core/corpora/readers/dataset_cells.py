"""Tables of `datasets` whose cells hold lists, or spans of characters: as tables of words and labels."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from core.corpora.layout.cells import Cells, cells_of
from core.corpora.layout.column_names import text_columns
from core.corpora.readers.char_spans import Counted, sentences_of, span_notes
from core.corpora.types import Split
from core.errors import CorpusError

if TYPE_CHECKING:
    from datasets import Dataset

Tables = dict[Split, tuple[str, "Dataset"]]
"""By split, its name in the dataset and its rows."""


def unpacked(name: str, tables: Tables, most_seen: int) -> tuple[Tables, list[str]]:
    """The tables with lists in place of texts that hold some, and words with labels in place of spans.

    The first `most_seen` rows of training tell. Also returns notes on spans. Raises CorpusError where a cell
    holds no list.
    """
    _, training = tables["train"]
    single = [column for column, feature in training.features.items() if _is_text(feature)]
    columns = [*single, *(column for column, feature in training.features.items() if _holds_objects(feature))]
    lists = [column for column, feature in training.features.items() if _is_text(_item(feature))]
    columns += lists if len(lists) == 1 else []  # of several, one has the words
    seen = training.select_columns(columns)[:most_seen] if columns else {}
    rows = [dict(zip(seen, values, strict=True)) for values in zip(*seen.values(), strict=True)]
    try:
        texts = text_columns(single)
    except ValueError:
        texts = ()
    if (cells := cells_of(rows, texts)) is None:
        return tables, []
    counts: dict[Split, Counter[Counted]] = {split: Counter() for split in tables}
    tables = {
        split: (title, _unpacked(f"{name}, {title}", table, cells, counts[split]))
        for split, (title, table) in tables.items()
    }
    return tables, span_notes(counts)


def _is_text(feature: Any) -> bool:
    return str(getattr(feature, "dtype", "")) in ("string", "large_string")


def _holds_objects(feature: Any) -> bool:
    """Whether the values of a column are lists of objects, as spans are."""
    return isinstance(_item(feature), dict)


def _item(feature: Any) -> Any:
    """The feature of the items of a list; None of a single value."""
    return feature[0] if isinstance(feature, list) else getattr(feature, "feature", None)


def _unpacked(location: str, table: Dataset, cells: Cells, counts: Counter[Counted]) -> Dataset:
    from datasets import Dataset

    if missing := [column for column in cells.columns if column not in table.column_names]:
        raise CorpusError(f"{location} has no column {missing[0]}, which that of training has.")
    records: list[Mapping[str, Any]] = []
    for number, row in enumerate(table.select_columns(list(cells.columns)), start=1):
        try:
            record = cells.record(row)
            records += sentences_of(record, counts) if cells.spans else [record]
        except ValueError as error:
            raise CorpusError(f"{location}, row {number}: {error}") from None
    made = Dataset.from_list([dict(record) for record in records])
    others: Sequence[str] = [] if cells.spans else [c for c in table.column_names if c not in cells.columns]
    for column in others:
        made = made.add_column(column, table[column][:], feature=table.features[column])
    return made
