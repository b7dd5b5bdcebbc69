"""The folder of MRN Lab's data: `MRNLAB_HOME`, by default the folder of pyproject.toml.

Everything a run leaves behind (store, checkpoints, logs, caches, uploads) lies under it, so a laboratory
is moved, backed up or thrown away as one folder.
"""

from __future__ import annotations

import errno
import os
import re
import shutil
import stat
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path, PurePath
from typing import BinaryIO

from core.errors import MRNLabError, NoRoom
from core.plain_text import shortened


def given_path(text: str | Path) -> Path:
    """The whole path of a file or folder that a user names, there or not; `~` is the user's own folder.

    Raises MRNLabError where no file can have the name.
    """
    resolved = os.path.abspath(os.path.expanduser(text))
    try:
        os.stat(resolved)
    except ValueError:  # a zero byte
        raise MRNLabError(f"'{shortened(str(text), 300)}' cannot be a file name.") from None
    except OSError as error:
        if error.errno == errno.ENAMETOOLONG:
            raise MRNLabError(f"'{shortened(str(text))}' is too long for the name of a file.") from None
        if error.errno == errno.ELOOP:
            raise MRNLabError(f"'{resolved}' is, or lies below, a link that leads to itself.") from None
    return Path(resolved)


def home() -> Path:
    """The laboratory's folder: `MRNLAB_HOME`, else the project folder, else the current one."""
    if chosen := _folder("MRNLAB_HOME"):
        return chosen
    project = Path(__file__).resolve().parent.parent
    return project if (project / "pyproject.toml").is_file() else Path.cwd()


def set_umask() -> None:
    """Makes files of this process, and of processes it starts, unreadable for other users of the machine.

    In a laboratory that a group shares, which is one whose folder has the setgid bit (`chmod g+s`), the group
    may read and write them.
    """
    folder = home()
    shared = os.path.isdir(folder) and folder.stat().st_mode & stat.S_ISGID
    os.umask(0o007 if shared else 0o077)


def database_url() -> str:
    """The store's SQLAlchemy URL: `MRNLAB_DB`, else `runs.db` in the laboratory's folder."""
    return os.environ.get("MRNLAB_DB") or f"sqlite:///{home() / 'runs.db'}"


def data_dir() -> Path | None:
    """The folder of local copies of the catalogue's corpora (`MRNLAB_DATA`), if one is set."""
    return _folder("MRNLAB_DATA")


def models_dir() -> Path | None:
    """The folder of local copies of the known encoders (`MRNLAB_MODELS`), if one is set."""
    return _folder("MRNLAB_MODELS")


def _folder(variable: str) -> Path | None:
    chosen = os.environ.get(variable)
    # Unlike Path.resolve, it takes a link to itself, which whatever makes the folder refuses.
    return Path(os.path.realpath(os.path.expanduser(chosen))) if chosen else None


PACKAGED_CORPORA = Path(__file__).resolve().parent / "corpora" / "data"
"""The corpora that come with MRN Lab, a folder each."""

OUTSIDE = "lies outside of the folders that this laboratory reads; MRNLAB_DATA_ROOTS names them."
"""The fault of a path that may not be read, as the end of a sentence."""


def may_read(path: str | Path) -> bool:
    """Whether a corpus, an encoder or a mapping may lie there, links followed.

    Everywhere, unless `MRNLAB_DATA_ROOTS` names folders (set apart as in PATH): then under those, under
    MRNLAB_DATA and MRNLAB_MODELS, in the laboratory itself, and in the corpora that come with MRN Lab. For a
    laboratory whose visitors are not the machine's users. What is then opened may be another file: `opened`
    checks and opens in one.
    """
    if "MRNLAB_DATA_ROOTS" not in os.environ:  # thousands of runs are asked about, and links take their time
        return "\0" not in str(path)
    try:
        return _is_inside(os.path.realpath(os.path.expanduser(path)))
    except ValueError:  # no path at all: it holds a zero byte, say
        return False


def _is_inside(resolved: str) -> bool:
    """Whether one may read at that place, of which no part is a link."""
    roots = os.environ.get("MRNLAB_DATA_ROOTS")
    if roots is None:
        return True
    folders = [Path(os.path.expanduser(root)).resolve() for root in roots.split(os.pathsep) if root]
    folders += filter(None, (home(), data_dir(), models_dir(), PACKAGED_CORPORA))
    return any(Path(resolved).is_relative_to(folder) for folder in folders)


def first_outside(folder: Path) -> Path | None:
    """The first unreadable path in this folder and the folders in it; None where there is none.

    For a folder whose files another library opens.
    """
    if "MRNLAB_DATA_ROOTS" not in os.environ:
        return None
    return next((path for path in (folder, *folder.rglob("*")) if not may_read(path)), None)


def opened(path: str | Path) -> BinaryIO:
    """The file that a user names, open to be read: the very file that was checked, links resolved before.

    Raises OSError where it cannot be opened, is no plain file, or one may not read there (`may_read`). A
    device or a pipe is refused: reading it might never end.
    """
    resolved = os.path.realpath(os.path.expanduser(path))
    if not _is_inside(resolved):
        raise PermissionError(errno.EACCES, f"it {OUTSIDE}".removesuffix("."), str(path))
    return open(resolved, "rb", opener=_open_plain)


def _open_plain(resolved: str, flags: int) -> int:
    # Without waiting: a pipe would be waited for until somebody writes into it.
    descriptor = os.open(resolved, flags | os.O_NOFOLLOW | os.O_NONBLOCK)
    if not stat.S_ISREG(os.fstat(descriptor).st_mode):
        os.close(descriptor)
        raise OSError(errno.EINVAL, "it is not a file", resolved)
    return descriptor


def cache_dir(kind: str) -> Path:
    """The folder of the cache of that kind (`encoded`, `features`), made on first use."""
    return _made(home() / "cache" / kind)


def checkpoint_dir(run_id: int) -> Path:
    """The folder of a run's checkpoint (not made here)."""
    return home() / "checkpoints" / str(run_id)


def log_path(run_id: int) -> Path:
    """The file that a run's worker writes its log to."""
    return _made(home() / "logs") / f"run-{run_id}.log"


def own_checkpoint(path: str) -> Path:
    """The path in this laboratory of a checkpoint folder that a store names.

    Of the path only the last name is used: a store that came from elsewhere leads to no other folder, and a
    laboratory that was moved keeps its models.
    """
    return home() / "checkpoints" / _last_name(path)


def own_log(path: str | None) -> Path | None:
    """The path in this laboratory of a log file that a store names; None for no path."""
    return None if path is None else home() / "logs" / _last_name(path)


def upload_dir() -> Path:
    """The folder that uploaded corpora and the mapping files of runs are kept in."""
    return _made(home() / "uploads")


_SPARE = 1_000_000  # bytes left free: the store may lie on the same disk, and must go on writing
_FULL = (errno.ENOSPC, errno.EDQUOT)


@contextmanager
def ensure_disk_space(folder: Path, needs: int, what: str | None = None) -> Iterator[None]:
    """Raises NoRoom where this folder's disk has fewer than about `needs` bytes, or fills up in the block.

    The folder may not exist yet. `what` is written, as in NoRoom.
    """
    # Checked before: a disk filled to its last byte would keep the store from writing too.
    if (free := _free(folder)) < needs + _SPARE:
        raise NoRoom(folder, needs, free, what)
    try:
        yield
    except Exception as error:
        # safetensors hands the system's error number on in words.
        number = re.search(r"\(os error (\d+)\)", str(error))
        if (error.errno if isinstance(error, OSError) else number and int(number[1])) in _FULL:
            raise NoRoom(folder, needs, _free(folder), what) from error
        raise


def _free(folder: Path) -> int:
    """Bytes free where that folder is, or will be made."""
    return shutil.disk_usage(next(path for path in (folder, *folder.parents) if path.exists())).free


@contextmanager
def written_whole(path: Path, needs: int, what: str) -> Iterator[Path]:
    """A temporary path beside `path`, renamed to it at the end of the block; two processes may write at once.

    A failure leaves nothing. Raises NoRoom, as `room`.
    """
    beside = path.with_name(f"{path.stem}.{os.getpid()}.tmp{path.suffix}")
    with ensure_disk_space(path.parent, needs, what):
        try:
            yield beside
            beside.replace(path)
        finally:
            beside.unlink(missing_ok=True)


def _last_name(path: str) -> str:
    name = PurePath(path).name
    # Neither of these may stand for the folder's own parent, or the folder itself.
    return name if name not in ("", "..") else "unnamed"


def _made(folder: Path) -> Path:
    folder.mkdir(parents=True, exist_ok=True)
    return folder
