"""How many test files run at once, which, and in what order: pytest-xdist's `--dist=loadfile`, told more.

Files that drive a browser count as one file: a page, its app and its browser keep a core busy, and two of
them make each other wait. Files that take long come first, so that small ones are left to even out the ends.
"""

from __future__ import annotations

import os

import pytest
from xdist.scheduler import LoadFileScheduling

__all__ = [
    "pytest_collection_modifyitems",
    "pytest_xdist_auto_num_workers",
    "pytest_xdist_make_scheduler",
]

_BROWSER = ("tests/journeys/", "tests/security/test_markup.py", "tests/security/test_login.py")
_FIRST = (
    *_BROWSER,
    "tests/clusters/",
    "tests/unit/test_killed_workers.py",
    "tests/unit/cli/test_launch_to_tag.py",
    "tests/unit/test_benchmarks.py",
    "tests/unit/test_processes.py",
    "tests/contracts/",
)


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Puts the long files first, in that order."""
    items.sort(key=lambda item: _place(item.nodeid))


def pytest_xdist_auto_num_workers() -> int:
    """One more than there are cores: many tests wait for processes, and others can use that time."""
    return (os.cpu_count() or 1) + 1


def pytest_xdist_make_scheduler(config: pytest.Config, log: object) -> LoadFileScheduling | None:
    """Ours where files are spread over the cores, as they are by default."""
    return _Files(config, log) if config.getvalue("dist") == "loadfile" else None


class _Files(LoadFileScheduling):
    """Spreads files, those with a browser as one."""

    def _split_scope(self, nodeid: str) -> str:
        return "browser" if nodeid.startswith(_BROWSER) else super()._split_scope(nodeid)


def _place(nodeid: str) -> int:
    return next((place for place, start in enumerate(_FIRST) if nodeid.startswith(start)), len(_FIRST))
