"""A real PostgreSQL for tests: the one MRNLAB_TEST_POSTGRES names, else a private one started here.

Fixtures: `postgres_server` (of the session), `postgres_url` (an empty database of a test). Tests are skipped,
saying why, where there is no PostgreSQL.
"""

from __future__ import annotations

import contextlib
import os
import secrets
import shutil
import subprocess
import tempfile
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest
from sqlalchemy import URL, create_engine, make_url, text

from tests.serving import free_port

PASSWORD = "sesame-7f3a"
_USER = "mrnlab"
# Nothing here outlives the machine, so nothing needs to reach the disk.
_SETTINGS = ("fsync=off", "full_page_writes=off", "shared_buffers=64MB", "max_connections=60")


@dataclass(frozen=True)
class PostgresServer:
    """A server on which databases may be made; `folder` is its data where it is our own."""

    url: URL
    folder: Path | None = None

    @contextlib.contextmanager
    def database(self) -> Iterator[str]:
        """The URL of a new, empty database, dropped at the end of the block."""
        name = f"mrnlab_{secrets.token_hex(6)}"
        self._command(f"CREATE DATABASE {name} TEMPLATE template0 ENCODING 'UTF8'")
        try:
            yield self.url.set(database=name).render_as_string(hide_password=False)
        finally:
            self._command(f"DROP DATABASE {name} WITH (FORCE)")

    @contextlib.contextmanager
    def stopped(self) -> Iterator[None]:
        """Stops our own server for the block, as a crash would. Skips where it is not ours."""
        if self.folder is None:
            pytest.skip("the server that MRNLAB_TEST_POSTGRES names is not ours to stop")
        _control(self.folder, "stop", "-m", "immediate")
        try:
            yield
        finally:
            self.start()

    def start(self) -> None:
        """Starts our own server, and waits until it answers."""
        assert self.folder is not None
        settings = " ".join(f"-c {setting}" for setting in _SETTINGS)
        place = f"-p {self.url.port} -k '' -c listen_addresses=127.0.0.1"
        _control(self.folder, "start", "-o", f"{place} {settings}", "-l", str(self.folder / "log"))

    def _command(self, statement: str) -> None:
        engine = create_engine(self.url, isolation_level="AUTOCOMMIT")
        with engine.connect() as connection:
            connection.execute(text(statement))
        engine.dispose()


@pytest.fixture(scope="session")
def postgres_server() -> Iterator[PostgresServer]:
    """The server that all tests share."""
    pytest.importorskip("psycopg", reason="psycopg is not installed: pip install 'mrnlab[postgres]'")
    named = os.environ.get("MRNLAB_TEST_POSTGRES")
    if named:
        yield PostgresServer(make_url(named))
        return
    if _program("initdb") is None:
        pytest.skip("PostgreSQL is not installed (apt-get install postgresql); or set MRNLAB_TEST_POSTGRES")
    with _started_server() as server:
        yield server


@pytest.fixture
def postgres_url(postgres_server: PostgresServer) -> Iterator[str]:
    """The URL of an empty database for this test alone."""
    with postgres_server.database() as url:
        yield url


@contextlib.contextmanager
def _started_server() -> Iterator[PostgresServer]:
    """A private server in a temporary folder, gone at the end of the block."""
    folder = Path(tempfile.mkdtemp(prefix="mrnlab-postgres-"))
    try:
        if os.geteuid() == 0:  # PostgreSQL refuses to run as root
            shutil.chown(folder, "postgres", "postgres")
        password = folder / "password"
        password.write_text(PASSWORD)
        password.chmod(0o644)
        data = folder / "data"
        how = ("--auth=scram-sha-256", f"--pwfile={password}", "--encoding=UTF8", "--locale=C", "--no-sync")
        _as_postgres("initdb", "-D", str(data), "-U", _USER, *how)
        url = URL.create("postgresql", _USER, PASSWORD, "127.0.0.1", free_port(), "postgres")
        server = PostgresServer(url, data)
        server.start()
        try:
            yield server
        finally:
            _control(data, "stop", "-m", "immediate")
    finally:
        shutil.rmtree(folder, ignore_errors=True)


def _control(data: Path, *arguments: str) -> None:
    _as_postgres("pg_ctl", "-D", str(data), "-w", *arguments)


def _as_postgres(program: str, *arguments: str) -> None:
    path = _program(program)
    assert path is not None
    command = [path, *arguments]
    if os.geteuid() == 0:
        command = ["runuser", "-u", "postgres", "--", *command]
    # A file, not a pipe: the server inherits it, and a pipe would stay open as long as it runs.
    with tempfile.TemporaryFile("w+") as output:
        done = subprocess.run(command, stdout=output, stderr=output, cwd="/", check=False)
        output.seek(0)
        assert done.returncode == 0, output.read()


def _program(name: str) -> str | None:
    """Where a program of PostgreSQL is: Debian keeps them off the path, a folder per version."""
    elsewhere = map(str, Path("/usr/lib/postgresql").glob(f"*/bin/{name}"))
    return shutil.which(name) or max(elsewhere, default=None)
