"""Studies: declared experiments with their answers, run and read like any other."""

from __future__ import annotations

from dashboard.studies.results import studies

studies()
