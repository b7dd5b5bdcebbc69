"""The studies by name, each with a line that says what it asks. Needs no torch.

A new study is one file beside this one, with its `STUDY`, and one line here.
"""

from __future__ import annotations

__all__ = ["STUDIES"]

STUDIES: dict[str, str] = {
    "priors": "Which prior helps which tasks, and how much, over no prior at all.",
    "dissertation": "Whether the dissertation's protocol gives the dissertation's figures (tables 1 to 3).",
}
