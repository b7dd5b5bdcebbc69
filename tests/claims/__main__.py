"""Computes every record's results from its runs, then compares the figures that documents print."""

from __future__ import annotations

import sys

from tests.claims.documents import PAGES, check_page
from tests.claims.recipes import Figures
from tests.claims.runs import computed_records


def main() -> int:
    """Prints counts by document and what differs; returns how many differences there are."""
    names = sys.argv[1:]
    figures = Figures(computed_records())
    totals = [0, 0, 0, 0]
    for path in sorted(PAGES.glob("*.txt")):
        if names and path.stem not in names:
            continue
        checked = check_page(path, figures)
        counts = (checked.computed, checked.declared, checked.quoted, len(checked.differences))
        totals = [total + count for total, count in zip(totals, counts, strict=True)]
        print(
            f"{path.stem}: {checked.computed} computed, {checked.declared} declared, {checked.quoted} quoted, "
            f"{len(checked.differences)} differ"
        )
        for difference in checked.differences:
            print(f"  {difference}")
    computed, declared, quoted, differ = totals
    print(
        f"{computed:,} claims computed from records, {declared} settings, {quoted} quoted; {differ} differences."
    )
    return differ


if __name__ == "__main__":
    sys.exit(main() > 0)
