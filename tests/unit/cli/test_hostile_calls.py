"""Calls with values that cannot be, of each verb and option: no call ends in a traceback, hangs, is taken for
another, or shows a password.

A sample of the calls; `MRNLAB_TEST_HOSTILE=all` makes all of them (five minutes).
"""

from __future__ import annotations

import os
import random
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.unit.cli.conftest import Laboratory

_SAMPLE = 70
PASSWORD = "s3cretW0rd"  # in every database URL below

_LONG = "9" * 5000
_INTEGERS = (
    *("", " ", "1_0", " 1", "+1", "1.0", "1e0", "0x1", "١", "²", "−1", "0", "-1", "nan", "1\n2", "1,2", "*"),
    *(str(2**31), str(2**63), "1" + "0" * 40, _LONG, f"-{_LONG}"),
)
_NUMBERS = (
    *("", "much", "1_0", "١", "0x1p3", "-inf", "nan", "Infinity", "1e", "1e400", "1,", "1e-400", "-1", "0"),
    *("--", "1 0", "½", "1.2.3", ",,", "0.1;0.2", f"0.{_LONG}", _LONG),
)
_LISTS = (*_NUMBERS, ",".join(["0.1"] * 5000), ",".join(map(str, range(1, 20_000))))
_SEEDS = (
    *("", "0", "-1", "1-", "-", "5-1", "1-1-1", "1..5", "1_0", "١-٣", "1-10001", "0-999999999999", "1–3,x"),
    *(_LONG, f"1-{_LONG}", "2147483648", "1-10000,10001-20000,20001-30000", "1e3", ",", "nan"),
)
_NAME_WORDS = r"""
. .. / ~ ~nobody-here ~nobody-here/x - -- 💥 <b> %s {} ' " \ C:\x con /dev/zero /dev/null /proc/self/mem
/etc/passwd /etc/shadow
"""
_NAMES = (
    *_NAME_WORDS.split(),
    *("", " ", "a" * 300, "a/" * 3000, "../" * 50, "a\nb", "\x1b[2J", "\u202e", "\udcff\udcfe", "\ud800"),
)
_DERIVED_WORDS = """
joined:demo joined: joined:+ joined:demo+demo joined:demo+ apart: apart:demo x:demo
apart:demo?tokens=1_0 apart:demo?tokens= apart:demo?tokens=0 apart:demo?tokens=5,5,5,5,5,5,5,5,5
demo?train=١ demo?train=-1 demo?train=1e3 demo?train=5&train=5 demo?x=1 demo? demo?&
simulated:demo?task=ner&tasks=5&alpha=1_0 simulated:demo simulated:demo?task=x&tasks=2
simulated:demo?task=ner&tasks=99999999 simulated:demo?task=ner&tasks=5&alpha=nan
joined:joined:demo+demo-pos-a apart:apart:demo?tokens=5 joined:demo?train=5 demo?train=1000000000
"""
_DERIVED = (*_DERIVED_WORDS.split(), f"apart:demo?tokens={_LONG}", "joined:" + "+".join(["demo"] * 500))
_FILTERS_WORDS = r"""
created<99999999999999999d created<1_0d created<٣d created<-1d created<nand created>9999-12-31
created>0001-01-01 created:0000-00-00 created>٢٠٢٦-٠١-٠١ created:* created<* lambda<1_0 lambda<nan
seed:1e400 run:1.5 ١ run: run:, : < - -- " "a keyword:" x:1 state:asleep archived:maybe ( [ \ sweep:\ run:٣
"""
_FILTERS = (
    *_FILTERS_WORDS.split(),
    *(f"created<{_LONG}d", f"lambda<{_LONG}", f"run:{_LONG}", f"-{_LONG}", "sweep:" + "*a" * 40 + "b"),
    *("a" * 9000, "keyword:\ud800", "seed:" + ",".join(["1"] * 5000)),
)
_URL_WORDS = """
postgresql://me:PW@host:port/db postgresql://me:PW@host:99999999/db postgresql://me:PW@[::1/db
postgresql://me:PW@ postgresql:/me:PW@host/db me:PW@host/db postgresql://me:PW/word@host/db
postgresql://me:PW@127.0.0.1:1/db postgresql://me:PW@127.0.0.1:1/db?nonsense=1
postgresql://127.0.0.1:1/db?password=PW postgresql://me@127.0.0.1:1/db?password=PW&password=PW
postgresql+nodriver://me:PW@h/db oracle://me:PW@h/db sqlite://me:PW@host/db ://me:PW@h
postgresql://me:PW@PW:PW/db postgres://me:PW@127.0.0.1:1/db postgresql://me:PW%@127.0.0.1:1/db
postgresql+asyncpg://me:PW@127.0.0.1:1/db sqlite+pysqlcipher://:PW@/a.db sqlite:///~nobody-here/x.db
sqlite:///a.db?x=PW&y=1 sqlite:///file:x?mode=ro&uri=true sqlite:////dev/zero sqlite:////proc/x.db
sqlite:///. sqlite sqlite: sqlite+nodriver:///a.db
"""
_URLS = (
    *(url.replace("PW", PASSWORD) for url in _URL_WORDS.split()),
    *(f"postgresql://me:{PASSWORD}@{rest}" for rest in ("h\ud800/db", "h h/db", "h" * 300 + "/db")),
    *("sqlite:///" + "a/" * 3000, "sqlite:///a\ud800", "", " "),
)
_RUN_VERBS = ("show", "metrics", "relations", "resume", "retry", "archive", "restore", "stop", "results")


def hostile_calls(folder: Path, run: str) -> Iterator[tuple[str, ...]]:
    """The calls. `run` is the number of a run; `folder` gets a pipe and a file that is no corpus."""
    pipe = folder / "pipe.conll"
    os.mkfifo(pipe)
    (folder / "latin.txt").write_bytes("Müller kommt .".encode("latin-1"))
    (folder / "empty.txt").write_text("")
    files = (*_NAMES, str(pipe), str(folder), str(folder / "latin.txt"), str(folder / "empty.txt"))

    for number in _INTEGERS:
        yield from ((verb, number) for verb in _RUN_VERBS)
        yield "delete", "--yes", number
        yield "keyword", number, "--add", "x"
        yield "tag", number, "Hello ."
        yield "export", number, str(folder / "out")
        yield "priority", "--", number, run
        yield "priority", "--", "1", number
        yield "runs", "--limit", number
        yield "queue", "--limit", number
        yield "show", run, "--log", number
        yield "study", "priors", "--dry-run", "--part", "none", "--seeds", number
        yield "relations", run, "--step", number
        for option in ("--priority", "--retries"):
            yield *_launch(), option, number
    for text in _LISTS:
        for option in ("--lambda", "--fraction", "--epochs"):
            yield *_launch(), option, text
        for field in ("dropout", "batch_size", "snapshots", "shrinkage", "seed", "lr_heads", "weight_decay"):
            yield *_launch(), "--set", f"{field}={text}"
    for text in _SEEDS:
        yield *_launch(), "--seeds", text
    for name in (*files, *_DERIVED):
        yield "launch", "--corpus", name, "--tasks", "pos,chunk,ner"
    for name in files:
        yield *_launch(), "--encoder", name
        yield *_launch(), "--encoder", f"{name}+bilstm"
        yield *_launch(), "--alignment", f"mapping:{name}"
        yield *_launch(), "--sweep", name, "--paradigm", "none"
        yield "launch", "--corpus", "demo", "--tasks", name
        yield "launch", "--corpus", "demo", "--columns", name, "--tasks", "pos,chunk,ner"
        yield *_launch(), "--paradigm", name
        yield *_launch(), "--prior", name
        yield *_launch(), "--preset", name
        yield *_launch(), "--set", name
        yield *_launch(), "--set", f"device={name}"
        yield *_launch(), "--set", f"learn={name}"
        yield *_launch(), "--set", f"{name}=1"
        yield "--engine", name, "runs"
        yield "tag", run, "--file", name
        yield "tag", run, "--file", name, "--format", "json", "--columns", "tokens,pos"
        yield "tag", run, name
        yield "import", name
        yield "import", name, "--json"
        yield "export", run, name
        yield "export", run, str(folder / "out"), "--tasks", name
        yield "backup", name
        yield "keyword", "99", "--add", name
        yield "runs", "--state", name
        yield "stop", "--sweep", name
        yield "metrics", run, name
        yield "metrics", run, "loss", "--task", name, "--split", name
        yield "relations", run, "--mode", name
        yield "results", "--format", name
        yield "results", "--split", name
        yield "study", name, "--dry-run"
        yield "study", "priors", "--dry-run", "--setting", name
        yield "queue", "undrain", "--host", name
        yield (name,)
    for text in (*_FILTERS, *_NAMES):
        yield "runs", "--filter", text
    for url in _URLS:
        yield "--db", url, "runs"
        yield "--db", url, "doctor", "--json"
        yield "backup", url
    yield *_launch(), "--seeds", "1-10000", "--epochs", ",".join(map(str, range(1, 25)))
    many = ",".join(map(str, range(1, 101)))
    yield *_launch(), "--epochs", many, "--set", f"batch_size={many}", "--set", f"snapshots={many}"


def _launch() -> tuple[str, ...]:
    return "launch", "--corpus", "demo", "--tasks", "pos,chunk,ner", "--encoder", "minilm"


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
        printed = result.stdout + result.stderr
        assert result.exit_code in (0, 1, 2), call
        assert PASSWORD not in printed, call
        assert "Traceback" not in printed, call
        if result.exit_code == 2:
            assert result.stdout == "" or call[0] in _ANSWERS_EACH, call
            assert result.stderr.strip(), call


_ANSWERS_EACH = ("stop", "resume", "retry", "archive", "restore", "priority", "keyword", "delete")
"""The verbs that answer each run by itself: some are done, others refuse."""
