"""What a stranger's export may be: each case spoils a copy of a good one and has the words that refuse it."""

from __future__ import annotations

import hashlib
import json
import math
import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq

from core.checkpoints.sealed import digest_of, seal

Spoil = Callable[[Path], object]


def _list(folder: Path, name: str, size: int, digest: str = "0" * 64) -> None:
    _relist(folder, lambda files: files | {name: {"size": size, "sha256": digest}})


def _relist(folder: Path, change: Callable[[dict[str, Any]], dict[str, Any]]) -> None:
    """Changes the list, and its own hash."""
    manifest = json.loads((folder / "manifest.json").read_text())
    del manifest["sha256"]
    manifest["files"] = change(manifest["files"])
    (folder / "manifest.json").write_text(json.dumps(manifest | {"sha256": digest_of(manifest)}))


def _write(folder: Path, name: str, content: bytes) -> None:
    """Writes a file and says so in the list, as someone would who means it."""
    (folder / name).parent.mkdir(parents=True, exist_ok=True)
    (folder / name).write_bytes(content)
    _list(folder, name, len(content), hashlib.sha256(content).hexdigest())


def _written(name: str, content: bytes) -> Spoil:
    return lambda folder: _write(folder, name, content)


def _edited(name: str, change: Callable[[dict[str, Any]], object]) -> Spoil:
    def spoil(folder: Path) -> None:
        content = json.loads((folder / name).read_text())
        change(content)
        _write(folder, name, json.dumps(content).encode())

    return spoil


def _set(path: str, value: Any) -> Spoil:
    """Sets a value of run.json: `facts.tasks.0.name`, say."""

    def change(run: Any) -> None:
        *parts, last = path.split(".")
        for part in parts:
            run = run[int(part) if part.isdigit() else part]
        run[last] = value

    return _edited("run.json", change)


def _table(name: str, change: Callable[[pa.Table], pa.Table], **options: Any) -> Spoil:
    def spoil(folder: Path) -> None:
        pq.write_table(change(pq.read_table(folder / name)), folder / "made.parquet", **options)
        _write(folder, name, (folder / "made.parquet").read_bytes())

    return spoil


def _column(name: str, column: str, value: Any) -> Spoil:
    def change(table: pa.Table) -> pa.Table:
        field = table.schema.field(column)
        values = pa.array([value] * len(table), type=field.type, from_pandas=False)  # NaN is no missing value
        return table.set_column(table.schema.get_field_index(column), field, values)

    return _table(name, change)


def _not_text(table: pa.Table) -> pa.Table:
    """A column of texts that are no UTF-8, which nothing checks when it is written."""
    bytes_ = pa.array([b"\xff\xfe"] * len(table), pa.binary())
    broken = pa.Array.from_buffers(pa.string(), len(table), bytes_.buffers())
    return table.set_column(table.schema.get_field_index("task"), "task", broken)


def _large(table: pa.Table) -> pa.Table:
    """Five thousand rows with one text of a megabyte, which the file has once."""
    rows = table.take([0] * 5000)
    texts = pa.DictionaryArray.from_arrays(pa.array([0] * 5000, pa.int32()), pa.array(["x" * 10**6]))
    return rows.set_column(rows.schema.get_field_index("report"), "report", texts).replace_schema_metadata()


def _in_zone(table: pa.Table) -> pa.Table:
    zone = pa.array([2**62] * len(table), pa.timestamp("ns", tz="Mars/Olympus"))
    return table.set_column(table.schema.get_field_index("seconds"), "seconds", zone)


def _twice(name: str) -> Spoil:
    return _table(name, lambda table: pa.concat_tables([table, table]))


def _flipped(name: str) -> Spoil:
    def spoil(folder: Path) -> None:
        content = bytearray((folder / name).read_bytes())
        content[-1] ^= 1
        (folder / name).write_bytes(content)

    return spoil


def _link(folder: Path) -> None:
    (folder / "checkpoint" / "more.json").symlink_to(folder / "run.json")
    _list(folder, "checkpoint/more.json", 2)


def _linked_folder(folder: Path) -> None:
    (folder / "pos").rename(folder.parent / "aside")
    (folder / "pos").symlink_to(folder.parent / "aside")


def _pipe(name: str) -> Spoil:
    def spoil(folder: Path) -> None:
        (folder / name).unlink()
        os.mkfifo(folder / name)

    return spoil


def _grown(name: str, size: int) -> Spoil:
    def spoil(folder: Path) -> None:
        with (folder / name).open("r+b") as file:
            file.truncate(size)  # a sparse file takes no room
        _list(folder, name, size)

    return spoil


def _other_encoder(folder: Path) -> None:
    encoder = "checkpoint/encoder/"
    _relist(folder, lambda files: {name: files[name] for name in files if not name.startswith(encoder)})
    _edited("checkpoint/run.json", lambda run: run["config"].update(encoder="someone/else"))(folder)


_CONFIG = "checkpoint/encoder/config.json"


FILES: list[tuple[Spoil, str]] = [
    (lambda folder: (folder / "manifest.json").unlink(), "not an export"),
    (lambda folder: (folder / "manifest.json").write_text("[" * 100_000), "is not as it was written"),
    (lambda folder: (folder / "manifest.json").write_text('{"icons": []}'), "is not as it was written"),
    (lambda folder: seal(folder, {}, 0, lambda new: (new / "a.json").touch()), "not one of an export"),
    (_flipped("checkpoint/weights.safetensors"), "weights.safetensors is not as it was written"),
    (_flipped("pos/model.safetensors"), "pos/model.safetensors is not as it was written"),
    (lambda folder: (folder / "metrics.parquet").write_bytes(b"PAR1"), "metrics.parquet is not as it was"),
    (lambda folder: (folder / "scores.parquet").unlink(), "scores.parquet is missing"),
    (lambda folder: _relist(folder, lambda files: {}), "it has no run.json"),
    (lambda folder: _list(folder, "checkpoint/../../outside.json", 2), "leads out of the folder"),
    (lambda folder: _list(folder, "/etc/hostname.json", 2), "leads out of the folder"),
    (lambda folder: _list(folder, "a\0b.json", 2), "null"),
    (lambda folder: _list(folder, "manifest.json", 2), "File exists"),
    (_link, "is a link"),
    (_linked_folder, "is a link"),
    (_pipe("pos/config.json"), "pos/config.json is no plain file"),
    (_pipe("manifest.json"), "manifest.json is no plain file"),
    (_written("checkpoint/pytorch_model.bin", b"\x80\x04."), "may be a pickle"),
    (lambda folder: (folder / "pos" / "pytorch_model.bin").write_bytes(b"\x80\x04."), "may be a pickle"),
    (_written("checkpoint/encoder/modeling.py", b"print()"), "a kind of file that no export holds"),
    (_grown("run.json", 300 * 1024**2), "more than such a file"),
    (_grown("pos/model.safetensors", 900 * 1024**3), "are free"),
    (_edited(_CONFIG, lambda config: config.update(auto_map={"AutoModel": "x.Y"})), "Python code of its"),
    (_edited(_CONFIG, lambda config: config.update(num_attention_heads=0)), "cannot be loaded"),
    (_other_encoder, "lacks the encoder someone/else"),
    (_edited("checkpoint/run.json", lambda run: run["tasks"][0]["labels"].reverse()), "other tasks or"),
]
RUN: list[tuple[Spoil, str]] = [
    (_set("format", 2), "a newer MRN Lab made it"),
    (_set("config.epochs", -3), "epochs"),
    (_set("note", "a\0b"), "the character 0"),
    (_set("started_at", "yesterday"), "started_at"),
    (_set("created_at", "0001-01-01T00:00:00+23:59"), "created_at must be at least 2000-01-01"),
    (_set("started_at", "2000-01-02T00:00:00Z"), "started before it was made"),
    (_set("finished_at", "2000-01-02T00:00:00Z"), "ended before it was started"),
    (_set("step", 10**6), "step 1000000 is more than"),
    (_set("best_epoch", 900), "best_epoch 900 is more than 2"),
    (_set("epoch", 1e15), "epoch 1000000000000000.0 is more than 2"),
    (_set("epoch", math.nan), "NaN is no number of a run"),
    (_set("tags", ["x"] * 2000), "tags"),
    (_set("history.0.kind", "exploded"), r"history\.0\.kind"),
    (_set("history.0.time", "0001-01-01T00:00:00+23:59"), r"history\.0\.time must be at least 2000-01-01"),
    (_set("folders.pos", "../../etc"), r"folders\.pos"),
    (_set("facts.tasks", "all of them"), "tasks"),
    (_set("facts.total_steps", -1), "below zero"),
    (_set("facts.total_steps", 10**400), "no number of a run"),
    (_set("facts.total_steps", "12"), "total_steps"),
    (_set("facts.cooccurrence", [[0.5, 0.5]]), "no square table"),
    (_set("facts.label_owners", [["pos"]]), "not an owner for each"),
    (_set("facts.tasks.0.name", "chunk"), "facts are of the tasks"),
    (_set("facts.tasks.0.train_tokens", -5), "below zero"),
]
TABLES: list[tuple[Spoil, str]] = [
    (_table("scores.parquet", _not_text), "scores.parquet is not .*cannot be read .*UTF-?8"),
    (
        _table("scores.parquet", _large, store_schema=False),
        "unpacks to more than is read: at most 1,073",
    ),
    (_table("metrics.parquet", _in_zone), "columns are not those"),
    (_written("metrics.parquet", b"PAR1 but not really PAR1"), "cannot be read"),
    (_table("metrics.parquet", lambda table: table.take(list(range(len(table)))[::-1])), "not in order"),
    (_column("metrics.parquet", "seconds", -1.0), "seconds cannot be -1.0"),
    (_column("metrics.parquet", "epoch", math.nan), "epoch cannot be nan"),
    (_column("metrics.parquet", "split", "test"), "split cannot be 'test'"),
    (_table("scores.parquet", lambda table: table.drop_columns("score")), "columns"),
    (_column("scores.parquet", "split", "all"), "split cannot be 'all'"),
    (_column("scores.parquet", "task", 201 * "x"), "task cannot be 'xxx"),
    (_column("scores.parquet", "task", "a\0b"), "task cannot be"),
    (_column("scores.parquet", "task", None), "a value of task is missing"),
    (_column("scores.parquet", "tokens", 2**40), "tokens cannot be 1099511627776"),
    (_column("scores.parquet", "accuracy", 1.5), "accuracy cannot be 1.5"),
    (_column("scores.parquet", "f1_conll", math.inf), "f1_conll cannot be inf"),
    (_column("scores.parquet", "score", math.nan), "score cannot be nan"),
    (_column("scores.parquet", "report", '{"NN": {"f1": NaN}}'), "scores.parquet is not"),
    (_column("scores.parquet", "report", "[1]"), r"it must have named values, not \[1\]"),
    (_column("scores.parquet", "epoch", 99), "after the last"),
    (_column("scores.parquet", "task", "chunk"), "two scores|has not"),
    (_twice("scores.parquet"), "two scores on one split"),
    (_column("predictions.parquet", "gold", [None]), "a value of gold is missing"),
    (_column("predictions.parquet", "gold", ["O"]), "a predicted label for each"),
    (_column("snapshots.parquet", "step", -1), "step cannot be -1"),
    (_column("snapshots.parquet", "epoch", math.inf), "epoch cannot be inf"),
    (_column("snapshots.parquet", "features", 2**30), "covariances"),
    (_column("snapshots.parquet", "labels", 2), "covariances"),
    (_twice("snapshots.parquet"), "not in order"),
]
