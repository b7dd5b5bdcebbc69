"""Which engine places runs, and what is said where it cannot."""

from __future__ import annotations

import os
import subprocess
import sys

import pytest

from core.errors import MRNLabError
from jobs.engines import ENGINES, default_engine


def test_this_machine_unless_told(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("MRNLAB_ENGINE", raising=False)
    assert default_engine().name == "local"
    assert default_engine() is default_engine()


@pytest.mark.parametrize("name", ENGINES)
def test_each_is_found_by_its_name(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("MRNLAB_ENGINE", name)
    assert default_engine().name == name


def test_an_unknown_one(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("MRNLAB_ENGINE", "kubernetes")
    with pytest.raises(
        MRNLabError, match=r"^There is no engine 'kubernetes'; MRNLAB_ENGINE can be local, ray, slurm\.$"
    ):
        default_engine()


@pytest.mark.parametrize(("name", "package"), [("ray", "ray"), ("slurm", "submitit")])
def test_an_extra_that_is_not_installed(name: str, package: str) -> None:
    """In a process that cannot find the package, a sentence says what to install."""
    script = (
        "import sys\n"
        f"sys.modules[{package!r}] = None\n"  # as if it were not there
        "from core.errors import MRNLabError\n"
        "from jobs.engines import default_engine\n"
        "try: default_engine()\n"
        "except MRNLabError as error: print(error)\n"
    )
    environment = os.environ | {"MRNLAB_ENGINE": name}
    done = subprocess.run(
        [sys.executable, "-c", script], capture_output=True, text=True, env=environment, check=False
    )
    assert (
        done.stdout.strip()
        == f"The engine '{name}' needs the package {package}: pip install 'mrnlab[{name}]'."
    )
