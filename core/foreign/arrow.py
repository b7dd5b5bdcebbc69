"""Arrow, Feather and Parquet files: their batches, and the proof that reading them ends well.

`check` has a child process (`core.foreign.child`) prove each content once; what is proved is remembered by
its hash.
"""

from __future__ import annotations

import hashlib
import re
from collections.abc import Iterator
from contextlib import suppress
from typing import TYPE_CHECKING
from zoneinfo import ZoneInfo, ZoneInfoNotFoundError

from core.errors import NoRoom
from core.foreign import child
from core.foreign.child import Refused
from core.paths import cache_dir, written_whole
from core.plain_text import shortened

if TYPE_CHECKING:
    import pyarrow as pa

PARQUET = "Parquet"
"""The one kind of file that is not Arrow's own."""
ROWS_AT_ONCE = 1000
"""Rows that are Python's at a time: a batch may be the whole file."""
MOST_UNPACKED = 1_000_000_000
"""The most bytes of a file's values: some kilobytes of Parquet may unpack to more than any memory."""
MOST_ROWS = 20_000_000
MOST_VALUES = 100_000
"""The most values of a list: as many as a line may have characters."""
MOST_AT_ONCE = 200_000_000
"""The most bytes of ROWS_AT_ONCE rows, their references counted."""
_POINTER = 8


def batches(content: bytes, kind: str) -> tuple[pa.Schema, Iterator[pa.RecordBatch]]:
    """The schema of a file and its batches, of at most ROWS_AT_ONCE rows. Raises as pyarrow does."""
    import pyarrow as pa
    import pyarrow.parquet as pq

    source = pa.BufferReader(content)
    if kind == PARQUET:
        file = pq.ParquetFile(source)
        return file.schema_arrow, file.iter_batches(batch_size=ROWS_AT_ONCE)
    if content.startswith(b"ARROW1"):
        whole = pa.ipc.open_file(source)
        batches: Iterator[pa.RecordBatch] = map(whole.get_batch, range(whole.num_record_batches))
        schema = whole.schema
    else:
        stream = pa.ipc.open_stream(source)
        batches, schema = iter(stream), stream.schema
    parts = (
        batch.slice(start, ROWS_AT_ONCE)
        for batch in batches
        for start in range(0, batch.num_rows, ROWS_AT_ONCE)
    )
    return schema, parts


def check(content: bytes, kind: str) -> None:
    """Has a child process read the whole content, unless one has before.

    Raises Refused where it is damaged, or unpacks to more than is read.
    """
    import pyarrow as pa

    digest = hashlib.sha256(f"{pa.__version__}\0{kind}\0{MOST_UNPACKED}\0".encode())
    digest.update(content)
    key = digest.hexdigest()[:32]
    proved = cache_dir("proved") / key
    if proved.exists():
        return
    if key not in _refusals:
        try:
            child.run("arrow", {"kind": kind}, content)
        except Refused as refused:
            while len(_refusals) >= _MOST_REFUSALS:
                _refusals.pop(next(iter(_refusals)))
            _refusals[key] = refused.reason
    if key in _refusals:
        raise Refused(_refusals[key])
    # A disk that is full or read-only keeps nobody from reading.
    with suppress(OSError, NoRoom), written_whole(proved, 0, "What was proved of a file") as beside:
        beside.touch()


_MOST_REFUSALS = 100
_refusals: dict[str, str] = {}
"""The reasons of this process's refusals: a page asks often, and a child may take a minute to fail."""


def prove(content: bytes, kind: str) -> None:
    """Reads all of a file, as its reader will. Raises Refused, or as pyarrow; may crash."""
    _, parts = batches(content, kind)
    rows = unpacked = 0
    for part in parts:
        check_part(part, rows)
        rows += part.num_rows
        unpacked += part.nbytes
        if rows > MOST_ROWS:
            raise Refused(f"it has more than {MOST_ROWS:,} rows, which is the most")
        if unpacked > MOST_UNPACKED:
            raise Refused(f"unpacked it holds more than {MOST_UNPACKED / 1e6:,.0f} MB, which is the most")


def check_part(part: pa.RecordBatch, before: int) -> None:
    """Reads rows with `before` rows before them. Raises Refused, or as pyarrow; may crash."""
    import pyarrow as pa
    import pyarrow.compute as pc

    part.validate(full=True)
    bytes_at_once = part.nbytes
    for name, column in zip(part.schema.names, part.columns, strict=True):
        if pa.types.is_list(column.type) or pa.types.is_large_list(column.type):
            lengths = pc.list_value_length(column)
            if (longest := pc.max(lengths).as_py() or 0) > MOST_VALUES:
                row = before + 1 + pc.index(lengths, longest).as_py()
                raise Refused(
                    f"row {row}: {shortened(name)} has {longest:,} values, and the most is {MOST_VALUES:,}"
                )
            bytes_at_once += _POINTER * (pc.sum(lengths).as_py() or 0)
        if pa.types.is_timestamp(column.type) and column.type.tz and not _is_zone(column.type.tz):
            raise Refused(
                f"{shortened(name)} has times of the zone '{shortened(column.type.tz)}', which is unknown"
            )
        if not is_plain(column.type):
            column.to_pylist()
    if bytes_at_once > MOST_AT_ONCE:
        raise Refused(
            f"rows {before + 1} to {before + part.num_rows} hold more than {MOST_AT_ONCE / 1e6:,.0f} MB"
        )


def _is_zone(name: str) -> bool:
    if re.fullmatch(r"[+-]\d\d:\d\d", name):
        return True
    try:
        ZoneInfo(name)
    except (ZoneInfoNotFoundError, ValueError, OSError):
        return False
    return True


def is_plain(type_: pa.DataType) -> bool:
    """Whether values of a type are texts, numbers and the like, or lists of these: no larger than in Arrow.

    Of others, the least file may unpack to any size, or have values that Python has not, such as far dates.
    """
    import pyarrow as pa

    types = pa.types
    if types.is_list(type_) or types.is_large_list(type_):
        return not types.is_list(type_.value_type) and is_plain(type_.value_type)
    return any(
        is_kind(type_)
        for is_kind in (
            types.is_string, types.is_large_string, types.is_integer, types.is_floating, types.is_boolean
        )
    )  # fmt: skip
