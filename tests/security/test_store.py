"""The store: SQL by bound parameters alone, hostile text in every field, files and passwords of one's own."""

from __future__ import annotations

import ast
import contextlib
import stat
import subprocess
import sys
from pathlib import Path

import psutil
import pytest
from typer.testing import CliRunner

from core.errors import MRNLabError
from core.plain_text import without_passwords
from core.results.filter import parse_filter
from core.store import Store
from jobs.cli.app import app
from jobs.engines.local import LocalEngine
from tests.making import config
from tests.patience import PATIENCE_S
from tests.supervised import command_lines, wait_for

ROOT = Path(__file__).resolve().parents[2]

HOSTILE = (
    "'; DROP TABLE runs; --", '" OR 1=1 --', "%", "_", "\\", "') OR ('1'='1", ":name", "?", "%s", "{0}",
    "\x00", "Robert'); DELETE FROM runs;--", "$$", "::text",
)  # fmt: skip


def test_sql_is_never_put_together() -> None:
    """In the store. Ruff's rule S608 (pyproject.toml) looks for SQL made of pieces everywhere."""
    variable = {}
    for path in (ROOT / "core" / "store").rglob("*.py"):
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            if not isinstance(node, ast.Call):
                continue
            if ast.unparse(node.func).rpartition(".")[2] in ("text", "exec_driver_sql"):
                sql = node.args[0]
                choices = [sql.body, sql.orelse] if isinstance(sql, ast.IfExp) else [sql]
                if not all(isinstance(choice, ast.Constant) for choice in choices):
                    variable[path.name] = ast.unparse(sql)
    # The steps of a migration, constants of the same file.
    assert variable == {"migrations.py": "statement"}


@pytest.mark.parametrize("text", HOSTILE)
def test_hostile_text_is_kept_and_found_as_it_is(text: str) -> None:
    store = Store.open()
    label = f"a {text} launch".replace("\x00", "")
    plain, run_id = store.add_runs([config(seed=1), config(seed=2)], sweep=label)
    store.add_keywords([run_id], ["keyword " + text.replace("\x00", "").replace(",", " ")])
    run = store.run(run_id)
    assert run.sweep == label
    for words in (f'"{text}"', f"sweep:{text}*", f'-"{text}"'):
        with contextlib.suppress(MRNLabError):  # a sentence, and no SQL
            wanted = parse_filter(words)
            assert {run.id for run in store.runs(archived=None) if wanted.matches(run)} <= {plain, run_id}
    before, *_ = label.split('"')
    assert parse_filter(f'sweep:"{before}"').matches(run)
    assert len(store.runs()) == 2


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
    modes, shared_modes = (
        {path.name: path.stat().st_mode for path in [folder, *folder.rglob("*")]}
        for folder in (alone, shared)
    )
    assert {"runs.db", "run-1.log", "backup.db", "uploads"} <= modes.keys()
    assert not [name for name, mode in modes.items() if mode & 0o077]
    assert shared_modes["run-1.log"] & 0o060 == 0o060
    assert not [name for name, mode in shared_modes.items() if mode & 0o007]


@pytest.mark.skipif(not Path("/proc/self/environ").exists(), reason="no /proc")
def test_a_password_is_in_no_command_line() -> None:
    """Of a real worker and whoever watches it; the environment is for the same user to read."""
    store = Store.open()
    store.add_runs([config(corpus="/no/such/folder", columns="tokens,pos", tasks="pos", paradigm="stl")])
    engine = LocalEngine()
    assert engine.ensure_workers(store) == 1

    def started() -> list[psutil.Process]:
        """The supervisor; a new process has its parent's command line first."""
        children = command_lines().items()
        return [child for child, words in children if any(part.startswith("jobs.") for part in words)]

    def trains(process: psutil.Process) -> bool:
        return "jobs.worker.loop" in process.cmdline()

    wait_for(lambda: bool(started()))
    (supervisor,) = started()
    try:
        wait_for(lambda: any(map(trains, supervisor.children(recursive=True))))
        seen = [supervisor, *supervisor.children(recursive=True)]
        for process in seen:
            assert store.url not in " ".join(process.cmdline())
            assert process.environ()["MRNLAB_DB"] == store.url
            assert stat.S_IMODE(Path(f"/proc/{process.pid}/environ").stat().st_mode) == 0o400
    finally:
        for process in [*supervisor.children(recursive=True), supervisor]:
            process.kill()
            process.wait(timeout=PATIENCE_S)
        assert engine.live_workers(store) == 0


def test_no_message_holds_a_password() -> None:
    """Nor do the details of an error, whose sources are the call and the variables of the laboratory."""
    hosts = (
        *("me:PW@host:port/db", "me:PW@host:1:2/db", "me:PW@[::1/db", "me:PW/word@host/db"),
        *("me:PW@127.0.0.1:1/db?nonsense=1", "127.0.0.1:1/db?password=PW&nonsense=1"),
        f"me:PW@{'h' * 300}/db",
    )
    others = (
        "postgresql:/me:PW@host/db",
        "me:PW@host/db",
        "sqlite://me:PW@host/db",
        "oracle://me:PW@host/db",
    )
    for url in (*(f"postgresql://{host}" for host in hosts), *others):
        spoiled = url.replace("PW", "s3cretW0rd")
        for arguments in (["--db", spoiled, "runs"], ["backup", spoiled]):
            printed = CliRunner().invoke(app, arguments, catch_exceptions=False)
            assert printed.exit_code == 2
            assert len(printed.stderr.splitlines()) == 1
            assert "s3cretW0rd" not in printed.output
    url = f"postgresql+psycopg://mrnlab:s3cretW0rd@{'h' * 40}:5432/laboratory"
    for arguments in (
        ["--engine", url, "runs"],
        *([verb, url] for verb in ("show", "results", "study", "import", "runs", "stop")),
        *(["metrics", "1", url], ["results", "--format", url], [url]),
        *(
            ["launch", "--corpus", "demo", "--set", text]
            for text in (url, f"encoder={url}", f"{url}=1", f"lr={url}")
        ),
        *(
            ["launch", "--corpus", "demo", option, url]
            for option in ("--tasks", "--seeds", "--lambda", "--preset")
        ),
        ["launch", "--corpus", url],
    ):
        printed = CliRunner().invoke(app, arguments, catch_exceptions=False)
        assert printed.exit_code == 2, arguments
        assert "s3cret" not in printed.output, arguments
    text = "Call: --db postgresql://me:s3%20cret@h/db; refused 's3 cret', password=other and sslpassword=more"
    shown = without_passwords(text, "postgresql://me:s3%20cret@h/db")
    assert shown == "Call: --db postgresql://me:***@h/db; refused '***', password=*** and sslpassword=***"
