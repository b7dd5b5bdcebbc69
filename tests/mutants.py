"""Damaged files of corpora and wrong cards of datasets, drawn by a seed, and what reading each comes to.

`python -m tests.fuzz --files 900 --cards 200` reads them; a few are read by tests/security.
"""

from __future__ import annotations

import json
import os
import random
import resource
import struct
import sys
import time
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from itertools import islice
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any
from unittest.mock import patch

SECRET = "ZXQSECRET"
"""The word of files outside of those that may be read."""
MOST_MEMORY = 2_000_000_000
LIMIT_S = 100.0

_ROWS = [
    {"tokens": ["Ada", "Lovelace", "ran", "."], "ner_tags": ["B-PER", "I-PER", "O", "O"]},
    {"tokens": ["Bo", "saw", "Riga"], "ner_tags": ["B-PER", "O", "B-LOC"]},
] * 20


_WEBANNO = """#FORMAT=WebAnno TSV 3.3
#T_SP=webanno.custom.Ner|identifier|value
#T_RL=webanno.custom.Link|value|BT_webanno.custom.Ner


#Text=Ada Lovelace ran .
1-1\t0-3\tAda\t*[1]\tPER[1]\t_\t_\t
1-2\t4-12\tLovelace\t*[1]|*[2]\tPER[1]|NAME[2]\t_\t_\t
1-3\t13-16\tran\t_\t_\tx\t1-1[1_0]\t
1-4\t17-18\t.\t_\t_\t_\t_\t

#Text=Bo sees Riga
2-1\t19-21\tBo\t*\tPER\t_\t_\t
2-1.1\t19-20\tB\t_\t_\t_\t_\t
2-2\t22-26\tsees\t_\t_\t_\t_\t
2-3\t27-31\tRiga\t*\tLOC\\_x\t_\t_\t
"""


@dataclass(frozen=True)
class Mutant:
    """A folder to be read: its files by name; `is_copy` where it is one of a dataset."""

    what: str
    files: Mapping[str, bytes]
    is_copy: bool = False


def _written(write: Callable[[Any, str], None]) -> bytes:
    with TemporaryDirectory() as folder:
        path = str(Path(folder) / "file")
        write(_table(), path)
        return Path(path).read_bytes()


def _table() -> Any:
    import pyarrow as pa

    return pa.Table.from_pylist(_ROWS)


def _stream(table: Any, path: str, *, as_file: bool) -> None:
    import pyarrow as pa

    make = pa.ipc.new_file if as_file else pa.ipc.new_stream
    with make(path, table.schema) as writer:
        writer.write_table(table, max_chunksize=7)


def seeds() -> dict[str, bytes]:
    """Well-formed training files by name and format."""
    import pyarrow.feather as feather
    import pyarrow.parquet as pq

    spans = [{"start": 0, "end": 3, "label": "PER"}]
    studio = {
        "id": 1,
        "data": {"text": "Ada ran ."},
        "annotations": [
            {
                "result": [
                    {"type": "labels", "value": {"start": 0, "end": 3, "text": "Ada", "labels": ["PER"]}}
                ]
            }
        ],
    }
    words = "sent_id,word,ner\n1,Ada,B-PER\n1,ran,O\n2,Bo,B-PER\n"
    return {
        "arrow-file train.arrow": _written(lambda table, path: _stream(table, path, as_file=True)),
        "arrow-stream train.arrow": _written(lambda table, path: _stream(table, path, as_file=False)),
        "feather train.feather": _written(
            lambda table, path: feather.write_feather(table, path, compression="uncompressed")
        ),
        "feather-lz4 train.feather": _written(
            lambda table, path: feather.write_feather(table, path, compression="lz4")
        ),
        "parquet train.parquet": _written(lambda table, path: pq.write_table(table, path)),
        "parquet-plain train.parquet": _written(
            lambda table, path: pq.write_table(table, path, compression="none", use_dictionary=False)
        ),
        "json train.json": json.dumps(_ROWS).encode(),
        "jsonl train.jsonl": "\n".join(map(json.dumps, _ROWS)).encode(),
        "csv train.csv": words.encode() * 1,
        "csv-texts train.csv": b"text,label\nit works,yes\nit fails,no\n" * 1,
        "doccano train.jsonl": json.dumps({"text": "Ada ran .", "label": [[0, 3, "PER"]]}).encode() + b"\n",
        "prodigy train.jsonl": json.dumps({"text": "Ada ran .", "spans": spans}).encode() + b"\n",
        "label-studio train.json": json.dumps([studio, studio]).encode(),
    }


_NUMBERS = (0, 1, -1, 127, 255, 2**15, 2**31 - 1, -(2**31), 2**32 - 1, 2**40, 2**63 - 1)
_TOKENS = (
    b"null", b"[]", b"{}", b"-1", b"1e999", b"NaN", b"[" * 2000, b'{"a":' * 2000, b'"', b",", b"\n", b"\0",
    b"\xff",
    b"\xe2\x80\xa8", b"\r", b"true", b"9" * 400, b'"\\ud800"', b"\xef\xbb\xbf", b"\t", b"2026-99-99",
    b"\x1f\x8b",
)  # fmt: skip


def mutated(draw: random.Random, content: bytes) -> bytes:
    """The content with one to four changes: of bytes, numbers, parts and ends."""
    data = bytearray(content)
    for _ in range(draw.choice((1, 1, 2, 4))):
        place = draw.randrange(len(data) or 1)
        end = min(len(data), place + draw.choice((1, 4, 8, 64, 1000)))
        match draw.randrange(8):
            case 0:
                data[place:end] = bytes(draw.randrange(256) for _ in range(end - place))
            case 1 if data:
                data[place % len(data)] ^= 1 << draw.randrange(8)
            case 2:
                number = draw.choice(_NUMBERS)
                packed = struct.pack("<q", number if number < 2**63 else 0)
                width = draw.choice((1, 2, 4, 8))
                place -= place % width
                data[place : place + width] = packed[:width]
            case 3:
                del data[place:end]
            case 4:
                data[place:place] = data[place:end] * draw.choice((1, 2, 50))
            case 5:
                del data[place:]
            case 6:
                data[place:end] = bytes(end - place)
            case _:
                data[place : place + draw.choice((0, 1, 4))] = draw.choice(_TOKENS)
    return bytes(data)


def files(seed: int) -> Iterator[Mutant]:
    """Folders with a damaged training file, without end."""
    draw, of_webanno = random.Random(seed), random.Random(seed)
    by_name = seeds()
    while True:
        for title, content in by_name.items():
            what, name = title.split()
            other = name.replace("train", "test")
            # Half of the time as a copy of a dataset, whose files `datasets` reads: it knows fewer formats.
            is_copy = "feather" not in what and draw.random() < 0.2
            yield Mutant(what, {name: mutated(draw, content), other: content}, is_copy)
        content = _WEBANNO.encode()
        yield Mutant("webanno", {"train.tsv": mutated(of_webanno, content), "test.tsv": content})


_VALUES: tuple[Any, ...] = (
    None, 3, -1, "", "x", [], [3], {}, {"a": 1}, True, 1e308, "train.csv", ["train.csv"], "*", "**",
    "../*", "/**/train.csv",
    "OUTSIDE/train.csv", "OUTSIDE", "../outside/train.csv", "http://localhost:1/train.csv", "zip://a::OUTSIDE/a.zip",
    {"split": "train", "path": "OUTSIDE/train.csv"}, [{"split": "train", "path": ["OUTSIDE/*"]}], "hf://datasets/a/b",
    [{"split": "OUTSIDE/x", "path": "train.csv"}], "\0", "a" * 10_000, "~", "((((((a+)+)+)+)+)+$", "int32",
    "image",
)  # fmt: skip
_KEYS = (
    "data_files", "data_dir", "config_name", "features", "sep", "names", "encoding", "column_names",
    "version", "default",
    "description", "storage_options", "converters", "compression", "base_path", "drop_labels", "field",
    "columns", "filters",
    "engine", "header", "usecols", "dtype", "chunksize", "parse_dates", "on_bad_lines", "quotechar",
    "batch_size",
)  # fmt: skip
_STATE_KEYS = (
    "_data_files",
    "_split",
    "_format_type",
    "_format_columns",
    "_format_kwargs",
    "_fingerprint",
    "_x",
)


def cards(seed: int, outside: Path) -> Iterator[Mutant]:
    """Copies of datasets with wrong cards and states, without end; some name files in `outside`."""
    draw = random.Random(seed)
    csv = b"text,label\nit works,yes\nit fails,no\n"
    saved = _saved()

    def value() -> Any:
        text = json.dumps(draw.choice(_VALUES)).replace("OUTSIDE", str(outside))
        return json.loads(text)

    while True:
        if draw.random() < 0.5:
            configs: Any = [
                {"config_name": name, **({"data_files": "train.csv"} if draw.random() < 0.3 else {})}
                for name in ("default", "a")[: draw.choice((1, 1, 2))]
            ]
            for _ in range(draw.choice((1, 2, 3))):
                draw.choice(configs)[draw.choice(_KEYS)] = value()
            about: Any = {"configs": configs if draw.random() < 0.95 else value()}
            if draw.random() < 0.3:
                about["dataset_info"] = draw.choice((value(), {"features": value()}, {"splits": value()}))
            block = json.dumps(about if draw.random() < 0.95 else value()).encode()
            if draw.random() < 0.2:
                block = mutated(draw, block)
            name = draw.choice(("README.md", "README.md", ".huggingface.yaml"))
            text = b"---\n" + block + b"\n---\n" if name == "README.md" else block
            yield Mutant("card", {"train.csv": csv, "test.csv": csv, name: text}, is_copy=True)
            continue
        content = dict(saved)
        name = draw.choice([name for name in content if name.endswith(".json")])
        state = json.loads(content[name])
        for _ in range(draw.choice((1, 1, 2))):
            key = draw.choice([*state, *(_STATE_KEYS if "state" in name else ())])
            state[key] = value()
        if state.get("_data_files") and draw.random() < 0.3:
            state["_data_files"] = [{"filename": value()}]
        content[name] = json.dumps(state).encode()
        if draw.random() < 0.3:
            content[name] = mutated(draw, content[name])
        if draw.random() < 0.2:
            arrow = draw.choice([name for name in content if name.endswith(".arrow")])
            content[arrow] = mutated(draw, content[arrow])
        yield Mutant("state", content, is_copy=True)


def _saved() -> dict[str, bytes]:
    """The files of a folder of `save_to_disk`."""
    import datasets

    with TemporaryDirectory() as folder:
        table = datasets.Dataset.from_list(_ROWS)
        datasets.disable_progress_bars()
        datasets.DatasetDict(train=table, test=table).save_to_disk(folder)
        return {
            path.relative_to(folder).as_posix(): path.read_bytes()
            for path in sorted(Path(folder).rglob("*"))
            if path.is_file()
        }


@dataclass(frozen=True)
class Read:
    """What reading a mutant came to: `read`, a sentence, or what is wrong, and the seconds."""

    number: int
    what: str
    outcome: str
    wrong: str
    seconds: float


def read_all(mutants: Iterator[tuple[int, Mutant]], aside: Path) -> Iterator[Read]:
    """Reads each in this process, in a laboratory of its own below `aside`,
    where `aside`/outside has secrets."""
    from core.corpora import load
    from core.errors import MRNLabError

    laboratory, allowed, temporary = (aside / name for name in ("laboratory", "allowed", "tmp"))
    for folder in (laboratory, allowed, temporary):
        folder.mkdir()
    settings = {
        "MRNLAB_HOME": str(laboratory),
        "MRNLAB_DATA_ROOTS": str(allowed),
        "TMPDIR": str(temporary),
        "HF_HOME": str(temporary / "hf"),
    }
    with patch.dict(os.environ, settings):
        for number, mutant in mutants:
            folder = allowed / f"mutant{number}"
            for name, content in mutant.files.items():
                (folder / name).parent.mkdir(parents=True, exist_ok=True)
                (folder / name).write_bytes(content)
            began, wrong, outcome = time.monotonic(), "", "read"
            try:
                corpus = load(f"hub:{folder}" if mutant.is_copy else str(folder))
                if any(SECRET in sentence.tokens for sentence in (*corpus.train, *corpus.test)):
                    wrong = "it read outside"
            except MRNLabError as error:
                outcome = f"refused: {error}"
                if SECRET in outcome or "\n" in outcome:
                    wrong = "its sentence"
            except Exception as error:  # noqa: BLE001 - what the command line answers with exit code 70
                wrong = f"{type(error).__name__}: {error}"
            seconds = time.monotonic() - began
            left = [*temporary.iterdir(), *laboratory.rglob(".copy-*"), *laboratory.rglob("*.tmp")]
            if left:
                wrong = wrong or f"left over: {left[0]}"
            if seconds > LIMIT_S:
                wrong = wrong or "too long"
            yield Read(number, mutant.what, outcome, wrong, seconds)


def peak_memory() -> int:
    """The most bytes that this process, or a child of it, had at once."""
    unit = 1 if sys.platform == "darwin" else 1024
    return unit * max(
        resource.getrusage(who).ru_maxrss for who in (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN)
    )


def secrets(folder: Path) -> Path:
    """Makes a folder of files that nobody may read, well-formed and in the formats of the mutants."""
    folder.mkdir()
    for name in ("train.csv", "test.csv"):
        (folder / name).write_text(f"text,label\n{SECRET} a,x\n{SECRET} b,y\n")
    return folder


def drawn(seed: int, of_files: int, of_cards: int, outside: Path) -> list[tuple[int, Mutant]]:
    """Numbered mutants, files before cards."""
    return [*enumerate((*islice(files(seed), of_files), *islice(cards(seed, outside), of_cards)))]


def main(of_files: int, of_cards: int, seed: int, only: int | None, first: int, step: int) -> None:
    """Reads every `step`th mutant from the `first` on, or `only` one; prints a line of JSON for each."""
    with TemporaryDirectory(prefix="mutants-") as temporary:
        aside = Path(temporary)
        numbered = drawn(seed, of_files, of_cards, secrets(aside / "outside"))
        chosen = numbered[first::step] if only is None else numbered[only : only + 1 if not first else only]
        for read in read_all(iter(chosen), aside):
            outcome = read.outcome.partition(":")[0]
            shown = read.outcome if only is not None or read.wrong else ""
            print(
                json.dumps(
                    {"number": read.number, "what": read.what, "outcome": outcome, "wrong": read.wrong}
                    | {"shown": shown, "s": round(read.seconds, 1), "peak": peak_memory()}
                ),
                flush=True,
            )
