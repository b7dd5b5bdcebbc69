"""A task on foreign files in a child process with limits: a crash of it is no crash of ours.

Arrow's libraries crash on damaged files, or fill the memory. The child may use so much memory and so many
seconds; where its task names files, no others are opened by Python in it. It imports nothing of torch.
"""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from core.errors import CorpusError
from core.plain_text import shortened

MEMORY = 1_500_000_000
"""Bytes of memory of a child, beside the content that it is handed."""
SECONDS = 60
"""The seconds of a child, and one more for each two megabytes."""
_BYTES_A_SECOND = 2_000_000
NO_MEMORY = 9
"""The exit code of a child that has no memory left."""
_WATCH_S = 0.2
"""Seconds between two looks at what a child has written."""

_LONGEST_REASON = 300
_ROOT = Path(__file__).resolve().parents[2]

opened: list[str] = []
"""The files among those that its task names which were opened in this process, the last last."""


class Refused(Exception):
    """A foreign file that cannot be read. `reason` says why, without a full stop: `its row 3 is damaged`."""

    def __init__(self, reason: str) -> None:
        super().__init__(reason)
        self.reason = reason


def run(
    task: str,
    given: Mapping[str, Any],
    content: bytes = b"",
    *,
    reads: Sequence[str] | None = None,
    folder: Path | None = None,
    writes: Path | None = None,
    most_written: int = 0,
    size: int = 0,
) -> Any:
    """The result of the task in a child process, which gets the arguments `given` and the `content`.

    reads         the only files, links resolved, that Python may open in the child; None: any
    folder        the folder that it may look through for them
    writes        the folder that the child may write to
    most_written  the most bytes of it
    size          bytes of the files, for the time limit

    Raises Refused where the task does, or a limit or a crash ended it; CorpusError where the task does.
    """
    seconds = SECONDS + (size + len(content)) // _BYTES_A_SECOND
    request = {
        "task": task,
        "given": given,
        "memory": MEMORY + len(content),
        "seconds": seconds,
        "reads": reads,
        "folder": None if folder is None else os.path.realpath(folder),
        "writes": None if writes is None else os.path.realpath(writes),
        "most_written": most_written,
    }
    environment = {
        # Threads take memory, and what the allocators of Arrow reserve would count as used.
        **dict.fromkeys(("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "ARROW_IO_THREADS"), "1"),
        "ARROW_DEFAULT_MEMORY_POOL": "system",
    }
    if writes is not None:
        environment |= {"HF_HOME": str(writes), "HF_DATASETS_CACHE": str(writes), "TMPDIR": str(writes)}
        environment |= {"HF_HUB_OFFLINE": "1", "PYTHONDONTWRITEBYTECODE": "1"}
    command = [sys.executable, "-m", "core.foreign.inside"]
    ends = time.monotonic() + seconds
    with subprocess.Popen(
        command,
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        cwd=_ROOT,
        env=os.environ | environment,
        start_new_session=True,
    ) as process:
        try:
            given_input: bytes | None = json.dumps(request).encode() + b"\n" + content
            while True:
                try:
                    answer, _ = process.communicate(given_input, timeout=_WATCH_S if writes else seconds)
                    break
                except subprocess.TimeoutExpired:
                    given_input = None
                    if time.monotonic() >= ends:
                        raise Refused(f"reading it takes longer than {seconds} seconds") from None
                    if writes is not None and _written(writes) > most_written:
                        raise Refused(_too_large(most_written)) from None
        finally:
            process.kill()
    return _result(answer, process.returncode)


def _too_large(most: int) -> str:
    return f"unpacked it holds more than {most / 1e6:,.0f} MB, which is the most"


def _written(folder: Path) -> int:
    """The bytes of the files in a folder that is being written to."""
    total = 0
    for place, _, names in os.walk(folder):
        for name in names:
            try:
                total += os.lstat(os.path.join(place, name)).st_size
            except FileNotFoundError:  # it has been renamed
                continue
    return total


def _result(answer: bytes, code: int) -> Any:
    try:
        document = json.loads(answer)
    except ValueError:
        raise Refused(_end(code)) from None
    if "sentence" in document:
        raise CorpusError(document["sentence"])
    if "reason" in document:
        raise Refused(document["reason"])
    return document["result"]


def _end(code: int) -> str:
    """How a child ended that did not answer."""
    if code in (-signal.SIGKILL, NO_MEMORY):
        return f"reading it takes more than {MEMORY / 1e6:,.0f} MB of memory"
    if code < 0:
        return f"it is damaged: reading it ended a process by {signal.Signals(-code).name}"
    return f"it is damaged: reading it ended a process with exit code {code}"


def reason_of(error: BaseException) -> str:
    """The first line of an exception's message, or that of its deepest cause, in words fit for a bracket."""
    while error.__cause__ is not None:
        error = error.__cause__
    message = str(error).strip().partition("\n")[0]
    name = type(error).__name__
    return shortened(f"{name}: {message}" if message else name, _LONGEST_REASON)
