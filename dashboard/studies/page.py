"""Studies: declared experiments with their answers, run and read like any other."""

from __future__ import annotations

from dashboard.shared.states import title
from dashboard.studies.results import studies

title(
    "Studies", "Experiments of papers and of this laboratory, with their answers. Run, continue or read them."
)
studies()
