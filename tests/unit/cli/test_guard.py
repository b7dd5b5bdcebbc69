"""An error that nobody foresaw: one sentence, exit code 70, the details in a file without passwords."""

from __future__ import annotations

import re
import stat
import sys
from pathlib import Path
from typing import NoReturn

import pytest

from core.store import Store
from jobs.cli import main
from jobs.cli.app import UNFORESEEN


def _call(monkeypatch: pytest.MonkeyPatch, error: BaseException, *arguments: str) -> None:
    def fail(*_arguments: object, **_named: object) -> NoReturn:
        raise error

    monkeypatch.setattr(Store, "open", fail)
    monkeypatch.setattr(sys, "argv", ["mrnlab", *arguments])
    main()


def test_one_sentence_and_a_file(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], laboratory: Path
) -> None:
    url = "postgresql://me:s3cret@host/db"
    monkeypatch.setenv("MRNLAB_ARTEFACTS", "s3://key:0ther@bucket")
    with pytest.raises(SystemExit) as ended:
        _call(monkeypatch, ZeroDivisionError(f"no {url}, s3cret, 0ther"), "--db", url, "runs", "--json")
    assert ended.value.code == UNFORESEEN == 70
    told = capsys.readouterr()
    assert told.out == ""
    (sentence,) = told.err.splitlines()
    assert "ZeroDivisionError" in sentence
    found = re.search(rf"({re.escape(str(laboratory / 'logs'))}/error-\S+\.txt)", sentence)
    assert found is not None
    file = Path(found[1])
    details = file.read_text()
    assert "Traceback" in details
    assert "ZeroDivisionError: no postgresql://me:***@host/db, ***, ***" in details
    for secret in ("s3cret", "0ther"):
        assert secret not in details + told.err
    assert not file.stat().st_mode & (stat.S_IRWXG | stat.S_IRWXO)


def test_without_a_folder_to_write_to(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def no_file(*_arguments: object, **_named: object) -> NoReturn:
        raise PermissionError("no")

    monkeypatch.setattr(Path, "mkdir", no_file)
    with pytest.raises(SystemExit) as ended:
        _call(monkeypatch, ZeroDivisionError("no"), "runs")
    assert ended.value.code == UNFORESEEN
    assert "ZeroDivisionError: no" in capsys.readouterr().err


@pytest.mark.parametrize(("error", "code"), [(KeyboardInterrupt(), 130), (BrokenPipeError(32, "gone"), 1)])
def test_ctrl_c_and_closed_pipes_stay_as_they_are(
    monkeypatch: pytest.MonkeyPatch, laboratory: Path, error: BaseException, code: int
) -> None:
    with pytest.raises(SystemExit) as ended:
        _call(monkeypatch, error, "runs")
    assert ended.value.code == code
    assert not (laboratory / "logs").exists()
