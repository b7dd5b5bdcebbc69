"""No call ends in a traceback, hangs, is taken for another, or shows a password.

A sample of the calls; `MRNLAB_TEST_HOSTILE=all` makes all of them (five minutes).
"""

from __future__ import annotations

import os
import random
from pathlib import Path

import pytest

from tests.unit.cli.hostile_calls import PASSWORD, hostile_calls
from tests.unit.cli.terminal import Laboratory

_SAMPLE = 70


def test_every_call_is_answered(lab: Laboratory, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    run = str(lab.finished())
    calls = list(hostile_calls(tmp_path, run))
    if os.environ.get("MRNLAB_TEST_HOSTILE") != "all":
        calls = random.Random(1).sample(calls, _SAMPLE)
    for call in calls:
        if call[:2] == ("delete", "--yes") and call[2] in ("0001", run):
            continue
        result = lab.call(*call)  # an exception is raised as it is
        told = result.stdout + result.stderr
        assert result.exit_code in (0, 1, 2), call
        assert PASSWORD not in told, call
        assert "Traceback" not in told, call
        if result.exit_code == 2:
            assert result.stdout == "" or call[0] in _ANSWERS_EACH, call
            assert result.stderr.strip(), call


_ANSWERS_EACH = ("stop", "resume", "retry", "archive", "restore", "priority", "label", "delete")
"""The verbs that answer each run by itself: some are done, others refuse."""
