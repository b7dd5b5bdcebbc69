"""What the doctor finds."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from enum import StrEnum

__all__ = ["Finding", "Fix", "Severity", "problem", "remark"]


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
