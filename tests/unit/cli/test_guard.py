"""An error that nobody foresaw: exit code 70, and a report without passwords."""

from __future__ import annotations

import sys
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


def test_a_report_without_passwords(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    url = "postgresql://me:s3cret@host/db"
    monkeypatch.setenv("MRNLAB_ARTEFACTS", "s3://key:0ther@bucket")
    with pytest.raises(SystemExit) as ended:
        _call(monkeypatch, ZeroDivisionError(f"no {url}, s3cret, 0ther"), "--db", url, "runs", "--json")
    assert ended.value.code == UNFORESEEN == 70
    printed = capsys.readouterr()
    assert printed.out == ""
    assert printed.err.startswith("mrnlab met an unknown error (ZeroDivisionError); please report this:")
    assert "Traceback" in printed.err
    assert "ZeroDivisionError: no postgresql://me:***@host/db, ***, ***" in printed.err
    assert "Call: ['mrnlab', '--db', 'postgresql://me:***@host/db'" in printed.err
    for secret in ("s3cret", "0ther"):
        assert secret not in printed.err


@pytest.mark.parametrize(("error", "code"), [(KeyboardInterrupt(), 130), (BrokenPipeError(32, "gone"), 1)])
def test_ctrl_c_and_closed_pipes_stay_as_they_are(
    monkeypatch: pytest.MonkeyPatch, error: BaseException, code: int
) -> None:
    with pytest.raises(SystemExit) as ended:
        _call(monkeypatch, error, "runs")
    assert ended.value.code == code
