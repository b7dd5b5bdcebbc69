"""Parquet tables of numbers and texts that somebody else wrote: their sizes are known before texts are held.

`unreadable_table` has a child process (`core.foreign.child`) read them first, so that no crash ends this one.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from core.foreign import child
from core.foreign.child import Refused, reason_of

if TYPE_CHECKING:
    import pyarrow as pa
    import pyarrow.parquet as pq

_ROWS_AT_ONCE = 10_000


@dataclass(frozen=True)
class Limits:
    """The most bytes of a table's values, and the most values of one of its columns."""

    bytes: int
    values: int

    @property
    def exceeded(self) -> str:
        return f"it unpacks to more than is read: at most {self.bytes:,} bytes and {self.values:,} values"


def unreadable_table(paths: Sequence[Path], limits: Limits) -> tuple[str, str] | None:
    """The first table that cannot be read, by its name, and why. None where a child process could read all.

    Where reading ended the process, the name is "a table".
    """
    given = {"paths": list(map(str, paths)), "most_bytes": limits.bytes, "most_values": limits.values}
    try:
        wrong = child.run("tables", given, size=sum(path.stat().st_size for path in paths))
    except Refused as refused:
        return "a table", refused.reason
    return None if wrong is None else (wrong[0], wrong[1])


def prove(paths: Sequence[str], most_bytes: int, most_values: int) -> tuple[str, str] | None:
    """`unreadable_table` in this process; may crash."""
    import pyarrow as pa

    limits = Limits(most_bytes, most_values)
    for path in map(Path, paths):
        try:
            with _opened(path, limits) as file:
                for _ in _batches(file, limits):
                    pass
        except Refused as refused:
            return path.name, refused.reason
        except (pa.ArrowException, OSError, ValueError, OverflowError, SystemError) as error:
            return path.name, f"it cannot be read ({reason_of(error)})"
    return None


def read_table(path: Path, limits: Limits) -> pa.Table:
    """A table, with its texts as indices into dictionaries and each row validated.

    A text that the file has once is held once, however many rows have it.

    Raises Refused where all values would exceed the limits, else as pyarrow.
    """
    import pyarrow as pa

    with _opened(path, limits) as file:
        return pa.Table.from_batches(_batches(file, limits), file.schema_arrow)


def _opened(path: Path, limits: Limits) -> pq.ParquetFile:
    """The file, whose texts are read as indices. Raises Refused where it says itself that it is too large."""
    import pyarrow.parquet as pq

    with pq.ParquetFile(path) as file:
        metadata, schema = file.metadata, file.schema
        groups = [metadata.row_group(index) for index in range(metadata.num_row_groups)]
        if metadata.num_rows > limits.values or sum(group.total_byte_size for group in groups) > limits.bytes:
            raise Refused(limits.exceeded)
        parts = [schema.column(index) for index in range(len(schema))]
    return pq.ParquetFile(
        path, read_dictionary=[part.path for part in parts if part.physical_type == "BYTE_ARRAY"]
    )


def _batches(file: pq.ParquetFile, limits: Limits) -> Iterator[pa.RecordBatch]:
    import pyarrow as pa

    values: Counter[int] = Counter()
    size = 0
    for batch in file.iter_batches(batch_size=_ROWS_AT_ONCE):
        batch.validate(full=True)
        for index, column in enumerate(batch.columns):
            items = column.flatten() if pa.types.is_list(column.type) else column
            values[index] += len(items)
            size += _bytes_of(items)
        if size > limits.bytes or max(values.values(), default=0) > limits.values:
            raise Refused(limits.exceeded)
        yield batch


def _bytes_of(values: pa.Array) -> int:
    """The bytes of values, those of a dictionary as often as they occur."""
    import pyarrow as pa
    import pyarrow.compute as pc

    if not pa.types.is_dictionary(values.type):
        return int(values.nbytes)
    lengths = pc.binary_length(values.dictionary).cast(pa.int64())
    return int(pc.sum(lengths.take(values.indices)).as_py() or 0)
