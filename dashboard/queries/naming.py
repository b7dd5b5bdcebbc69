"""What the pages call runs and configurations: as the terminal does."""

from __future__ import annotations

from jobs.naming import confounds, corpus_name, differing, field_text, kind_name, run_name

__all__ = ["confounds", "corpus_name", "differing", "field_text", "kind_name", "run_name"]
