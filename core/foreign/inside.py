"""The child process of `core.foreign.child`: its tasks, its limits, and the gate to files."""

from __future__ import annotations

import json
import os
import sys
from collections.abc import Callable, Iterable, Mapping
from pathlib import Path
from typing import Any, NoReturn

from core.errors import MRNLabError
from core.foreign import arrow, copies, tables
from core.foreign.child import NO_MEMORY, Refused, opened, reason_of

_ROOT = Path(__file__).resolve().parents[2]
_REFUSED_EVENTS = ("socket.connect", "subprocess.Popen", "os.system", "os.exec", "os.posix_spawn", "os.fork")


def _prove_arrow(content: bytes, kind: str) -> None:
    arrow.prove(content, kind)


def _keep_copy(content: bytes, **given: Any) -> dict[str, str]:
    return copies.keep(**given)


def _prove_tables(content: bytes, **given: Any) -> tuple[str, str] | None:
    return tables.prove(**given)


_TASKS: Mapping[str, Callable[..., Any]] = {
    "arrow": _prove_arrow,
    "copy": _keep_copy,
    "tables": _prove_tables,
}


def run_here(task: str, given: Mapping[str, Any], content: bytes = b"", **_limits: Any) -> Any:
    """The result of the task, in this process and without limits. Raises as `child.run`; may crash."""
    try:
        return _TASKS[task](content, **given)
    except (Refused, MRNLabError, MemoryError):
        raise
    except Exception as error:  # what a library raises on a damaged file is a reason
        raise Refused(reason_of(error)) from error


def main() -> NoReturn:
    """Does the task that standard input describes, and answers in JSON on standard output."""
    answers = os.dup(1)
    os.dup2(os.open(os.devnull, os.O_WRONLY), 1)  # libraries print
    request = json.loads(sys.stdin.buffer.readline())
    content = sys.stdin.buffer.read()
    _limit(request)
    try:
        answer = {"result": run_here(request["task"], request["given"], content)}
    except MemoryError:
        os._exit(NO_MEMORY)
    except Refused as refused:
        answer = {"reason": refused.reason}
    except MRNLabError as error:
        answer = {"sentence": str(error)}
    os.write(answers, json.dumps(answer).encode())
    os._exit(0)  # no destructor of a library sees damaged data


def _limit(request: Mapping[str, Any]) -> None:
    """Limits of memory, time and size of files, and those of `reads`, on this process."""
    if sys.platform != "win32":
        import resource

        limits = {
            resource.RLIMIT_CORE: 0,
            resource.RLIMIT_CPU: int(request["seconds"]),
            # Files that are mapped do not count.
            resource.RLIMIT_DATA: int(request["memory"]),
        }
        if request["writes"] is not None:
            limits[resource.RLIMIT_FSIZE] = int(request["most_written"])
        for which, limit in limits.items():
            _, most = resource.getrlimit(which)
            limit = limit if most == resource.RLIM_INFINITY else min(limit, most)
            resource.setrlimit(which, (limit, limit))
    if request["reads"] is not None:
        copies.imports()  # before the gate: they read what they need of the machine
        sys.addaudithook(_gate(request["reads"], request["folder"], request["writes"]))


def _gate(reads: Iterable[str], folder: str, writes: str) -> Callable[[str, tuple[Any, ...]], None]:
    """An audit hook that lets Python open these files, list that folder, and write to another."""
    files = frozenset(reads)
    code = {
        os.path.realpath(path) for path in (sys.prefix, sys.base_prefix, str(_ROOT / "core"), *sys.path[1:])
    }
    free = (*map(Path, code), Path(writes))

    def refuse(event: str, arguments: tuple[Any, ...]) -> None:
        if event in _REFUSED_EVENTS:
            raise PermissionError(f"a copy of a dataset asks for {event}")
        if event not in ("open", "os.listdir", "os.scandir") or not isinstance(arguments[0], str | bytes):
            return
        path = os.path.realpath(os.fsdecode(arguments[0]))
        if path in files:
            if event == "open":
                opened.append(path)
        elif not (
            (event != "open" and Path(path).is_relative_to(folder))
            or path == os.devnull
            or any(map(Path(path).is_relative_to, free))
        ):
            raise PermissionError(f"{path} is no file of the copy")

    return refuse


if __name__ == "__main__":
    main()
