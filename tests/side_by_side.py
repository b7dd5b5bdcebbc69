"""How many test files run at once, and in what order, on top of pytest-xdist's `--dist=loadfile`.

Files with a browser count as two that take equally long, so that another worker has tests that compute while
these wait for pages. Tests of some files count by themselves. What takes long comes first, so that small ones
even out the ends.
"""

from __future__ import annotations

import os
from pathlib import Path

import pytest
from xdist.scheduler import LoadFileScheduling

_FIRST_BROWSER = (
    "tests/journeys/test_main_job.py",
    "tests/journeys/test_everywhere.py",
    "tests/journeys/test_starved.py",
    "tests/security/test_login.py",
)
_SECOND_BROWSER = ("tests/journeys/", "tests/security/test_markup.py")
_APART = (
    "tests/unit/transfer/test_formulas.py",
    "tests/unit/test_benchmarks.py",
    "tests/unit/test_recorded_studies.py",
    "tests/unit/models/test_encoder_types.py",
)
FIRST = (
    *_FIRST_BROWSER,
    *_SECOND_BROWSER,
    "tests/unit/worker/test_killed_workers.py",
    "tests/clusters/",
    *_APART,
    "tests/unit/cli/test_",
    "tests/unit/worker/test_processes.py",
    "tests/unit/training/test_resuming.py",
    "tests/unit/tasks/test_text_tasks.py",
    "tests/pages/",
    "tests/security/test_foreign_files.py",
    "tests/unit/exchange/test_exchange.py",
    "tests/unit/test_library.py",
    "tests/unit/tasks/test_sentence_labels.py",
    "tests/unit/corpora/test_real.py",
    "tests/properties/",
    "tests/unit/models/test_task_embedding.py",
    "tests/unit/tasks/test_task_folders.py",
    "tests/unit/transfer/test_predictors.py",
    "tests/unit/studies/test_until_decided.py",
    "tests/unit/models/test_word_models.py",
)


def only_slow(config: pytest.Config) -> bool:
    """Whether none but slow tests were asked for."""
    return bool(config.option.markexpr == "slow")


def pytest_ignore_collect(collection_path: Path, config: pytest.Config) -> bool | None:
    """Where only slow tests are asked for, a file without one is not imported."""
    is_tests = collection_path.name.startswith("test_") and collection_path.suffix == ".py"
    if is_tests and only_slow(config) and "mark.slow" not in collection_path.read_text(encoding="utf-8"):
        return True
    return None


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Puts the long files first, in that order."""
    items.sort(key=lambda item: _place(item.nodeid))


def pytest_xdist_auto_num_workers(config: pytest.Config) -> int:
    """As many as there are cores. One more for slow tests: two browsers, workers and clusters leave the cores
    idle half of the time.
    """
    return (os.cpu_count() or 1) + only_slow(config)


def pytest_xdist_make_scheduler(config: pytest.Config, log: object) -> LoadFileScheduling | None:
    """Ours where files are spread over the cores, as they are by default."""
    return _Files(config, log) if config.getvalue("dist") == "loadfile" else None


class _Files(LoadFileScheduling):
    """Spreads files, those with a browser as two, and the tests of some by themselves."""

    def _split_scope(self, nodeid: str) -> str:
        if nodeid.startswith(_FIRST_BROWSER):
            return "first browser"
        if nodeid.startswith(_SECOND_BROWSER):
            return "second browser"
        return nodeid if nodeid.startswith(_APART) else super()._split_scope(nodeid)


def _place(nodeid: str) -> int:
    return next((place for place, start in enumerate(FIRST) if nodeid.startswith(start)), len(FIRST))
