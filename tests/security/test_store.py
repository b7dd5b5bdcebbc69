"""The store: SQL by bound parameters alone, hostile text in every field, files and passwords of one's own."""

from __future__ import annotations

import ast
import re
import stat
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import psutil
import pytest
from typer.testing import CliRunner

from core.errors import MRNLabError
from core.plain_text import without_passwords
from core.store import Store
from jobs.cli.app import app
from jobs.engines.local import LocalEngine
from jobs.run_filter import parse_filter
from tests.making import config
from tests.patience import PATIENCE_S

ROOT = Path(__file__).resolve().parents[2]
_SQL = re.compile(r"\s*(SELECT|INSERT|UPDATE|DELETE|CREATE|DROP|ALTER|PRAGMA|COPY|ATTACH|WITH|VACUUM)\b")
# A PRAGMA takes no parameters in SQLite. None of these comes from a user: seconds and two journal modes.
_WITHOUT_PARAMETERS = {
    "engine.py": {"PRAGMA busy_timeout = ", "PRAGMA journal_mode = ", "PRAGMA synchronous = "},
}

HOSTILE = (
    "'; DROP TABLE runs; --", '" OR 1=1 --', "%", "_", "\\", "') OR ('1'='1", ":name", "?", "%s", "{0}",
    "\x00", "Robert'); DELETE FROM runs;--", "$$", "::text",
)  # fmt: skip


def _built(path: Path) -> Iterator[str]:
    """The beginnings of SQL that a file puts together out of pieces."""
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        first: ast.AST | None = None
        if isinstance(node, ast.JoinedStr) and len(node.values) > 1:
            first = node.values[0]
        elif isinstance(node, ast.BinOp) and isinstance(node.op, ast.Add | ast.Mod):
            first = node.left
        elif (
            isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute) and node.func.attr == "format"
        ):
            first = node.func.value
        if isinstance(first, ast.Constant) and isinstance(first.value, str) and _SQL.match(first.value):
            yield first.value


def _unknown(path: Path) -> Iterator[str]:
    """Calls of what runs SQL as text, with anything but a text that stands there."""
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        if isinstance(node, ast.Call) and ast.unparse(node.func).rpartition(".")[2] in (
            "text",
            "exec_driver_sql",
        ):
            given = node.args[0]
            choice = isinstance(given, ast.IfExp) and [given.body, given.orelse]
            if not all(isinstance(one, ast.Constant) for one in choice or [given]):
                yield ast.unparse(given)


def test_sql_is_never_put_together() -> None:
    files = [path for part in ("core", "jobs", "dashboard") for path in (ROOT / part).rglob("*.py")]
    found = {path.name: built for path in files if (built := set(_built(path)))}
    assert found == _WITHOUT_PARAMETERS
    unknown = {path.name: list(_unknown(path)) for path in (ROOT / "core" / "store").rglob("*.py")}
    # The steps of a migration, constants of the same file.
    assert {name: given for name, given in unknown.items() if given} == {"migrations.py": ["statement"]}


def test_the_look_for_sql_finds_what_it_looks_for(tmp_path: Path) -> None:
    file = tmp_path / "bad.py"
    file.write_text(
        'text(f"SELECT {x}")\ntext("DELETE FROM " + x)\ntext("UPDATE %s" % x)\ntext("DROP {}".format(x))\n'
    )
    assert len(list(_built(file))) == len(list(_unknown(file))) == 4


@pytest.mark.parametrize("text", HOSTILE)
def test_hostile_text_is_kept_and_found_as_it_is(text: str) -> None:
    store = Store.open()
    sweep = f"a {text} launch".replace("\x00", "")
    plain, run_id = store.add_runs([config(seed=1), config(seed=2)], sweep=sweep)
    store.add_tags([run_id], ["tag " + text.replace("\x00", "").replace(",", " ")])
    run = store.run(run_id)
    assert run.sweep == sweep
    for asked in (f'"{text}"', f"sweep:{text}*", f'-"{text}"'):
        try:
            wanted = parse_filter(asked)
        except MRNLabError:
            continue  # a sentence, and no SQL
        assert {one.id for one in store.runs(archived=None) if wanted.matches(one)} <= {plain, run_id}
    before, *_ = sweep.split('"')
    assert parse_filter(f'sweep:"{before}"').matches(run)
    assert len(store.runs()) == 2


def _modes(folder: Path) -> dict[str, int]:
    return {path.name: stat.S_IMODE(path.stat().st_mode) for path in [folder, *folder.rglob("*")]}


_LEAVE_FILES = (
    "from jobs.cli import main\nimport os, sys\nfrom core.paths import home, log_path, upload_dir\n"
    "for os.environ['MRNLAB_HOME'] in sys.argv[1:]:\n"
    "    sys.argv = ['mrnlab', 'runs']\n"
    "    try: main()\n    except SystemExit: pass\n"
    "    log_path(1).write_text('x'); (upload_dir() / 'a').write_text('x')\n"
    "    (home() / 'backup.db').write_text('x')\n"
)


@pytest.mark.skipif(sys.platform == "win32", reason="no modes of files there")
def test_other_users_can_read_nothing_that_a_laboratory_makes(tmp_path: Path) -> None:
    """But for its group, where a laboratory is shared."""
    alone, shared = tmp_path / "new", tmp_path / "shared"
    shared.mkdir()
    shared.chmod(0o2770)
    command = [sys.executable, "-c", _LEAVE_FILES, str(alone), str(shared)]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    modes = _modes(alone)
    assert {"runs.db", "run-1.log", "backup.db", "uploads"} <= modes.keys()
    assert not [name for name, mode in modes.items() if mode & 0o077]
    modes = _modes(shared)
    assert modes["run-1.log"] & 0o060 == 0o060
    assert not [name for name, mode in modes.items() if mode & 0o007]


@pytest.mark.skipif(not Path("/proc/self/environ").exists(), reason="no /proc")
def test_a_password_is_in_no_command_line() -> None:
    """Of a real worker and whoever watches it; the environment is for the same user to read."""
    store = Store.open()
    store.add_runs([config(corpus="/no/such/folder", columns="tokens,pos", tasks="pos", paradigm="stl")])
    engine = LocalEngine()
    assert engine.ensure_workers(store) == 1
    (started,) = [one for one in psutil.Process().children() if _named(one)]
    try:
        deadline = time.monotonic() + 60
        seen: list[psutil.Process] = []
        while not any("jobs.worker.loop" in one.cmdline() for one in seen) and time.monotonic() < deadline:
            seen = [started, *started.children(recursive=True)]
            time.sleep(0.05)
        for process in seen:
            assert store.url not in " ".join(process.cmdline())
            assert process.environ()["MRNLAB_DB"] == store.url
            assert stat.S_IMODE(Path(f"/proc/{process.pid}/environ").stat().st_mode) == 0o400
    finally:
        for process in [*started.children(recursive=True), started]:
            process.kill()
            process.wait(timeout=PATIENCE_S)
        assert engine.live_workers(store) == 0


def _named(process: psutil.Process) -> bool:
    return any(part.startswith("jobs.") for part in process.cmdline())


@pytest.mark.parametrize(
    "url",
    [
        "postgresql://me:PW@host:port/db",
        "postgresql://me:PW@host:1:2/db",
        "postgresql://me:PW@[::1/db",
        "postgresql://me:PW/word@host/db",
        "postgresql:/me:PW@host/db",
        "me:PW@host/db",
        "sqlite://me:PW@host/db",
        "oracle://me:PW@host/db",
        f"postgresql://me:PW@{'h' * 300}/db",
        "postgresql://me:PW@127.0.0.1:1/db?nonsense=1",
        "postgresql://127.0.0.1:1/db?password=PW&nonsense=1",
    ],
)
def test_a_spoiled_url_shows_no_password(url: str) -> None:
    spoiled = url.replace("PW", "s3cretW0rd")
    for arguments in (["--db", spoiled, "runs"], ["backup", spoiled]):
        told = CliRunner().invoke(app, arguments, catch_exceptions=False)
        assert told.exit_code == 2
        assert len(told.stderr.splitlines()) == 1
        assert "s3cretW0rd" not in told.output


def test_the_details_of_an_error_hold_no_password() -> None:
    """They are kept in a file; the sources are the call and the variables of the laboratory."""
    text = "Call: --db postgresql://me:s3%20cret@h/db; refused 's3 cret', password=other and sslpassword=more"
    shown = without_passwords(text, "postgresql://me:s3%20cret@h/db")
    assert shown == "Call: --db postgresql://me:***@h/db; refused '***', password=*** and sslpassword=***"
