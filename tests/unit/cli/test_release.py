"""A wheel made of the sdist, in a new environment outside the tree: verbs, pages, docs, studies, a report."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import sysconfig
import time
import tomllib
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from urllib.error import URLError
from urllib.request import urlopen

import pytest

from core import __version__
from core.studies import STUDIES
from tests.patience import PATIENCE_S
from tests.serving import ROOT, free_port

pytest.importorskip(
    "setuptools", minversion="77", reason="an sdist needs setuptools 77: pip install setuptools"
)
_BUILD = "import sys; from setuptools import build_meta as b; print(getattr(b, sys.argv[1])(sys.argv[2]))"


@dataclass(frozen=True)
class Installed:
    """The new environment, and an empty folder to work in."""

    bin: Path
    home: Path

    @property
    def environment(self) -> dict[str, str]:
        kept = {
            name: value for name, value in os.environ.items() if not name.startswith(("MRNLAB_", "PYTHON"))
        }
        return kept | {"MRNLAB_HOME": str(self.home), "HOME": str(self.home)}

    def run(self, *words: str, exit_code: int = 0) -> str:
        """What a verb prints on standard output."""
        done = subprocess.run(
            [str(self.bin / "mrnlab"), *words],
            cwd=self.home,
            env=self.environment,
            capture_output=True,
            text=True,
            check=False,
        )
        assert done.returncode == exit_code, done.stderr
        return done.stdout


def _built(kind: str, tree: Path, folder: Path) -> Path:
    words = [sys.executable, "-c", _BUILD, f"build_{kind}", str(folder)]
    printed = subprocess.run(words, cwd=tree, check=True, capture_output=True, text=True).stdout
    return folder / printed.splitlines()[-1]


@pytest.fixture(scope="module")
def installed(tmp_path_factory: pytest.TempPathFactory) -> Installed:
    """The wheel in an environment of its own; what it depends on is taken from this one."""
    work = tmp_path_factory.mktemp("release")
    copy = work / "tree"
    files = subprocess.run(["git", "ls-files", "-z"], cwd=ROOT, check=True, capture_output=True, text=True)
    for name in filter(None, files.stdout.split("\0")):
        if (ROOT / name).is_file() and not name.startswith("tests/"):
            (copy / name).parent.mkdir(parents=True, exist_ok=True)
            (copy / name).write_bytes((ROOT / name).read_bytes())
    sdist = _built("sdist", copy, work)
    assert sdist.name == f"mrnlab-{__version__}.tar.gz"
    unpacked = work / "unpacked"
    subprocess.run(["tar", "-xzf", str(sdist), "-C", str(work)], check=True)
    (work / f"mrnlab-{__version__}").rename(unpacked)
    wheel = _built("wheel", unpacked, work)
    subprocess.run([sys.executable, "-m", "venv", str(work / "venv")], check=True)
    python = work / "venv" / "bin" / "python"
    subprocess.run([str(python), "-m", "pip", "-q", "install", "--no-deps", str(wheel)], check=True)
    version = f"python{sys.version_info.major}.{sys.version_info.minor}"
    borrowed = work / "venv" / "lib" / version / "site-packages" / "borrowed.pth"
    borrowed.write_text(sysconfig.get_path("purelib") + "\n", encoding="utf-8")
    home = work / "home"
    home.mkdir()
    return Installed(python.parent, home)


@pytest.mark.slow
def test_an_installed_release_is_whole(installed: Installed) -> None:
    where = [str(installed.bin / "python"), "-c", "import core; print(core.__file__, core.__version__)"]
    printed = subprocess.run(
        where, cwd=installed.home, env=installed.environment, check=True, capture_output=True, text=True
    ).stdout.split()
    assert str(ROOT) not in printed[0]
    assert printed[1] == __version__
    docs = installed.bin.parent / "share" / "mrnlab" / "docs"
    assert {"README.md", "pages.md", "adr", "studies"} <= {path.name for path in docs.iterdir()}
    installed.run("doctor")
    for study in STUDIES:
        assert installed.run("study", study, "--dry-run")
    launch = ("launch", "--corpus", "demo?train=30", "--tasks", "pos,chunk", "--paradigm", "mtl,stl")
    described = installed.run(*launch, "--epochs", "1", "--seeds", "1", "--dry-run", "--json")
    assert json.loads(described)


@pytest.mark.slow
def test_an_installed_release_trains_tags_and_reports(installed: Installed) -> None:
    installed.run(
        *("launch", "--corpus", "demo?train=30", "--tasks", "pos,ner", "--paradigm", "mtl", "--encoder"),
        *("minilm", "--encoder-training", "frozen", "--epochs", "1", "--seeds", "1", "--wait"),
    )
    assert "Boston" in installed.run("tag", "1", "Boston won .")
    installed.run("report", "1", "-o", "r.html")
    text = (installed.home / "r.html").read_text(encoding="utf-8")
    assert 'data-table="scores of ' in text
    assert "as the runs give them" in installed.run("verify", "r.html")


@pytest.mark.slow
def test_an_installed_release_shows_its_pages(installed: Installed) -> None:
    port = free_port()
    words = [str(installed.bin / "mrnlab"), "dashboard", "--server.port", str(port)]
    with (installed.home / "log").open("wb") as output:
        started = subprocess.Popen(
            words, cwd=installed.home, env=installed.environment, stdout=output, stderr=output
        )
    try:
        deadline = time.monotonic() + PATIENCE_S
        while True:
            try:
                page = urlopen(f"http://localhost:{port}/", timeout=2).read().decode()
                break
            except (URLError, ConnectionError, TimeoutError):
                assert started.poll() is None, (installed.home / "log").read_text()
                assert time.monotonic() < deadline, (installed.home / "log").read_text()
                time.sleep(0.1)
        assert "<title>" in page
    finally:
        started.terminate()
        started.wait(timeout=PATIENCE_S)


def test_the_version_is_the_same_everywhere() -> None:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    cited = (ROOT / "CITATION.cff").read_text(encoding="utf-8")
    changed = (ROOT / "CHANGELOG.md").read_text(encoding="utf-8")
    assert project["version"] == __version__
    assert f"\nversion: {__version__}\n" in cited
    assert f"\n## [{__version__}] " in changed


def test_every_bound_of_a_version_has_its_reason() -> None:
    text = (ROOT / "pyproject.toml").read_text(encoding="utf-8")
    block = text.split("\ndependencies = [\n", 1)[1].split("\n]\n", 1)[0]
    lines: Sequence[str] = [line for line in block.splitlines() if line.strip().startswith('"')]
    assert len(lines) > 20
    assert not [line for line in lines if "#" not in line]
