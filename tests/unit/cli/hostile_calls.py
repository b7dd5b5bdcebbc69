"""Calls of `mrnlab` that no honest user makes: each verb and option with values that cannot be."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path

__all__ = ["PASSWORD", "hostile_calls"]

PASSWORD = "s3cretW0rd"
"""Stands in every database URL below. No answer may show it."""

_LONG = "9" * 5000
_INTEGERS = (
    *("", " ", "one", "1_0", " 1", "1 ", "+1", "1.0", "1e0", "0x1", "0b1", "١", "²", "１", "−1", "∞"),
    *("0", "-1", "-0", "nan", "inf", "true", "1\n", "1\n2", "1,2", "1;2", "[1]", "*"),
    *(str(2**31), str(2**32), str(2**63 - 1), str(2**63), str(2**64), "1" + "0" * 40, _LONG, f"-{_LONG}"),
)
_NUMBERS = (
    *("", "much", "1_0", "1_0.5", "١", "0x1p3", "inf", "-inf", "nan", "NaN", "Infinity", "1e", "1e400", "1,"),
    *("1e-400", "-1", "0", "--", "1 0", "½", "1.2.3", "1e5_0", ",", ",,", "0.1;0.2", f"0.{_LONG}", _LONG),
)
_LISTS = (*_NUMBERS, ",".join(["0.1"] * 5000), ",".join(map(str, range(1, 20_000))))
_SEEDS = (
    *("", "0", "-1", "1-", "-", "5-1", "1-1-1", "1..5", "1_0", "١-٣", "1-10001", "0-999999999999", "1–3,x"),
    *(_LONG, f"1-{_LONG}", "2147483648", "1-10000,10001-20000,20001-30000", "1e3", "1.0", ",", "nan"),
)
_NAMES_WORDS = r"""
. .. / ~ ~nobody-here ~nobody-here/x - -- 💥 <b> %s {} ' " \ C:\x con /dev/zero /dev/null /proc/self/mem
/etc/passwd /etc/shadow
"""
_NAMES = (
    *_NAMES_WORDS.split(),
    *(
        "",
        " ",
        "a" * 300,
        "a/" * 3000,
        "a" * 5000,
        "../" * 50,
        "a\nb",
        "\x1b[2J",
        "\u202e",
        "\udcff\udcfe",
        "\ud800",
    ),
)
_DERIVED_WORDS = r"""
joined:demo joined: joined:+ joined:demo+demo joined:demo+ apart: apart:demo x:demo
apart:demo?tokens=1_0 apart:demo?tokens= apart:demo?tokens=0 apart:demo?tokens=5,5,5,5,5,5,5,5,5
demo?train=١ demo?train=-1 demo?train=1e3 demo?train=5&train=5 demo?x=1 demo? demo?&
simulated:demo?task=ner&tasks=5&alpha=1_0 simulated:demo simulated:demo?task=x&tasks=2
simulated:demo?task=ner&tasks=99999999 simulated:demo?task=ner&tasks=5&alpha=nan
joined:joined:demo+demo-pos-a apart:apart:demo?tokens=5 joined:demo?train=5 demo?train=1000000000
"""
_DERIVED = (
    *_DERIVED_WORDS.split(),
    *(f"apart:demo?tokens={_LONG}", "+".join(["demo"] * 500), "joined:" + "+".join(["demo"] * 500)),
)
_FILTERS_WORDS = r"""
created<99999999999999999d created<1_0d created<٣d created<-1d created<1e9d created<nand created<infd
created>9999-12-31 created>0001-01-01 created:9999-12-31 created:0000-00-00 created>2026-W01
created>٢٠٢٦-٠١-٠١ ended>99999-01-01 created:* created<* lambda<1_0 lambda<١ lambda<nan lambda<inf
seed:1e400 run:1.5 ١ run: run:, : < - -- " "a tag:" x:1 state:asleep archived:maybe AND ( [ \ sweep:\
minutes<1e-400 run:٣
"""
_FILTERS = (
    *_FILTERS_WORDS.split(),
    *(f"created<{_LONG}d", f"lambda<{_LONG}", f"run:{_LONG}", _LONG, f"-{_LONG}", "lambda:" + "1" * 400),
    *(
        "tag:" + "*" * 60,
        "sweep:" + "*a" * 40 + "b",
        "a" * 9000,
        "tag:\ud800",
        "seed:" + ",".join(["1"] * 5000),
    ),
)
_URL_WORDS = """
postgresql://me:PW@host:port/db postgresql://me:PW@host:99999999/db postgresql://me:PW@[::1/db
postgresql://me:PW@/db postgresql://me:PW@ postgresql:/me:PW@host/db me:PW@host/db
postgresql://me:PW/word@host/db postgresql://me:PW@127.0.0.1:1/db?connect_timeout=x
postgresql://me:PW@127.0.0.1:1/db postgresql://me:PW@127.0.0.1:1/db?nonsense=1
postgresql://127.0.0.1:1/db?password=PW postgresql://me@127.0.0.1:1/db?password=PW&password=PW
postgresql+nodriver://me:PW@h/db oracle://me:PW@h/db mysql://me:PW@h/db sqlite://me:PW@host/db
sqlite://me:PW@/x.db ://me:PW@h postgresql://me:PW@h:1:2/db postgresql://me:PW@PW:PW/db
postgresql+psycopg://me:PW@127.0.0.1:1/ postgres://me:PW@127.0.0.1:1/db http://me:PW@h/db
postgresql://me:PW%@127.0.0.1:1/db postgresql+asyncpg://me:PW@127.0.0.1:1/db
postgresql://me:PW@127.0.0.1:1/db?sslpassword=PW&sslmode=x sqlite+pysqlcipher://:PW@/a.db
sqlite:///~nobody-here/x.db sqlite:///a.db?x=PW&y=1 sqlite:///a.db?timeout=x
sqlite:///file:x?mode=ro&uri=true sqlite:///:memory:?x=1 sqlite:////dev/zero sqlite:////dev/null
sqlite:////proc/x.db sqlite://// sqlite:///. sqlite sqlite: sqlite+nodriver:///a.db
sqlite+aiosqlite:///a.db
"""
_URLS = (
    *(url.replace("PW", PASSWORD) for url in _URL_WORDS.split()),
    *(
        url.replace("PW", PASSWORD)
        for url in (
            "postgresql://me:PW@h\ud800/db",
            "postgresql://me:PW@127.0.0.1:1/" + "d" * 5000,
            "postgresql://me:PW@" + "h" * 300 + "/db",
            "postgresql://me:PW@h h/db",
            "sqlite:///" + "a" * 300,
            "sqlite:///" + "a/" * 3000,
            "sqlite:///a\ud800",
        )
    ),
    *("", " "),
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
        yield "label", number, "--add", "x"
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
        yield "label", "99", "--add", name
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
