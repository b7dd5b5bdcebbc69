"""Any dataset of the Hugging Face Hub by its name, `hub:OWNER/NAME?config=…&revision=…`, or a local copy.

A copy is a folder that `save_to_disk` wrote, or one of data files with its card, in place of OWNER/NAME. Read
with `datasets`, which runs no script; only files of tables are opened.
"""

from __future__ import annotations

import hashlib
import json
import os
import re
import shutil
import urllib.error
import urllib.request
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, fields, replace
from functools import lru_cache
from glob import escape
from io import BufferedReader
from itertools import islice
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING, Any, cast
from urllib.parse import quote

from core.corpora.catalogue.folders import corpus_name
from core.corpora.catalogue.names import find_folder, look_up_hub
from core.corpora.readers.dataset_rows import corpus_of
from core.corpora.readers.files import split_of
from core.corpora.types import Corpus, Split
from core.errors import CorpusError
from core.foreign import child, copies
from core.foreign.child import Refused
from core.paths import OUTSIDE, cache_dir, ensure_disk_space, first_outside, opened
from core.plain_text import shortened
from core.wording import all_of

if TYPE_CHECKING:
    from datasets import Dataset

PREFIX = "hub:"
OPTIONS = ("config", "revision", "splits", "columns")
"""The options of a dataset's name, which follow it directly."""

_OPTION = re.compile(rf"(?:{'|'.join(OPTIONS)})=[^&+?]*")
_REPOSITORY = re.compile(r"[\w-][\w.-]*/[\w-][\w.-]*", re.ASCII)
_COMMIT = re.compile("[0-9a-f]{40}")
_NO_CONFIG = re.compile(r"[<>:/\\|?*\0]")
"""The characters that the name of a configuration, which is also a folder's name, does not hold."""
_KEPT = "1"
"""The version of what is kept of a copy."""
_TIMEOUT_S = 5.0
_MOST_FILES = 5_000


@dataclass(frozen=True)
class HubName:
    """The parts of a dataset's name.

    source     OWNER/NAME, or the folder of a copy
    config     its configuration; empty for the one that is its default
    revision   a branch, a tag or a commit; empty for the newest
    splits     the names of its training, dev and test split, or of training and test, where not as they tell;
               `train[:90%]` is a part
    columns    those to read, `COLUMN` or `COLUMN:NAME`; empty for all that are understood
    """

    source: str
    config: str = ""
    revision: str = ""
    splits: tuple[str, ...] = ()
    columns: tuple[str, ...] = ()

    @classmethod
    def read(cls, name: str) -> HubName:
        """The parts of a name. Raises CorpusError where an option is unknown or given twice."""
        source, _, text = name.removeprefix(PREFIX).partition("?")
        if not source.strip():
            raise CorpusError(f"'{name}' names no dataset; write {PREFIX}OWNER/NAME.")
        values: dict[str, Any] = {}
        for option in text.split("&") if text else ():
            key, _, value = option.partition("=")
            if key not in OPTIONS:
                raise CorpusError(f"{name}: a dataset has no option '{key}'; it has {', '.join(OPTIONS)}.")
            if key in values:
                raise CorpusError(f"{name}: {key} is given twice; give it once.")
            parts = tuple(part.strip() for part in value.split(","))
            if not all(parts):
                raise CorpusError(f"{name}: {key} is empty; give it a value, or leave it out.")
            values[key] = parts if key in ("splits", "columns") else value.strip()
        if (config := values.get("config")) and (_NO_CONFIG.search(config) or config in (".", "..")):
            raise CorpusError(f"{name}: '{shortened(config)}' cannot be the name of a configuration.")
        if len(values.get("splits", "12")) not in (2, 3):
            raise CorpusError(f"{name}: splits must name two or three, as splits=train,validation,test.")
        return cls(source.strip(), **values)

    def __str__(self) -> str:
        given = {each.name: getattr(self, each.name) for each in fields(self)[1:]}
        texts = [
            f"{key}={value if isinstance(value, str) else ','.join(value)}"
            for key, value in given.items()
            if value
        ]
        return f"{PREFIX}{self.source}{'?' * bool(texts)}{'&'.join(texts)}"

    @property
    def folder(self) -> Path | None:
        """The folder of a copy; None where the Hub has the dataset."""
        return find_folder(self.source)

    @property
    def corpus(self) -> str:
        """The name of the corpus: the dataset, and its configuration where one is given."""
        folder = self.folder
        name = self.source.rpartition("/")[2] if folder is None else corpus_name(folder)
        return "-".join(filter(None, (name, self.config if self.config != name else "")))


def is_hub(name: str) -> bool:
    """Whether a corpus's name is that of a dataset."""
    return name.startswith(PREFIX)


def hub_name_in(text: str) -> tuple[str, str]:
    """The dataset's name at the start of a text, with its own options, and the rest of the text.

    Options of others begin with `?` in the rest too.
    """
    end = re.compile(r"[^?+]*").match(text)
    assert end is not None
    base, rest = text[: end.end()], text[end.end() :]
    while rest[:1] in ("?", "&") and (option := _OPTION.match(rest, 1)):
        base, rest = f"{base}{'&' if '?' in base else '?'}{option[0]}", rest[option.end() :]
    return base, f"?{rest[1:]}" if rest.startswith("&") else rest


def pinned(name: str) -> str:
    """The same dataset by a name that holds on any machine at any time.

    A copy has its absolute path; a dataset of the Hub has its configuration and the commit that its revision
    is now.

    Raises CorpusError as `read_hub`.
    """
    return str(_pinned(HubName.read(name)))


def _pinned(wanted: HubName) -> HubName:
    if (folder := wanted.folder) is not None:
        return replace(wanted, source=str(folder.resolve()))
    if not _REPOSITORY.fullmatch(wanted.source):
        raise CorpusError(
            f"'{shortened(wanted.source)}' is neither a folder here nor a dataset's name; write "
            f"{PREFIX}OWNER/NAME, as {PREFIX}nyu-mll/glue?config=cola."
        )
    if _COMMIT.fullmatch(wanted.revision):
        return wanted
    commit, default = _newest(wanted.source, wanted.config, wanted.revision)
    return replace(wanted, revision=commit, config=wanted.config or default)


def is_here(name: str) -> bool:
    """Whether a dataset can be read without the network."""
    wanted = HubName.read(name)
    is_pinned = _COMMIT.fullmatch(wanted.revision) is not None
    return wanted.folder is not None or (
        is_pinned and bool(_prepared(wanted.source, wanted.config, wanted.revision))
    )


def fingerprint(name: str) -> tuple[str, ...]:
    """A value that changes with the content of a dataset: the files of a copy, or the commit.

    Raises CorpusError as `read_hub`.
    """
    wanted = _pinned(HubName.read(name))
    if (folder := wanted.folder) is None:
        return (wanted.revision,)
    return tuple(f"{path}:{path.stat().st_size}:{path.stat().st_mtime_ns}" for path in _files(folder))


def read_hub(name: str) -> Corpus:
    """The corpus of a dataset.

    Raises CorpusError in one sentence: where there is no such dataset, configuration, split or column, where
    it is a script or no table, and where it is neither here nor can be reached.
    """
    asked = HubName.read(name)
    wanted = _pinned(asked)
    folder = wanted.folder
    if folder is None:
        revision, origin = wanted.revision, asked.source
        data, config = _from_hub(wanted)
    else:
        revision, origin = content_hash(folder), f"copy in {asked.source}"
        data, config = _from_folder(folder, wanted.config, revision)
    splits = _splits(asked, data)
    about = (
        f"dataset {origin}",
        f"configuration {config}" if config != copies.DEFAULT else "",
        f"{'revision' if folder is None else 'fingerprint'} {revision}",
    )
    return corpus_of(asked.corpus, splits, asked.columns, ", ".join(filter(None, about)), revision)


def _splits(asked: HubName, data: Mapping[str, Dataset]) -> dict[Split, tuple[str, Dataset]]:
    """The tables of the splits, each with its name there: training, and dev or test."""
    if asked.splits:
        order: tuple[Split, ...] = ("train", "dev", "test") if len(asked.splits) == 3 else ("train", "test")
        return {
            split: (title, _part(asked, title, data))
            for split, title in zip(order, asked.splits, strict=True)
        }
    choose = f"choose them as splits=TRAIN,DEV,TEST; its splits are {all_of(list(data))}"
    tables: dict[Split, tuple[str, Dataset]] = {}
    for title, table in data.items():
        if (split := split_of(title)) is None:
            continue
        if split in tables:
            raise CorpusError(
                f"{asked.corpus}: both {tables[split][0]} and {title} could be the {split} split; {choose}."
            )
        tables[split] = title, table
    if "train" not in tables or len(tables) == 1:
        missing = "test" if "train" in tables else "train"
        raise CorpusError(
            f"{asked.corpus} has no {missing} split; {choose}. train[:90%] and train[90%:] are parts of one."
        )
    return tables


def _part(asked: HubName, title: str, data: Mapping[str, Dataset]) -> Dataset:
    """A split, or the part of one that `title` says as `datasets` writes it."""
    from datasets import ReadInstruction, concatenate_datasets

    try:
        parts = ReadInstruction.from_spec(title).to_absolute(
            {name: len(table) for name, table in data.items()}
        )
    except (ValueError, AssertionError):
        raise CorpusError(
            f"{asked.corpus} has no split '{shortened(title)}'; its splits are {all_of(list(data))}, and "
            "parts of them, as train[:90%]."
        ) from None
    return concatenate_datasets([data[part.splitname].select(range(part.from_, part.to)) for part in parts])


# Copies.


def _files(folder: Path) -> list[Path]:
    """The files of a copy. Raises CorpusError where that is no folder of one, or one may not be read."""
    if not folder.is_dir():
        raise CorpusError(f"{folder} is a file; name the folder of a dataset.")
    paths = list(islice(folder.rglob("*"), _MOST_FILES + 1))
    if len(paths) > _MOST_FILES:
        raise CorpusError(f"{folder} holds more than {_MOST_FILES:,} files; name the folder of one dataset.")
    if outside := first_outside(folder):
        raise CorpusError(f"{outside} {OUTSIDE}")
    return [path for path in sorted(paths) if path.is_file()]


def content_hash(folder: Path) -> str:
    """16 hexadecimal digits of SHA-256 over the names and contents of a copy's files."""
    digest = hashlib.sha256()
    for path in _files(folder):
        with opened(path) as file:
            content = hashlib.file_digest(cast(BufferedReader, file), "sha256").hexdigest()
        digest.update(f"{path.relative_to(folder).as_posix()}\0{content}\n".encode())
    return digest.hexdigest()[:16]


def _from_folder(folder: Path, config: str, content: str) -> tuple[Mapping[str, Dataset], str]:
    """The tables of a copy with this hash, and the name of their configuration.

    A child process reads them once, and what it kept is read from then on.
    """
    from datasets import load_from_disk

    key = hashlib.sha256(f"{_KEPT}\0{config}\0{folder.name}".encode()).hexdigest()[:8]
    kept = cache_dir("datasets") / f"{content}-{key}"
    if not kept.exists():
        _keep(folder, config, kept)
    with quiet():
        tables = load_from_disk(str(kept / "tables"))
    return tables, str(json.loads((kept / "about.json").read_bytes())["config"])


def _keep(folder: Path, config: str, kept: Path) -> None:
    """Has a child process write the tables of a copy to a folder of the cache. Raises CorpusError."""
    files = _files(folder)
    size = sum(path.stat().st_size for path in files)
    resolved = [os.path.realpath(path) for path in files]
    with (
        ensure_disk_space(kept.parent, size, f"What is read of {folder}"),
        TemporaryDirectory(dir=kept.parent, prefix=".copy-") as temporary,
    ):
        target = Path(temporary)
        given = {"folder": os.path.realpath(folder), "config": config, "files": resolved, "target": temporary}
        try:
            about = child.run(
                "copy", given, reads=resolved, folder=folder, writes=target, size=size,
                most_written=copies.MOST_BYTES,
            )  # fmt: skip
        except Refused as refused:
            raise CorpusError(
                f"The dataset {folder} cannot be read: {refused.reason}. Take out the damaged or too large "
                "file, or keep the data anew as train.parquet, validation.parquet and test.parquet."
            ) from None
        if (target / copies.PREPARED).exists():
            shutil.rmtree(target / copies.PREPARED)
        (target / "about.json").write_text(json.dumps(about))
        try:
            target.rename(kept)
        except OSError:
            if not kept.exists():  # else another process has read the same meanwhile
                raise


# The Hub.


@lru_cache(maxsize=256)
def _newest(repository: str, config: str, revision: str) -> tuple[str, str]:
    """The commit of a revision now, and its default configuration, empty where none has a name.

    Without the Hub they are of the newest copy on this machine.

    Raises CorpusError where there is no such dataset or revision, where it is a script, and where neither is
    to be had.
    """
    from huggingface_hub import constants, get_token

    named = f"{repository}{f' in the revision {revision}' if revision else ''}"
    url = f"{constants.ENDPOINT}/api/datasets/{repository}/revision/{quote(revision or 'main', safe='')}"
    token = get_token()
    headers = {"Authorization": f"Bearer {token}"} if token else {}
    try:
        if constants.HF_HUB_OFFLINE:
            raise ConnectionError("HF_HUB_OFFLINE")
        # Asked once and directly: the Hub's client would try again for half a minute without a network.
        with urllib.request.urlopen(
            urllib.request.Request(url, headers=headers), timeout=_TIMEOUT_S
        ) as answer:
            about = json.load(answer)
        commit, files = str(about["sha"]), [str(file["rfilename"]) for file in about.get("siblings", ())]
        default = _default_config(about.get("cardData") or {})
    except urllib.error.HTTPError as error:
        raise CorpusError(
            f"The Hugging Face Hub does not offer the dataset {named} (it answers {error.code}). Check the "
            "name, and log in to the Hub if it is private or gated."
        ) from None
    except (OSError, ValueError, KeyError, TypeError, AttributeError):
        ready = [] if revision else _prepared(repository, config or "*")
        if ready and len({path.parts[-3] for path in ready}) == 1:
            return ready[-1].name, ready[-1].parts[-3].removesuffix(copies.DEFAULT)
        raise CorpusError(_unreachable(named)) from None
    script = f"{repository.rpartition('/')[2]}.py"
    if script in files:
        raise CorpusError(copies.is_script(repository, script))
    return commit, default


def _default_config(card: Mapping[str, Any]) -> str:
    """The configuration that a dataset's card makes the default; empty where it names none."""
    configs = card.get("configs") or card.get("dataset_info") or ()
    configs = [configs] if isinstance(configs, dict) else configs
    names = [str(each.get("config_name", copies.DEFAULT)) for each in configs]
    marked = [name for name, each in zip(names, configs, strict=True) if each.get("default")]
    chosen = next(iter(marked), names[0] if len(names) == 1 else "")
    return chosen.removesuffix(copies.DEFAULT)


def _unreachable(repository: str) -> str:
    return (
        f"The dataset {repository} is not on this machine and the Hugging Face Hub cannot be reached; name "
        f"the folder of a copy, as {PREFIX}/path/to/copy (written by save_to_disk, or data files with their "
        "card)."
    )


def _prepared(repository: str, config: str, commit: str = "*") -> list[Path]:
    """The folders of `datasets` that hold this dataset ready to be read, the newest last."""
    from datasets import config as settings
    from datasets.naming import camelcase_to_snakecase

    owner, _, name = repository.rpartition("/")
    root = Path(settings.HF_DATASETS_CACHE) / f"{owner}___{camelcase_to_snakecase(name)}"
    whole = [
        path
        for path in root.glob(f"{'*' if config == '*' else escape(config or copies.DEFAULT)}/*/{commit}")
        if _COMMIT.fullmatch(path.name) and (path / "dataset_info.json").is_file()
    ]
    return sorted(whole, key=lambda path: path.stat().st_mtime)


def _from_hub(wanted: HubName) -> tuple[Mapping[str, Dataset], str]:
    """The tables of a commit, and the name of their configuration.

    A commit that was read once is read without the Hub.
    """
    from datasets.packaged_modules.cache.cache import Cache

    named = f"{wanted.source} in the revision {wanted.revision}"
    with copies.errors_as_sentences(named, _unreachable(named)), quiet():
        for ready in _prepared(wanted.source, wanted.config, wanted.revision)[-1:]:
            config, version, commit = ready.parts[-3:]
            copy = Cache(
                dataset_name=wanted.source.rpartition("/")[2],
                repo_id=wanted.source,
                config_name=config,
                version=version,
                hash=commit,
            )
            return copy.as_dataset(), config
        look_up_hub()
        builder = copies.builder(wanted.source, wanted.config, wanted.revision)
        # Without the network, `datasets` takes whatever revision it has read last.
        if builder.hash != wanted.revision:
            raise CorpusError(_unreachable(named))
        builder.download_and_prepare()
        return builder.as_dataset(), builder.config.name


@contextmanager
def quiet() -> Iterator[None]:
    """Without the progress bars of `datasets`: a worker's log is read by people."""
    from datasets import are_progress_bars_disabled, disable_progress_bars, enable_progress_bars

    was_disabled = are_progress_bars_disabled()
    disable_progress_bars()
    try:
        yield
    finally:
        if not was_disabled:
            enable_progress_bars()
