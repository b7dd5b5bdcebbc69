"""Computes every record's results from its runs, then compares what documents and the page Studies print."""

from __future__ import annotations

import sys

from core.studies.answer import answer
from core.studies.recorded import RECORDS
from jobs.studies.pairs import answer as gains_answer
from tests.claims.cuts import check_cuts
from tests.claims.documents import PAGES, Checked, check_page, figures_in
from tests.claims.recipes import Figures
from tests.claims.runs import Runs, computed_records


def check_answers(computed: dict[str, Runs]) -> Checked:
    """Compares the answers of Studies, made from the results that the package carries, with computed ones."""
    count, differences = 0, []
    for record in RECORDS:
        name = record.results_path.stem
        carried = {setting.name: answer(record.result(setting)) for setting in record.settings}
        again = {setting.name: answer(computed[name].result(setting)) for setting in computed[name].settings}
        if record.definition.pairs:
            for part in record.definition.parts():
                if record.gains(part).pairs:
                    carried[part] = gains_answer(record.gains(part))
                    again[part] = gains_answer(computed[name].gains(part))
        count += sum(figures_in(text) for text in carried.values())
        differences += [
            f"{name}/{setting}: “{carried.get(setting)}”, computed “{again.get(setting)}”"
            for setting in carried.keys() | again.keys()
            if carried.get(setting) != again.get(setting)
        ]
    return Checked(count, 0, 0, tuple(differences))


def main() -> int:
    """Prints counts by document and what differs; returns how many differences there are."""
    names = sys.argv[1:]
    records = computed_records()
    figures = Figures(records)
    checks = {
        path.stem: check_page(path, figures)
        for path in sorted(PAGES.glob("*.txt"))
        if not names or path.stem in names
    }
    if not names:
        checks["answers of Studies"] = check_answers(records)
        checks["cuts"] = check_cuts()
    for name, checked in checks.items():
        print(f"{name}: {checked.summary}")
        for difference in checked.differences:
            print(f"  {difference}")
    computed, declared, quoted = map(sum, zip(*(each.counts for each in checks.values()), strict=True))
    total = Checked(computed, declared, quoted, ())
    differ = sum(len(each.differences) for each in checks.values())
    print(f"All: {total.summary.rpartition(';')[0]}; {differ} differ.")
    return differ


if __name__ == "__main__":
    sys.exit(main() > 0)
