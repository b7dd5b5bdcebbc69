"""A report put together: its parts, the pages' scripts and style, and what may run in the file."""

from __future__ import annotations

import base64
import hashlib
import json
import tomllib
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from functools import cache
from importlib.resources import files
from pathlib import Path
from typing import Any

import jinja2

from core import __version__
from core.errors import MRNLabError
from core.report import PARTS, Report, ReportAsked
from core.store import Store
from core.wording import plural
from dashboard.components.charts import MATRIX, MATRIX_HELPERS, read_asset, script
from dashboard.report import examples, figures, training
from dashboard.report.placed import NotThere, Placed, markdown_html
from jobs.reports.answered import answered, run_hashes, title
from jobs.reports.appendix import appendix, configuration
from jobs.reports.html import html, html_text
from jobs.reports.parts import Part

MOST_BYTES = 10_000_000
"""The size above which players show fewer steps and curves fewer points, and parts are left out."""
_SCRIPTS: Mapping[str, tuple[str, ...]] = {
    "chart": ("chart.js",),
    "matrix": (*MATRIX_HELPERS, "matrix.js"),
    "sentence": ("picture.js", "sentence.js"),
}
"""The scripts of the pages that draw each thing of a report."""
_HTML = {"chart": "", "matrix": MATRIX, "sentence": '<div id="root"></div>'}
_FONT = "system-ui, -apple-system, 'Segoe UI', Roboto, Ubuntu, 'Helvetica Neue', Arial, sans-serif"
_DASHBOARD = Path(__file__).parents[1]


@dataclass(frozen=True)
class Section:
    """A part: its HTML, or why it is not there; `text` is the researcher's, which stands before it."""

    name: str
    title: str
    html: str = ""
    missing: str = ""
    text: str = ""


def build(store: Store, asked: ReportAsked, made: datetime | None = None) -> Report:
    """The report. What makes it larger than MOST_BYTES is thinned, then left out, the largest part first.

    Raises MRNLabError where nothing can be reported of these runs.
    """
    made, left_out = made or datetime.now(UTC), dict[str, str]()
    for detail in training.DETAILS:
        report, sizes = _built(store, asked, made, detail, left_out)
        if _size(report.html) <= MOST_BYTES:
            return report
    while _size(report.html) > MOST_BYTES:
        if not sizes:
            raise MRNLabError(
                f"The figures of these {len(asked.runs):,} runs take {_size(report.html) / 1e6:.1f} MB, "
                f"and a report has at most {MOST_BYTES / 1e6:.0f}. Choose fewer runs."
            )
        largest = max(sizes, key=sizes.__getitem__)
        left_out[largest] = (
            f"It would take {sizes[largest] / 1e6:.1f} MB, and a report has at most {MOST_BYTES / 1e6:.0f}. "
            "Choose fewer runs."
        )
        report, sizes = _built(store, asked, made, detail, left_out)
    return report


def _size(text: str) -> int:
    return len(text.encode())


def _built(
    store: Store,
    asked: ReportAsked,
    made: datetime,
    detail: training.Detail,
    left_out: Mapping[str, str],
) -> tuple[Report, dict[str, int]]:
    """The report without the parts that are `left_out` for a reason, and the size of each other part."""
    of_data, results = answered(store, asked.runs, asked.split)
    first, placed = of_data[0], Placed()

    @cache
    def apart() -> Any:
        return figures.taken_apart(first, store)

    makers: Mapping[str, Callable[[], str]] = {
        "answer": lambda: figures.answer(of_data),
        "table": lambda: figures.table(of_data),
        "forest": lambda: figures.forests(of_data, placed),
        "against": lambda: figures.against(of_data, store, placed),
        "curves": lambda: training.training(first, store, placed, detail),
        "where": lambda: figures.where(apart(), placed),
        "errors": lambda: figures.errors(apart()),
        "relations": lambda: training.relations(of_data, store, placed, detail),
        "sentences": lambda: examples.sentences(first, store, placed),
        "configuration": lambda: _folded(_CONFIGURATION, configuration(store, asked.runs), len(of_data) > 1),
        "appendix": lambda: _folded(_APPENDIX, appendix(store, asked.runs)),
    }
    texts = _texts(asked)
    sections, sizes = [], {}
    for name in PARTS:
        if name not in asked.parts:
            if name in texts:
                sections.append(Section(name, "", text=texts[name]))
            continue
        text, before = texts.get(name, ""), len(placed.things)
        try:
            if name in left_out:
                raise NotThere(left_out[name])
            section = Section(name, PARTS[name], makers[name](), text=text)
            sizes[name] = _size(section.html) + _size(_json(placed.things[before:]))
        except MRNLabError as error:
            del placed.things[before:]  # their places are not there
            section = Section(name, PARTS[name], missing=str(error), text=text)
        sections.append(section)
    runs = [run for each in of_data for run in each.runs]
    document = {
        "format": 1,
        "mrnlab": __version__,
        "made": made.isoformat(timespec="seconds"),
        "split": asked.split,
        "runs": {str(run_id): of_run for run_id, of_run in run_hashes(store, runs).items()},
        "answers": [each.document for each in of_data],
    }
    seeds = {run.config.seed for run in runs}
    page = _page(
        title=asked.title or title(of_data),
        made=f"{made:%-d %B %Y}",
        counts=f"{plural(len(runs), 'run')}, {plural(len(seeds), 'seed')}",
        opening=texts.get("", ""),
        notes=[note for note in (results.note,) if note],
        sections=sections,
        placed=placed,
        document=document,
    )
    return Report(page, {section.name: section.missing for section in sections if section.missing}), sizes


_CONFIGURATION = "By data set what was trained, where and at which cost, with the commands"
_APPENDIX = "Data, dev beside test scores, every hyperparameter with how it was chosen, commands, versions"


def _folded(about: str, parts: Sequence[Part], is_folded: bool = True) -> str:
    text = "".join(map(html, parts))
    return f"<details><summary>{about}</summary>{text}</details>" if is_folded else text


def _texts(asked: ReportAsked) -> dict[str, str]:
    """The researcher's text as HTML, by the part that it stands before; the first piece has no name."""
    opening, *rest = asked.places
    pieces = {"": opening}
    for name, piece in zip(rest[::2], rest[1::2], strict=True):
        pieces[name] = pieces.get(name, "") + piece
    return {name: markdown_html(piece) for name, piece in pieces.items() if piece.strip()}


def _page(*, placed: Placed, document: Mapping[str, Any], **parts: Any) -> str:
    used = [name for name in _SCRIPTS if any(thing["component"] == name for thing in placed.things)]
    scripts = [_host(used)]
    if "chart" in used:
        plotly = next((_DASHBOARD / "static").glob("plotly-*.min.js"))
        scripts = [plotly.read_text(encoding="utf-8"), read_asset("plotly.js") + scripts[0]]
    hashes = " ".join(f"'sha256-{_sha256(text)}'" for text in scripts)
    environment = jinja2.Environment(
        loader=jinja2.PackageLoader("dashboard", "report"), autoescape=True, undefined=jinja2.StrictUndefined
    )
    looks = {name: read_asset(f"{name}.css") for name in used}
    return environment.get_template("report.html.jinja").render(
        policy=(
            f"default-src 'none'; script-src {hashes}; style-src 'unsafe-inline'; "
            "img-src data: blob:; base-uri 'none'; form-action 'none'"
        ),
        style=_style() + looks.pop("chart", ""),
        templates={name: f"<style>{look}</style>{_HTML[name]}" for name, look in looks.items()},
        things=_json(placed.things),
        document=_json(document),
        scripts=scripts,
        version=__version__,
        escape=html_text,
        **parts,
    )


def _sha256(text: str) -> str:
    return base64.b64encode(hashlib.sha256(text.encode()).digest()).decode()


def _json(value: Any) -> str:
    """JSON that cannot end the element that it stands in."""
    text = json.dumps(value, ensure_ascii=False, separators=(",", ":"))
    return text.replace("<", "\\u003c").replace("\u2028", "\\u2028").replace("\u2029", "\\u2029")


def _host(used: list[str]) -> str:
    """The script of the file: the pages' components, each a function of its own, and what calls them."""
    parts = []
    for name in used:
        text = script(*_SCRIPTS[name])
        before, _, after = text.rpartition("export default function")
        parts.append(f"{name}: (() => {{\n{before}return function{after}\n}})()")
    own = files(__package__).joinpath("report.js").read_text(encoding="utf-8")
    return f"const COMPONENTS = {{{', '.join(parts)}}}\n{own}"


def _style() -> str:
    """The theme of the pages as variables, light and dark, and the style of a report."""
    theme = tomllib.loads((_DASHBOARD / ".streamlit" / "config.toml").read_text(encoding="utf-8"))["theme"]
    light, dark = (_variables(theme[name]) for name in ("light", "dark"))
    common = f"--st-font:{_FONT};--st-base-radius:6px;--st-button-radius:6px"
    own = files(__package__).joinpath("report.css").read_text(encoding="utf-8")
    return (
        f":root{{{light};{common};color-scheme:light}}"
        f"@media screen and (prefers-color-scheme:dark)"
        f"{{:root:not(.printing){{{dark};color-scheme:dark}}}}\n{own}"
    )


def _variables(theme: Mapping[str, Any]) -> str:
    """The colours of a theme as Streamlit names them for components: `--st-text-color`."""
    names = {name: "".join(f"-{c.lower()}" if c.isupper() else c for c in name) for name in theme}
    return ";".join(f"--st-{names[name]}:{value}" for name, value in theme.items() if isinstance(value, str))
