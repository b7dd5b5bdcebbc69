"""How many test files run at once, and in what order, on top of pytest-xdist's `--dist=loadfile`.

Files with a browser count as two: those with apps of their own, and those that share an app and a browser.
Files that take long come first, so that small ones even out the ends.
"""

from __future__ import annotations

import os

import pytest
from xdist.scheduler import LoadFileScheduling

_OWN_APPS = (
    "tests/journeys/test_main_job.py",
    "tests/journeys/test_jobs.py",
    "tests/security/test_markup.py",
    "tests/security/test_login.py",
)
_ONE_APP = "tests/journeys/"
_FIRST = (
    *_OWN_APPS,
    _ONE_APP,
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
    """Spreads files, those with a browser as two."""

    def _split_scope(self, nodeid: str) -> str:
        if nodeid.startswith(_OWN_APPS):
            return "browser, own apps"
        return "browser, one app" if nodeid.startswith(_ONE_APP) else super()._split_scope(nodeid)


def _place(nodeid: str) -> int:
    return next((place for place, start in enumerate(_FIRST) if nodeid.startswith(start)), len(_FIRST))
