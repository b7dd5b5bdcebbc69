"""Pre-trained word vectors: found by name or path, read line by line, only the words that are needed kept.

`glove` is a part of GloVe 6B with 100 dimensions (Pennington, Socher and Manning, 2014), rounded to three
digits: the 30,000 most frequent words and others of common corpora. It is in the public domain (Public Domain
Dedication and License 1.0).
"""

from __future__ import annotations

import codecs
import gzip
import os
import zlib
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from functools import lru_cache
from itertools import islice
from pathlib import Path
from typing import BinaryIO

import numpy as np
from numpy.typing import NDArray

from core.errors import FIELD, ConfigError
from core.paths import OUTSIDE, may_read, opened
from core.plain_text import shortened
from core.wording import plural

GLOVE = "glove"
_PACKAGED = {GLOVE: Path(__file__).parent / "data" / "glove-100d.txt.gz"}
_ENDINGS = (".txt", ".vec", ".txt.gz", ".vec.gz")
_LONGEST_LINE = 1 << 20
_CHECKED_LINES = 1000  # before a run is queued; its training reads them all


@dataclass(frozen=True)
class WordVectors:
    """The vectors (V, D), float32, of `words`, and the dimension D even where no word has one."""

    words: tuple[str, ...]
    vectors: NDArray[np.float32]

    @property
    def dimension(self) -> int:
        """D."""
        return int(self.vectors.shape[1])


def vectors_path(name: str) -> Path:
    """The file of the vectors with that name, or at that file or folder.

    Raises ConfigError where there is none, more than one, or none that may be read.
    """
    if name in _PACKAGED:
        return _PACKAGED[name]
    # Functions of os.path raise nothing, whatever a name holds.
    path = Path(os.path.expanduser(name))
    if not may_read(path):
        raise ConfigError("vectors", f"{FIELD}: '{shortened(name, 200)}' {OUTSIDE}")
    if os.path.isdir(path):
        with _reading(path):
            files = [file for file in sorted(path.iterdir()) if file.name.endswith(_ENDINGS)]
        if len(files) != 1:
            raise ConfigError(
                "vectors",
                f"{FIELD}: the folder {path} has {plural(len(files), 'file')} that can hold word vectors "
                f"({', '.join(_ENDINGS)}); name one file.",
            )
        return files[0]
    if not os.path.isfile(path):
        names = ", ".join(_PACKAGED)
        raise ConfigError(
            "vectors", f"{FIELD}: '{shortened(name, 200)}' is neither {names} nor a file or folder."
        )
    return path


def check_vectors(name: str) -> None:
    """Read the first lines of the vectors with that name, or at that file or folder; of gzip unpack all.

    Raises ConfigError as `read_vectors` where they are wrong, or there is no such file.
    """
    path = vectors_path(name)
    if name in _PACKAGED:
        return
    with _reading(path):
        status = path.stat()
    _unpack(path, status.st_size, status.st_mtime_ns)
    for number, _, numbers in islice(_entries(path), _CHECKED_LINES):
        _values(numbers, numbers.count(b" ") + 1, path, number)


def read_vectors(name: str, is_needed: Callable[[str], bool]) -> WordVectors:
    """The vectors of the needed words, in the order of the file; a word that occurs twice has the first.

    The memory it takes is for these words alone, however large the file is.

    Reads the text formats of GloVe (a word and its numbers on each line, apart by spaces or tabs) and of
    word2vec (the same below a line with the numbers of words and of dimensions), gzip too. Raises ConfigError
    with file and line for a line of another dimension, a value of a needed word that is not a finite number,
    an empty file, and one with fewer or more words than its first line says.
    """
    path = vectors_path(name)
    if name in _PACKAGED:
        words, table = _packaged(path)
        rows = [row for row, word in enumerate(words) if is_needed(word)]
        return WordVectors(tuple(words[row] for row in rows), table[rows])
    values_of: dict[str, NDArray[np.float32]] = {}
    dimension = 0
    for number, word, numbers in _entries(path):
        dimension = dimension or numbers.count(b" ") + 1
        if word not in values_of and is_needed(word):
            values_of[word] = _values(numbers, dimension, path, number)
    vectors = np.stack(list(values_of.values())) if values_of else np.zeros((0, dimension), dtype=np.float32)
    return WordVectors(tuple(values_of), vectors)


@lru_cache(maxsize=1)
def _packaged(path: Path) -> tuple[tuple[str, ...], NDArray[np.float32]]:
    """All words of a file of the package and their vectors, cached.

    Run after run looks some up, and so does the Tag page while a reader types.
    """
    words, rows = zip(*((word, numbers) for _, word, numbers in _entries(path)), strict=True)
    table = np.array(b" ".join(rows).split(b" "), dtype=np.float32).reshape(len(words), -1)
    return words, table


def _entries(path: Path) -> Iterator[tuple[int, str, bytes]]:
    """Line number, word and numbers of each line, all of one dimension. Raises as `read_vectors`."""
    words = dimension = 0
    announced = None
    with _opened(path) as file:
        for number, line in _lines(file, path):
            if number == 1 and len(fields := line.split()) == 2 and b"".join(fields).isdigit():
                announced, dimension = map(int, fields)  # word2vec: how many words, and of what dimension
                continue
            blanks = line.count(b" ")
            dimension = dimension or blanks
            if blanks < dimension or not dimension:
                raise _problem(
                    path, number, f"has {plural(blanks, 'number')}, not {dimension or 'at least 1'}"
                )
            word, _, numbers = line.partition(b" ")
            if blanks > dimension:
                word = _spaced(line, dimension, path, number)
                numbers = line[len(word) + 1 :]
            words += 1
            yield number, word.decode("utf-8", "replace"), numbers
    if not words:
        raise ConfigError("vectors", f"{FIELD}: {path} has no vectors; each line is a word and its numbers.")
    if announced not in (None, words):
        raise _problem(path, 1, f"says that there are {announced:,} vectors, but the file has {words:,}")


def lookup(form: str, places: Mapping[str, int]) -> int | None:
    """The number that `places` has for the form as it is written, or else in lower case."""
    number = places.get(form)
    return places.get(form.lower()) if number is None else number


@lru_cache(maxsize=8)
def _unpack(path: Path, size: int, changed: int) -> None:
    """Reads gzip to its end and checks length and checksum. Raises ConfigError if they differ."""
    del size, changed  # part of the cache's key only
    with _opened(path) as file:
        while isinstance(file, gzip.GzipFile) and file.read(_LONGEST_LINE):
            pass


@contextmanager
def _opened(path: Path) -> Iterator[BinaryIO]:
    """The file's bytes, unpacked where it is gzip. Raises ConfigError where it cannot be read."""
    is_ours = path in _PACKAGED.values()
    with _reading(path), path.open("rb") if is_ours else opened(path) as file:
        is_packed = file.read(2) == b"\x1f\x8b"
        file.seek(0)
        if is_packed:
            with gzip.GzipFile(fileobj=file) as unpacked:
                yield unpacked  # type: ignore[misc] # a GzipFile reads bytes as any binary file
        else:
            yield file


@contextmanager
def _reading(path: Path) -> Iterator[None]:
    """Raises ConfigError where the disk or the packed vectors cannot be read."""
    try:
        yield
    except (OSError, EOFError, zlib.error) as error:
        reason = getattr(error, "strerror", None) or str(error).rstrip(".")
        damaged = isinstance(error, (gzip.BadGzipFile, EOFError, zlib.error))
        again = " Copy or download it again." if damaged else ""
        raise ConfigError("vectors", f"{FIELD}: {path} cannot be read: {reason}.{again}") from error


def _lines(file: BinaryIO, path: Path) -> Iterator[tuple[int, bytes]]:
    """The numbered lines that hold anything, without line ends, tabs as spaces; one in memory at a time."""
    number = 0
    while line := file.readline(_LONGEST_LINE):
        number += 1
        if len(line) == _LONGEST_LINE:
            raise _problem(path, number, "is longer than any vector; this is not a file of word vectors")
        if number == 1:
            line = line.removeprefix(codecs.BOM_UTF8)
        if stripped := line.replace(b"\t", b" ").rstrip(b" \r\n"):
            yield number, stripped


def _spaced(line: bytes, dimension: int, path: Path, number: int) -> bytes:
    """The word of a line with too many fields: a few words of some files hold spaces."""
    fields = line.split(b" ")
    try:
        float(fields[1])
    except ValueError:
        return b" ".join(fields[:-dimension])
    raise _problem(path, number, f"has {len(fields) - 1} numbers, not {dimension}")


def _values(text: bytes, dimension: int, path: Path, number: int) -> NDArray[np.float32]:
    try:
        values = np.array(text.split(b" "), dtype=np.float32)
    except ValueError:
        raise _problem(path, number, "holds something that is not a number") from None
    if len(values) != dimension:
        raise _problem(path, number, f"has {len(values)} numbers, not {dimension}")
    if not np.isfinite(values).all():
        raise _problem(path, number, "holds a number that is not finite")
    return values


def _problem(path: Path, number: int, what: str) -> ConfigError:
    return ConfigError("vectors", f"{FIELD}: {path}, line {number:,}: {what}.")
