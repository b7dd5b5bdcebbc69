"""A chart of each study from its tables in docs/studies/tables: `make charts`, or
`python -m tests.journeys.study_charts docs/images/studies`. Trains nothing.
"""

from __future__ import annotations

import json
import math
import re
import sys
from collections.abc import Iterator, Mapping
from itertools import permutations
from pathlib import Path

import pandas as pd
from plotly.offline import get_plotlyjs

from core.evaluation.comparison import HIGHER, LOWER
from core.figures import SERIES, Figure
from core.results.figures import RARE, Forest, Mark, forest_chart
from core.studies.factors import gains_by_factor, trends
from core.studies.recorded import records_of
from dashboard.studies.charts import factor_charts
from tests.journeys.browser import browser_page
from tests.serving import ROOT

TABLES = ROOT / "docs" / "studies" / "tables"
_WIDTH = 900
_OF_THEMES = re.compile(r"light-dark\((#\w+),#\w+\)")

# By study the reference; by setting of the chart its table. A setting named after rarer labels draws theirs.
_SETTINGS: Mapping[str, tuple[str, Mapping[str, str]]] = {
    "priors": (
        "MTL",
        {
            "alike": "priors-ner-alike",
            "one permuted": "priors-ner-one-permuted",
            "mixed": "priors-ner-mixed",
            "three of noise": "priors-ner-two-good",
            "UPOS, alike": "priors-upos-alike",
            "UPOS, mixed": "priors-upos-mixed",
            "real: UPOS of two": "priors-upos-of-two",
            "real: POS, mixture": "priors-pos-kin-and-strangers",
        },
    ),
    "dissertation": (
        "MTL",
        {
            "POS of both corpora, 5%": "dissertation-table3-5",
            "10%": "dissertation-table3-10",
            "rarer labels, 5%": "dissertation-table3-5",
            "rarer labels, 10%": "dissertation-table3-10",
        },
    ),
    "regimes": (
        "MTL",
        {
            "alike, frozen": "regimes-alike-50-frozen",
            "alike, top:1": "regimes-alike-50-top-1",
            "alike, top:2": "regimes-alike-50-top-2",
            "alike, full": "regimes-alike-50-full",
            "mixed, frozen": "regimes-mixed-50-frozen",
            "mixed, top:1": "regimes-mixed-50-top-1",
            "mixed, top:2": "regimes-mixed-50-top-2",
            "mixed, full": "regimes-mixed-50-full",
        },
    ),
    "sc-lstm": (
        "STL",
        {
            "POS, chunks, NER": "sc-lstm-10-pos-chunks-ner",
            "POS, chunks": "sc-lstm-10-pos-chunks",
            "POS, NER": "sc-lstm-10-pos-ner",
            "chunks, NER": "sc-lstm-10-chunks-ner",
            "POS, chunks, NER, 30%": "sc-lstm-30-pos-chunks-ner",
        },
    ),
    "tea": (
        "no embedding",
        {
            "POS and NER, MTL, 5 seeds": "task-embeddings-mtl",
            "POS and NER, MRN, 5 seeds": "task-embeddings-mrn",
            "texts, 3 seeds": "tea-small-own-0",
        },
    ),
    "new-task": (
        "Ridge",
        {
            "XPOS": "new-task-xpos-50",
            "UPOS": "new-task-upos-50",
            "other tags": "new-task-other-tags-50",
            "chunks": "new-task-chunk-50",
            "NER": "new-task-ner-50",
        },
    ),
}


def _marks(table: pd.DataFrame, setting: str, families: dict[str, int]) -> Iterator[Mark]:
    """A mark for each row with a difference; undecided by the table's verdict, or else by the interval."""
    columns = "Their difference" if RARE in setting else "Difference"
    known = table.reindex(columns=[f"{columns} {end}" for end in ("(points)", "low", "high")])
    for place, (points, low, high) in enumerate(known.astype(float).to_numpy().tolist()):
        if math.isnan(points):
            continue
        corrected = table["Verdict"][place] if columns == "Difference" else _by_interval(low, high)
        verdict = corrected if corrected in (HIGHER, LOWER) else ""
        row = families.setdefault(str(table.iloc[place, 0]), len(families))
        ends = (None, None) if math.isnan(low) else (low, high)
        yield Mark(row, setting, points, ends[0], ends[1], "", verdict)


def _by_interval(low: float, high: float) -> str:
    return HIGHER if low > 0 else LOWER if high < 0 else ""


def study_forest(study: str) -> Forest:
    """Every setting of the study with a table: its families' differences from the reference."""
    reference, settings = _SETTINGS[study]
    families: dict[str, int] = {}
    marks = [
        mark
        for setting, table in settings.items()
        for mark in _marks(pd.read_csv(TABLES / f"{table}.csv"), setting, families)
    ]
    return Forest(tuple(families), tuple(settings), reference, tuple(marks))


def pairs_forest() -> Forest:
    """The pairs of the study `transfer` over MiniLM whose interval excludes zero, the largest gain first."""
    table = pd.read_csv(TABLES / "transfer-scarce-minilm-gains.csv", index_col=0)
    pairs = []
    for main, aux in permutations(table.index, 2):
        points, low, high = table.loc[main, [f"{aux} {end}" for end in ("(points)", "low", "high")]].tolist()
        if verdict := _by_interval(low, high):
            pairs.append((f"{main} · beside {aux}", points, low, high, verdict))
    pairs.sort(key=lambda pair: -pair[1])
    marks = [
        Mark(row, "gain", points, low, high, "", verdict)
        for row, (_, points, low, high, verdict) in enumerate(pairs)
    ]
    return Forest(tuple(pair[0] for pair in pairs), ("gain",), "STL", tuple(marks))


def _pictures() -> Iterator[tuple[str, list[Figure]]]:
    """By the name of a picture its charts, one below the other."""
    for study in _SETTINGS:
        yield study, [_forest(study_forest(study))]
    yield "transfer", [_forest(pairs_forest())]
    (record,) = records_of("simulator")
    balanced = [record.result(setting) for setting in record.settings if setting.part == "balanced"]
    yield "simulator", list(factor_charts(gains_by_factor(balanced), trends(balanced), "F1").values())


def _forest(forest: Forest) -> Figure:
    return forest_chart(forest, dict(zip(forest.targets, SERIES, strict=False)))


_DRAW = """charts => Promise.all(charts.map(({data, layout}) => {
    const place = document.body.appendChild(document.createElement("div"))
    place.style.height = `${layout.height}px`
    return Plotly.newPlot(place, data, layout)
}))"""


def main() -> None:
    folder = Path(sys.argv[1])
    folder.mkdir(parents=True, exist_ok=True)
    with browser_page() as (page, _, _):
        for name, charts in _pictures():
            for chart in charts:
                chart.update_layout(paper_bgcolor="white", plot_bgcolor="white", font_family="sans-serif")
            height = sum(int(chart.layout.height) for chart in charts)
            page.set_viewport_size({"width": _WIDTH, "height": height})
            page.set_content('<body style="margin:0"></body>')
            page.add_script_tag(content=get_plotlyjs())
            texts = (_OF_THEMES.sub(r"\1", chart.to_json()) for chart in charts)
            page.evaluate(_DRAW, list(map(json.loads, texts)))
            page.screenshot(path=folder / f"{name}.png")


if __name__ == "__main__":
    main()
