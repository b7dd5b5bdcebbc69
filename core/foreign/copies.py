"""What a child process does with a copy of a dataset: reads it with `datasets`, and keeps its plain tables.

The names of files in cards and states are checked before any of them is opened: each lies in the copy. No
archive is unpacked. What the parent then opens are files that this module wrote.
"""

from __future__ import annotations

import json
import os
import re
from collections.abc import Collection, Iterator, Mapping
from contextlib import contextmanager
from itertools import chain
from pathlib import Path
from typing import TYPE_CHECKING, Any

from core.errors import CorpusError
from core.foreign import arrow, child
from core.foreign.child import Refused, reason_of
from core.plain_text import shortened
from core.wording import all_of, first_of

if TYPE_CHECKING:
    from datasets import Dataset, DatasetBuilder

MOST_BYTES = 2_000_000_000
"""The most bytes of the tables of a copy."""
DEFAULT = "default"
"""The name that `datasets` gives to a configuration without a name."""
PREPARED = "prepared"
"""The folder of what `datasets` writes beside the tables; the parent removes it when the child has ended."""
PARQUET_REVISION = "refs/convert/parquet"
"""The revision that the Hub makes itself: the same data without code."""

_TABLES = ("parquet", "arrow", "csv", "json")
"""The builders of `datasets` that read tables. Others read images, archives or pickles."""
_DICT, _STATE, _INFO = "dataset_dict.json", "state.json", "dataset_info.json"
_CARDS = ("README.md", ".huggingface.yaml")
_MOST_NAMES = 20
_MOST_CARD = 10_000_000
_PLAIN = re.compile(r"\w[\w.-]*")
_PACKED = {
    b"PK\x03\x04": "zip", b"PK\x05\x06": "zip", b"\x1f\x8b": "gzip", b"BZh": "bzip2", b"\xfd7zXZ\0": "xz",
    b"\x28\xb5\x2f\xfd": "zstd", b"\x04\x22\x4d\x18": "lz4", b"7z\xbc\xaf\x27\x1c": "7z", b"Rar!": "rar",
}  # fmt: skip
"""The formats of packed files, by their first bytes."""
_TAR = 257, b"ustar"


def imports() -> None:
    """Imports all that `keep` needs."""
    import datasets  # noqa: F401
    import huggingface_hub.repocard  # noqa: F401
    import pandas as pd  # noqa: F401
    import pyarrow.parquet  # noqa: F401
    import yaml  # noqa: F401


def keep(folder: str, config: str, files: Collection[str], target: str) -> dict[str, str]:
    """Writes the tables of a copy to `target`/tables, as `save_to_disk` does; returns their configuration.

    `files` are those of the copy, links resolved. Nothing else is read. Raises CorpusError in one sentence.
    """
    source, kept = Path(folder), Path(target)
    imports()
    with errors_as_sentences(folder):
        from datasets import disable_progress_bars

        disable_progress_bars()
        tables, name = _tables(source, config, frozenset(files), kept / PREPARED)
        for split, table in tables.items():
            _check_name(source, split)
            plain = _plain(source, split, table)
            place = kept / "tables" / split
            place.parent.mkdir(exist_ok=True)
            plain.save_to_disk(str(place))
        (kept / "tables" / _DICT).write_text(json.dumps({"splits": list(tables)}))
    return {"config": name}


def _tables(
    folder: Path, config: str, files: frozenset[str], cache: Path
) -> tuple[Mapping[str, Dataset], str]:
    """The tables of a copy by split, and the name of their configuration."""
    for place in (folder / config, folder) if config else (folder,):
        if (place / _DICT).is_file() or (place / _STATE).is_file():
            return _saved(place, files), config or DEFAULT
    _check_cards(folder)
    packed = builder(str(folder), config, cache_dir=str(cache))
    data_files = packed.config.data_files or {}
    for path in chain(*data_files.values()):
        if os.path.realpath(path) not in files:
            raise _named_outside(f"The card of {folder}", path)
        if kind := _packing(Path(path)):
            raise CorpusError(f"{path} is packed ({kind}), and no archive is unpacked; unpack it.")
        if packed.name == "parquet":
            _check_size(Path(path))
    packed.download_and_prepare()
    return packed.as_dataset(), str(packed.config.name)


def _named_outside(where: str, path: object) -> CorpusError:
    return CorpusError(
        f"{where} names a file outside of it, which is not read: {shortened(str(path))}. Name files of the "
        "folder, as data/train.csv."
    )


def _packing(path: Path) -> str | None:
    """The format of a packed file; None where it is none."""
    with path.open("rb") as file:
        start = file.read(512)
    at, magic = _TAR
    if start[at : at + len(magic)] == magic:
        return "tar"
    return next((kind for magic, kind in _PACKED.items() if start.startswith(magic)), None)


def _check_size(path: Path) -> None:
    """Raises CorpusError where a Parquet file says that it unpacks to more than is read."""
    import pyarrow.parquet as pq

    with path.open("rb") as file:
        about = pq.ParquetFile(file).metadata
    groups = [about.row_group(index) for index in range(about.num_row_groups)]
    size = sum(group.total_byte_size for group in groups)
    if size > MOST_BYTES or about.num_rows > arrow.MOST_ROWS:
        raise CorpusError(
            f"{path} unpacks to {size / 1e6:,.0f} MB and {about.num_rows:,} rows, and the most is "
            f"{MOST_BYTES / 1e6:,.0f} MB and {arrow.MOST_ROWS:,} rows; take a part of it."
        )


# Folders of `save_to_disk`.


def _saved(folder: Path, files: frozenset[str]) -> dict[str, Dataset]:
    if not (folder / _DICT).is_file():
        table = _saved_table(folder, files)
        return {str(table.split or "train"): table}
    splits = _json(folder / _DICT).get("splits")
    if not isinstance(splits, list) or not splits:
        raise _wrong(folder / _DICT, "splits must be a list of names", splits)
    for split in splits:
        _check_name(folder, split)
    tables: dict[str, Dataset] = {split: _saved_table(folder / split, files) for split in splits}
    return tables


def _saved_table(folder: Path, files: frozenset[str]) -> Dataset:
    """The table in a folder. Raises CorpusError where it leads to files elsewhere."""
    from datasets import Dataset

    state_file = folder / _STATE
    state = _json(state_file)
    _json(folder / _INFO)
    parts = state.get("_data_files")
    if not isinstance(parts, list) or not all(isinstance(part, dict) for part in parts):
        raise _wrong(state_file, "_data_files must be a list of objects", parts)
    for part in parts:
        name = part.get("filename")
        if not isinstance(name, str):
            raise _wrong(state_file, "each of _data_files must have a filename", part)
        if Path(name).name != name or os.path.realpath(folder / name) not in files:
            raise CorpusError(
                f"{state_file} names a file outside of its folder, which is not read, or one that is not "
                f"there: {shortened(name)}. Save the dataset anew."
            )
        _check_arrow(folder / name)
    return Dataset.load_from_disk(str(folder))


def _check_arrow(path: Path) -> None:
    """Reads the batches of an Arrow file. Raises CorpusError."""
    import pyarrow as pa

    try:
        with pa.memory_map(str(path)) as source:
            for batch in pa.ipc.open_stream(source):
                batch.validate(full=True)
    except (pa.ArrowException, OSError) as error:
        raise CorpusError(f"{path} cannot be read ({reason_of(error)}); save the dataset anew.") from None


def _json(path: Path) -> dict[str, Any]:
    """The object in a file. Raises CorpusError."""
    try:
        if path.stat().st_size > _MOST_CARD:
            raise CorpusError(f"{path} holds more than {_MOST_CARD / 1e6:,.0f} MB; save the dataset anew.")
        value = json.loads(path.read_bytes())
    except (OSError, ValueError, RecursionError) as error:
        raise CorpusError(f"{path} cannot be read ({reason_of(error)}); save the dataset anew.") from None
    if not isinstance(value, dict):
        raise _wrong(path, "expected an object", value)
    return value


def _check_name(folder: Path, split: object) -> None:
    if not isinstance(split, str) or not _PLAIN.fullmatch(split):
        raise CorpusError(
            f"{folder} has a split called {shortened(repr(split))}, which is no plain name; call it as train "
            "or validation."
        )


def _wrong(path: Path, expected: str, value: object) -> CorpusError:
    return CorpusError(f"{path}: {expected}, not {shortened(repr(value))}; save the dataset anew.")


# Cards.


def _check_cards(folder: Path) -> None:
    """Raises CorpusError where a card is not as `datasets` reads it, or names files outside."""
    for name in _CARDS:
        if (path := folder / name).is_file():
            value = _yaml(path)
            if value is not None and not isinstance(value, dict):
                raise _wrong_card(path, "expected names with values", value)
            for place, entry in _paths((value or {}).get("configs"), path):
                _check_path(place, entry)


def _yaml(path: Path) -> Any:
    """The values of a card. Raises CorpusError."""
    import yaml
    from huggingface_hub.repocard import REGEX_YAML_BLOCK

    try:
        if path.stat().st_size > _MOST_CARD:
            raise CorpusError(f"{path} holds more than {_MOST_CARD / 1e6:,.0f} MB; shorten it.")
        text = path.read_text("utf-8")
        if path.suffix == ".md":
            block = REGEX_YAML_BLOCK.search(text)
            text = block[2] if block else ""
        return yaml.safe_load(text)
    except yaml.MarkedYAMLError as error:
        line = f", line {error.problem_mark.line + 1 + (path.suffix == '.md')}" if error.problem_mark else ""
        raise CorpusError(f"{path}{line}: is no YAML ({error.problem}); {_MEND}.") from None
    except (yaml.YAMLError, OSError, ValueError, TypeError, AttributeError, RecursionError) as error:
        raise CorpusError(f"{path} cannot be read ({reason_of(error)}); {_MEND}.") from None


_MEND = "mend the card, or take it out and name the files train.csv, validation.csv and test.csv"


def _wrong_card(path: Path, expected: str, value: object) -> CorpusError:
    return CorpusError(f"{path}: {expected}, not {shortened(repr(value))}; {_MEND}.")


def _paths(configs: Any, path: Path) -> Iterator[tuple[str, str]]:
    """The paths and patterns in the configurations of a card, each with its place. Raises CorpusError."""
    if configs is None:
        return
    if not isinstance(configs, list):
        raise _wrong_card(path, "configs must be a list", configs)
    for config in configs:
        if not isinstance(config, dict) or not isinstance(name := config.get("config_name"), str):
            raise _wrong_card(path, "each of configs must have a config_name, a text", config)
        if name != Path(name).name or name in (".", ".."):
            raise _wrong_card(path, "a config_name must be a plain name", name)
        directory = config.get("data_dir")
        if directory is not None:
            if not isinstance(directory, str):
                raise _wrong_card(path, f"data_dir of {name} must be a folder", directory)
            yield f"{path}, data_dir of {name},", directory
        files = config.get("data_files")
        for entry in files if isinstance(files, list) else [] if files is None else [files]:
            patterns = entry
            if isinstance(entry, dict):
                if set(entry) != {"split", "path"}:
                    raise _wrong_card(path, f"data_files of {name} must have a split and a path", entry)
                _check_name(path, entry["split"])
                patterns = entry["path"]
            for pattern in patterns if isinstance(patterns, list) else [patterns]:
                if not isinstance(pattern, str):
                    raise _wrong_card(path, f"data_files of {name} must be names of files", pattern)
                yield f"{path}, data_files of {name},", pattern


def _check_path(place: str, path: str) -> None:
    """Raises CorpusError where a path or a pattern may lead out of the copy."""
    parts = re.split(r"[/\\]", path)
    if not path or parts[0] in ("", "~") or ".." in parts or ":" in path or "\0" in path:
        raise _named_outside(place, path)


# Of both, and of the Hub.


def builder(
    source: str, config: str, revision: str | None = None, cache_dir: str | None = None
) -> DatasetBuilder:
    """The builder that reads the files of a dataset.

    Raises CorpusError where the dataset is a script, lacks the configuration, or is no table; else as
    `datasets`.
    """
    from datasets import get_dataset_config_names, load_dataset_builder

    try:
        made = load_dataset_builder(source, config or None, cache_dir=cache_dir, revision=revision)
    except RuntimeError as error:
        if isinstance(error, RecursionError):
            raise
        raise CorpusError(is_script(source, f"{Path(source).name}.py")) from None
    except ValueError:
        names = get_dataset_config_names(source, revision=revision)
        if config in names or (not config and len(names) < 2):
            raise
        has = f"no configuration '{shortened(config)}'" if config else "several configurations"
        raise CorpusError(
            f"The dataset {source} has {has}; name one as config=NAME: {first_of(names, _MOST_NAMES)}."
        ) from None
    if made.name not in _TABLES:
        raise CorpusError(
            f"The dataset {source} holds files of the kind {made.name}; those of {all_of(list(_TABLES))} "
            "are read."
        )
    return made


def is_script(repository: str, script: str) -> str:
    """The sentence on a dataset that is a script."""
    return (
        f"The dataset {repository} is a script ({script}), and scripts are never run; read the copy that the "
        f"Hub made of its data, with the option revision={PARQUET_REVISION}."
    )


@contextmanager
def errors_as_sentences(name: str, unreachable: str = "") -> Iterator[None]:
    """A context in which what `datasets`, YAML and Arrow raise becomes a CorpusError.

    `unreachable` is the sentence where files of the Hub cannot be had.
    """
    from datasets.exceptions import DatasetNotFoundError

    try:
        yield
    except (CorpusError, MemoryError):
        raise
    except Exception as error:  # they raise anything of what a wrong card or file leads to
        if unreachable and isinstance(error, OSError) and not isinstance(error, DatasetNotFoundError):
            raise CorpusError(unreachable) from error
        reason = error.reason if isinstance(error, Refused) else reason_of(error)
        at = f"{Path(child.opened[-1]).name}: " if child.opened else ""
        raise CorpusError(
            f"The dataset {name} cannot be read ({at}{reason}); mend its files or its card, or keep the data "
            "as train.parquet, validation.parquet and test.parquet."
        ) from error


def _plain(folder: Path, split: str, table: Dataset) -> Dataset:
    """The table without formats and without decoders, which would open files; all its rows are read.

    Raises Refused, or as pyarrow.
    """
    from datasets import Dataset, Features

    features = Features({name: _undecoded(feature) for name, feature in table.features.items()})
    rows = 0
    size = 0
    for batch in table.data.table.to_batches(max_chunksize=arrow.ROWS_AT_ONCE):
        arrow.check_part(batch, rows)
        rows += batch.num_rows
        size += batch.nbytes
        if size > MOST_BYTES or rows > arrow.MOST_ROWS:
            raise Refused(
                f"its split {split} unpacks to more than {MOST_BYTES / 1e6:,.0f} MB or "
                f"{arrow.MOST_ROWS:,} rows"
            )
    info = table.info.copy()
    info.features = features
    return Dataset(table.data, info=info, split=table.split, fingerprint="copy")


def _undecoded(feature: Any) -> Any:
    """The feature without what opens files in it and in all that it holds.

    Raises Refused where names of labels are no texts.
    """
    from datasets.features.features import generate_from_arrow_type

    if isinstance(feature, dict):
        return {name: _undecoded(each) for name, each in feature.items()}
    if isinstance(feature, list):
        return [_undecoded(each) for each in feature]
    if hasattr(feature, "decode"):  # a picture or a sound: what is stored of it, which may be its path
        return generate_from_arrow_type(feature())
    if hasattr(feature, "feature"):
        feature.feature = _undecoded(feature.feature)
    if (names := getattr(feature, "names", None)) is not None and not (
        isinstance(names, list) and all(isinstance(name, str) for name in names)
    ):
        raise Refused(f"names of labels must be texts, not {shortened(repr(names))}")
    return feature
