"""A bad input is answered in one sentence with exit code 2; an error that nobody foresaw, with a report."""

from __future__ import annotations

import os
import sys
from pathlib import Path
from typing import NoReturn

import pytest

from core.errors import StoreError
from core.store import Store
from jobs.cli import main
from jobs.cli.app import UNFORESEEN
from tests.unit.cli.conftest import Laboratory, launch_arguments


class TestBadInput:
    @pytest.mark.parametrize(
        ("options", "words"),
        [
            (("--seeds", ""), ["seed", "empty"]),
            (("--seeds", "0"), ["seeds", "1,2,3"]),
            (("--paradigm", "mtm"), ["paradigm", "mtm", "stl", "mrn"]),
            (("--alignment", "loose"), ["alignment", "loose", "exact"]),
            (("--alignment", "mapping"), ["alignment", "CSV file", "mapping:labels.csv"]),
            (("--alignment", "mapping:nowhere.csv"), ["no file nowhere.csv", "check"]),
            (("--tasks", "ner,height"), ["height", "ner, toy"]),
            (("--tasks", "ner"), ["MRN", "two tasks"]),
            (("--paradigm", "mtl", "--lambda", "0.1"), ["lambda", "MRN"]),
            (("--set", "colour=red"), ["colour", "batch_size"]),
            (("--set", "epochs"), ["FIELD=VALUE"]),
            (("--set", "dropout=0.1", "--set", "dropout=0.2"), ["twice; write --set dropout=0.1,0.2."]),
            (
                ("--set", "lambda=0.1", "--lambda", "0.2"),
                ["lambda is given twice; write --set lambda=0.2,0.1"],
            ),
            (("--set", "seed=1", "--seeds", "2,3"), ["seed is given twice; write --seeds 1,2,3."]),
            (("--set", "learn=task", "--set", "learn=label"), ["learn is given twice; give it once."]),
            (("--set", "tasks=ner"), ["tasks is given twice; give it once."]),
            (("--preset", "mine"), ["mine", "dissertation"]),
            (("--columns", "ner,toy"), ["tokens"]),
            (("--lambda", "1_0"), ["lambda", "'1_0' is not a number"]),
            (("--epochs", "9" * 5000), ["epochs", "(5,000 characters)"]),
            (("--seeds", "1-10000", "--epochs", "1,2"), ["more than 10,000 runs"]),
            (("--priority", "1_0"), ["--priority", "1_0", "from -1,000 to 1,000"]),
            (("--encoder", "a" * 300), ["a" * 300]),
            (("--alignment", f"mapping:{'a' * 300}"), ["cannot be read", "too long"]),
            (("--sweep", "\udcff"), ["not UTF-8", "\\udcff"]),
            (("--encoder", "no-such/encoder"), ["no-such/encoder"]),
        ],
    )
    def test_options(self, lab: Laboratory, corpus: Path, options: tuple[str, ...], words: list[str]) -> None:
        sentence = lab.refusal(*launch_arguments(corpus), *options)
        for word in words:
            assert word in sentence
        assert lab.started == 0

    def test_a_corpus_that_cannot_be_read_is_named_with_its_line(self, lab: Laboratory, corpus: Path) -> None:
        (corpus / "train.conll").write_text("EU B-ORG X\nIt O\n")
        assert f"{corpus / 'train.conll'}, line 2: expected 3 col" in lab.refusal(*launch_arguments(corpus))

    @pytest.mark.parametrize("value", ["9" * 6000, ", ".join(["abcdefgh"] * 700)])
    @pytest.mark.parametrize(
        "call",
        [
            *(("show", ""), ("runs", ""), ("results", "--format", ""), ("", ""), ("import", "")),
            *(("--engine", "", "runs"), ("study", ""), ("study", "priors", "--report", "")),
            *(("launch", "--corpus", ""), ("launch", "--corpus", "demo", "--set", "", "--tasks", "pos,ner")),
            *(("launch", "--corpus", "demo", option, "") for option in ("--preset", "--encoder", "--tasks")),
            ("tag", "1", "--layout", "", "--file", "f"),
        ],
    )
    def test_a_long_value_is_not_echoed_whole(
        self, lab: Laboratory, call: tuple[str, ...], value: str
    ) -> None:
        lab.finished()
        refused = lab.call(*(word or value for word in call))
        assert refused.exit_code == 2
        assert 0 < len(refused.output) < 2500
        assert "Value error" not in refused.output

    @pytest.mark.parametrize("number", [str(2**63), "9" * 5000, "-1", "1_0", " 1", "\u0661", "1.0", "one"])
    def test_what_is_no_number_of_a_run(self, lab: Laboratory, number: str) -> None:
        assert "is not the number of a run" in lab.refusal("show", "--", number)

    @pytest.mark.parametrize(
        ("arguments", "words"),
        [
            (("launch", "--tasks", "pos,ner"), "corpus"),
            (("runs", "--state", "asleep"), "no state"),
            (("launch", "--corpus", "joined:demo", "--tasks", "pos,ner"), "joins one corpus alone"),
            (
                ("launch", "--corpus", "simulated:demo?task=ner&tasks=3&alpha=1_0", "--tasks", "a,b"),
                "from 0 to 1",
            ),
            (("runs", "--filter", "created<1_0d"), "takes a day such as"),
            (("runs", "--limit", "1_0"), "--limit"),
            (("study", "priors", "--dry-run", "--seeds", "2147483648"), "--seeds"),
            (("study", "priors", "--dry-run", "--setting", ""), "--setting: '' is not one of"),
            (("import", "a" * 300), "too long for the name of a file"),
            (("import", "~nobody-here"), "There is no folder"),
            (("export", "1", "a" * 300), "too long for the name of a file"),
            (("backup", "a" * 300), "too long for the name of a file"),
            (("backup", "/dev/null", "--force"), "is not a file"),
            (("backup", "loop"), "a link that leads to itself"),
            (("export", "1", "loop/x"), "a link that leads to itself"),
            (("launch", "--corpus", "loop"), "loop"),
            (("--db", "sqlite:///loop/runs.db", "runs"), "a link that leads to itself"),
            (("queue", "drain", "--host", "a\nb"), "is not the name of a machine"),
            (("--db", f"sqlite:///{'a' * 300}", "runs"), "too long for the name of a file"),
            (("--db", "sqlite:///a.db?timeout=x", "runs"), "check its URL"),
            (("--db", "sqlite+aiosqlite:///a.db", "runs"), "driver that is not installed"),
            *(
                (("--db", url, *verb), "name a file: sqlite:///runs.db")
                for url in (
                    *("sqlite://", "sqlite:///", "sqlite:///:memory:", "sqlite+pysqlite:///:memory:"),
                    *("sqlite://?timeout=1", "sqlite:///file::memory:?cache=shared&uri=true"),
                    *("sqlite:///file:x?mode=memory&uri=true", "sqlite:///file:/x?vfs=memdb&uri=true"),
                )
                for verb in (("launch", "--corpus", "demo", "--wait"), ("runs",), ("worker",))
            ),
        ],
    )
    def test_what_cannot_be(
        self,
        lab: Laboratory,
        arguments: tuple[str, ...],
        words: str,
        tmp_path: Path,
        monkeypatch: pytest.MonkeyPatch,
    ) -> None:
        monkeypatch.chdir(tmp_path)
        Path("loop").symlink_to("loop")
        assert words in lab.refusal(*arguments)

    def test_files_that_never_end(self, lab: Laboratory, tmp_path: Path) -> None:
        pipe = tmp_path / "pipe.conll"
        os.mkfifo(pipe)
        run = lab.finished()
        with lab.store.transaction() as connection:
            connection.exec_driver_sql("UPDATE runs SET checkpoint = 'x'")
        for file in ("/dev/zero", str(pipe)):
            assert "is not a file" in lab.refusal("tag", str(run), "--file", file)
        assert "too long" in lab.refusal("tag", str(run), "--file", "a" * 300)


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


@pytest.mark.parametrize(
    ("error", "code"),
    [(KeyboardInterrupt(), 130), (BrokenPipeError(32, "gone"), 1), (StoreError("The store is busy."), 2)],
)
def test_errors_that_were_foreseen_have_their_own_codes(
    monkeypatch: pytest.MonkeyPatch, error: BaseException, code: int
) -> None:
    with pytest.raises(SystemExit) as ended:
        _call(monkeypatch, error, "runs")
    assert ended.value.code == code
