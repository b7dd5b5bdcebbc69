"""`mrnlab dashboard` from an installed wheel, in an empty folder."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import time
from importlib.util import find_spec
from pathlib import Path
from urllib.error import URLError
from urllib.request import urlopen

import pytest

from tests.patience import PATIENCE_S
from tests.serving import ROOT, free_port

_OF_THE_WHEEL = ("core", "jobs", "dashboard", "pyproject.toml", "README.md", "LICENSE")


@pytest.fixture(scope="module")
def installed(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder into which the project's wheel is installed, without the packages it depends on."""
    folder = tmp_path_factory.mktemp("wheel")
    for name in _OF_THE_WHEEL:
        source = ROOT / name
        if source.is_dir():
            shutil.copytree(source, folder / name, ignore=shutil.ignore_patterns("__pycache__"))
        else:
            shutil.copy(source, folder / name)
    pip = [sys.executable, "-m", "pip", "-q"]
    site = folder / "site"
    # Without a setuptools as new as pyproject.toml asks, pip fetches one.
    isolation = ["--no-build-isolation"] if find_spec("setuptools") else []
    subprocess.run(
        [*pip, "wheel", "--no-deps", *isolation, "-w", str(folder / "built"), str(folder)], check=True
    )
    (wheel,) = (folder / "built").glob("mrnlab-*.whl")
    subprocess.run([*pip, "install", "--no-deps", "--target", str(site), str(wheel)], check=True)
    return site


@pytest.mark.slow
def test_it_serves_the_page_and_names_store_and_address(installed: Path, tmp_path: Path) -> None:
    empty, port = tmp_path / "empty", free_port()
    empty.mkdir()
    unset = ("MRNLAB_HOME", "MRNLAB_DB")
    environment = {name: value for name, value in os.environ.items() if name not in unset}
    environment |= {"PYTHONPATH": str(installed), "HOME": str(empty)}
    program = [sys.executable, "-P", "-c", "from jobs.cli import main; main()"]
    log = tmp_path / "log"
    with log.open("wb") as output:
        started = subprocess.Popen(
            [*program, "dashboard", "--server.port", str(port)],
            cwd=empty,
            env=environment,
            stdout=output,
            stderr=output,
        )
    try:
        address = f"http://localhost:{port}"
        deadline = time.monotonic() + PATIENCE_S
        while True:
            try:
                page = urlopen(f"{address}/", timeout=2).read().decode()
                break
            except (URLError, ConnectionError, TimeoutError):
                assert started.poll() is None, log.read_text()
                assert time.monotonic() < deadline, log.read_text()
                time.sleep(0.1)
        assert "<title>" in page
        (script,) = (path.name for path in (installed / "dashboard" / "static").glob("plotly-*.js"))
        with urlopen(f"{address}/app/static/{script}", timeout=PATIENCE_S) as answer:
            assert answer.status == 200
    finally:
        started.terminate()
        started.wait(timeout=PATIENCE_S)
    printed = log.read_text()
    assert f"Store: sqlite:///{empty / 'runs.db'}" in printed
    assert address in printed
