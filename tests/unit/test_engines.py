"""Which engine places runs, and what is said where it cannot."""

from __future__ import annotations

import sys

import pytest

from core.errors import MRNLabError
from jobs.engines import ENGINES, _engine, default_engine, sqlite_problem


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
def test_an_extra_that_is_not_installed(name: str, package: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """A sentence says what to install."""
    monkeypatch.setitem(sys.modules, package, None)  # as if it were not there
    monkeypatch.delitem(sys.modules, f"jobs.engines.{name}", raising=False)
    sentence = rf"^The engine '{name}' needs the package {package}: pip install 'mrnlab\[{name}\]'\.$"
    with pytest.raises(MRNLabError, match=sentence):
        _engine.__wrapped__(name)


def test_a_file_serves_one_machine() -> None:
    assert sqlite_problem("sqlite:////shared/runs.db", 1, "Ray") is None
    assert sqlite_problem("postgresql://there/lab", 2, "Ray") is None
    problem = sqlite_problem("sqlite:////shared/runs.db", 2, "Ray")
    assert problem is not None
    assert problem.startswith("The store is an SQLite file, which the 2 machines of the Ray cluster cannot")
