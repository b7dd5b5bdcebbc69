"""Calls with values that cannot be, of each verb and option: no call ends in a traceback, hangs, is taken for
another, or shows a password.

A sample of the calls, in this process; `python -m tests.fuzz` makes any number of them as processes.
"""

from __future__ import annotations

import os
import shutil
from itertools import islice
from pathlib import Path
from unittest.mock import patch

import pytest
from typer.testing import CliRunner

from jobs.cli import app
from tests.fuzz import PASSWORD, Call, calls, made, make_template, prepare, without_workers
from tests.trained import copy_taggers

_SAMPLE = 60


@pytest.fixture
def template(shared_folder: Path, tmp_path: Path) -> Path:
    """What each call finds in its folder."""
    folder = tmp_path / "template"
    copy_taggers(shared_folder, folder / "home")
    make_template(folder)
    return folder


def test_every_call_is_answered(template: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    # A worker takes the signals of its process.
    drawn = [call for call in islice(calls(1), _SAMPLE) if "worker" not in call.arguments]
    for call in drawn:
        folder = tmp_path / "call"
        with patch.dict(os.environ, prepare(call, template, folder)), without_workers():
            monkeypatch.chdir(folder)
            result = CliRunner().invoke(app, list(call.arguments))
        monkeypatch.chdir(tmp_path)
        shutil.rmtree(folder)
        printed = result.stdout + result.stderr
        assert isinstance(result.exception, SystemExit | None), call
        assert result.exit_code in (0, 1, 2), call
        assert PASSWORD not in printed, call
        assert "Traceback" not in printed, call
        if result.exit_code == 2:
            assert result.stdout == "" or any(verb in call.arguments for verb in _ANSWERS_EACH), call
            assert result.stderr.strip(), call


_ANSWERS_EACH = ("stop", "resume", "retry", "archive", "restore", "priority", "keyword", "delete")
"""The verbs that answer each run by itself: some are done, others refuse."""


@pytest.mark.slow
@pytest.mark.parametrize(
    ("call", "code"),
    [
        (Call(("show", "1", "--json"), "", (), "| true"), 1),
        (Call(("doctor",), "", (), ">/dev/full"), 2),
        (Call(("doctor",), "loop", (), ""), 1),
        (Call(("worker",), "/proc/new", (), ""), 2),
        (Call(("tag", "1", "German lamb ."), "", (), "2>&-"), 0),
        (Call(("launch", "--corpus", "demo", "--tasks", "pos,ner"), "home:logs", (), ""), 2),
    ],
)
def test_a_process_answers(template: Path, call: Call, code: int) -> None:
    ended = made(call, template)
    assert (ended.code, ended.is_well) == (code, True), ended.printed
