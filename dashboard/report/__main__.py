"""`python -m dashboard.report`: reads what is asked for as JSON, writes the report or the problem as JSON."""

from __future__ import annotations

import contextlib
import json
import logging
import os
import sys

from core.errors import MRNLabError
from core.report import ReportAsked


def main() -> None:
    """Answers on standard output; whatever else is printed goes to standard error."""
    given = json.load(sys.stdin)
    with contextlib.redirect_stdout(sys.stderr):
        # What the pages' modules keep between runs of a page needs no runtime of Streamlit, and says so.
        logging.getLogger("streamlit").setLevel(logging.CRITICAL)
        try:
            asked = ReportAsked(**given | {name: tuple(given[name]) for name in ("runs", "parts")})
            os.environ["MRNLAB_DB"] = asked.url  # by which the pages' modules find colours
            answer = _answer(asked)
        except MRNLabError as error:
            answer = {"problem": str(error)}
    json.dump(answer, sys.stdout)


def _answer(asked: ReportAsked) -> dict[str, object]:
    from core.store import Store
    from dashboard.report.build import build

    with contextlib.closing(Store.open(asked.url, shared=True)) as store:
        report = build(store, asked)
    return {"html": report.html, "missing": report.missing}


if __name__ == "__main__":
    main()
