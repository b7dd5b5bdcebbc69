"""Compares the figures and verdicts that documents print with recipes, and finds those that have none.

A file of claims has a line for each sentence or row of a table with figures, whose holes have recipes:

    record regimes
    Pooling still {v alike-50-full/pooled - mtl} {alike-50-full/pooled - mtl} there.

`{s TEXT | RECIPE = NUMBER; RECIPE = NUMBER}` is a text that holds where these counts do.
`{v RECIPE; RECIPE}` is a verb, which the verdicts of these differences must be; `{* RECIPE}` is bold where
the difference is decided; `{=0.9}` is a number that the study declares; `{paper 47.6}` one quoted;
`{legend decided}` a word that is explained or asked about.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path

from core.evaluation.comparison import EQUIVALENT, HIGHER, LOWER, UNDECIDED
from tests.claims.recipes import Figure, Figures

ROOT = Path(__file__).resolve().parents[2]
PAGES = Path(__file__).parent / "pages"

_NUMBER = r"[+−]?\d[\d,]*(?:\.\d+)?|[+−]?\.\d+"
_WORDS = (
    *("no", "one", "two", "three", "four", "five", "six"),
    *("seven", "eight", "nine", "ten", "eleven", "twelve"),
)
_WORD = rf"\b(?:{'|'.join(_WORDS)})\b"
_FIGURE = rf"(?:{_NUMBER})(?: ± (?:{_NUMBER}))?(?: \[(?:{_NUMBER}), (?:{_NUMBER})\])?"
_PARTS = re.compile(rf"({_NUMBER})(?: ± ({_NUMBER}))?(?: \[({_NUMBER}), ({_NUMBER})\])?")
_VERBS: Mapping[str, str] = {
    HIGHER: r"gains?|higher|helps?|beats|adds|more",
    LOWER: r"loses?|lower|hurts?|less|costs?|harmful",
    UNDECIDED: r"undecided|(?:shows?|has|have) no gain|[Nn]o gain is shown|No",
    EQUIVALENT: r"equivalent",
}
_ANY_VERB = "|".join([*_VERBS.values(), "decided"])
_HOLE = re.compile(r"\{([^{}]+)\}")

_SETTINGS = (
    *(
        "The protocol",
        "The command",
        "What it has",
        "Until the claim",
        "Over an encoder",
        "Tables",
        "Formulas",
    ),
    *("Definitions", "Features", "Gradient cosine", "Predictors and schemes", "Start", "Test", "Read on"),
)
"""How titles of sections on settings begin: numbers in them are results with an interval or a deviation."""
_RESULT = re.compile(
    rf"(?<![\w.=/`(-])(?<!λ = )(?<!α = )(?:(?:{_NUMBER}) ± (?:{_NUMBER})"
    rf"|(?:{_NUMBER}) \[(?:{_NUMBER}), (?:{_NUMBER})\]"
    rf"|[+−](?:{_NUMBER.replace('[+−]?', '')})|\d[\d,]*\.\d+|(?<!\w)\.\d\d+\b|\d[\d,]*(?= points? )"
    rf"|(?:\d+|{_WORD}) of (?:the )?(?:\d+|{_WORD})\b)"
)
_RESULT_OF_SETTINGS = re.compile(
    rf"(?<![\w.=/`(-])(?:(?:{_NUMBER}) ± (?:{_NUMBER})|(?:{_NUMBER}) \[(?:{_NUMBER}), (?:{_NUMBER})\])"
)
_RUNS = re.compile(r"(?<![\w.])\d[\d,]* runs\b")
_VERDICT = re.compile(
    r"(?<!\*)\b(?:undecided|decided|equivalent|gains|loses?|beats|no gain|as well)\b", re.IGNORECASE
)


@dataclass(frozen=True)
class Claim:
    """A sentence or row with holes, in a file of claims."""

    record: str
    line: int
    text: str


@dataclass(frozen=True)
class Page:
    """A file of claims: those of a document, or of one section of it."""

    document: str
    section: str
    claims: tuple[Claim, ...]


@dataclass(frozen=True)
class Checked:
    """The figures and verbs of a document: how many have a recipe, and what does not hold."""

    computed: int
    declared: int
    quoted: int
    differences: tuple[str, ...]

    @property
    def counts(self) -> tuple[int, int, int]:
        """The figures that are computed, declared and quoted."""
        return self.computed, self.declared, self.quoted

    @property
    def summary(self) -> str:
        """The counts in words."""
        computed, declared, quoted = self.counts
        return f"{computed} computed, {declared} settings, {quoted} quoted; {len(self.differences)} differ"


def figures_in(text: str) -> int:
    """How many figures a text prints: an interval counts with its difference."""
    return len(re.findall(_FIGURE, text))


def read_page(path: Path) -> Page:
    """The claims of a file."""
    heads = {"document": "", "section": "", "record": ""}
    claims = []
    for number, line in enumerate(path.read_text("utf-8").splitlines(), 1):
        key, _, rest = line.partition(" ")
        if key in heads:
            heads[key] = rest
        elif line and not line.startswith("# "):
            claims.append(Claim(heads["record"], number, line))
    return Page(heads["document"], heads["section"], tuple(claims))


def plain(text: str) -> str:
    """The text with single spaces."""
    return re.sub(r"\s+", " ", text)


def check_page(path: Path, figures: Figures) -> Checked:
    """Compares the document of a file of claims with its recipes, and finds figures that have none."""
    page = read_page(path)
    document = page.document
    text = plain((ROOT / document).read_text("utf-8"))
    computed = declared = quoted = 0
    differences: list[str] = []
    covered: list[tuple[int, int]] = []
    for claim in page.claims:
        where = f"{path.name}:{claim.line}"
        matches = list(_pattern(claim.text).finditer(text))
        if len(matches) != 1:
            differences.append(f"{where}: {document} has {len(matches)} times: {claim.text}")
            continue
        (match,) = matches
        for index, hole in enumerate(_HOLE.findall(claim.text), 1):
            printed = match[index]
            covered.append(match.span(index))
            if hole.startswith("="):
                declared += 1
                if _number(printed) not in figures.declared(claim.record):
                    differences.append(f"{where}: {claim.record} declares no {printed}")
            elif hole.startswith("legend "):
                declared += 1
            elif hole.startswith("paper "):
                quoted += 1
            else:
                computed += 1
                differences += [f"{where}: {why}" for why in _wrong(hole, printed, figures.of(claim.record))]
    differences += [f"{document}: no recipe for {missing}" for missing in _uncovered(page, text, covered)]
    return Checked(computed, declared, quoted, tuple(differences))


def _pattern(claim: str) -> re.Pattern[str]:
    pattern = ""
    for index, part in enumerate(_HOLE.split(claim)):
        if index % 2 == 0:
            pattern += re.escape(part)
        elif part.startswith("v "):
            pattern += rf"({_ANY_VERB})"
        elif part.startswith("s "):
            pattern += f"({re.escape(part.removeprefix('s ').partition(' | ')[0])})"
        elif part.startswith(("paper ", "legend ")):
            pattern += f"({re.escape(part.partition(' ')[2])})"
        elif part.startswith("="):
            pattern += f"({re.escape(part[1:])})"
        elif part.startswith("* "):
            pattern += rf"(\*\*(?:{_FIGURE})\*\*|{_FIGURE})"
        else:
            pattern += rf"({_FIGURE}|{_WORD})"
    return re.compile(rf"(?<![\w.+−]){pattern}(?![\w])" if claim[0] != "|" else pattern)


def _wrong(hole: str, printed: str, figures: Figures) -> Iterator[str]:
    """What of a hole differs from its recipe."""
    if hole.startswith("s "):
        for condition in hole.partition(" | ")[2].split("; "):
            recipe, _, wanted = condition.rpartition(" = ")
            if (count := figures.compute(recipe).mean) != float(wanted):
                yield f"“{printed}”, and {recipe} is {count:g}, not {wanted}"
        return
    if hole.startswith("v "):
        for recipe in hole.removeprefix("v ").split("; "):
            for difference in figures.differences(recipe):
                word = "decided" if printed == "decided" and difference.is_decided else difference.verdict
                if not re.fullmatch(_VERBS.get(word, word), printed):
                    yield f"“{printed}”, and {recipe} is {difference.sentence}"
        return
    recipe = hole.removeprefix("* ")
    figure = figures.compute(recipe)
    if hole.startswith("* ") and printed.startswith("**") != (figure.verdict in (HIGHER, LOWER)):
        yield f"{printed} is bold where it is decided, and {recipe} is {figure.verdict}"
    match = _PARTS.fullmatch(printed.strip("*"))
    mean, sd, low, high = match.groups() if match else (printed, None, None, None)
    for text, value in ((mean, figure.mean), (sd, figure.sd), (low, figure.low), (high, figure.high)):
        if text is not None and not _is_printed(value, text):
            yield f"{printed}, and {recipe} is {_shown(figure)}"
            return


def _is_printed(value: float | None, text: str) -> bool:
    digits = len(text.partition(".")[2])
    return value is not None and abs(value - _number(text)) <= 0.5 * 10**-digits + 2e-4


def _number(text: str) -> float:
    if text in _WORDS:
        return float(_WORDS.index(text))
    return float(text.replace("−", "-").replace("+", "").replace(",", ""))


def _shown(figure: Figure) -> str:
    return (
        ", ".join(
            f"{name} {value:.3f}" for name, value in vars(figure).items() if isinstance(value, int | float)
        )
        + f" {figure.verdict}"
    )


def _uncovered(page: Page, text: str, covered: list[tuple[int, int]]) -> Iterator[str]:
    """What looks like a result, in its sentence, and lies in no hole."""
    source = (ROOT / page.document).read_text("utf-8")
    source = re.sub(r"```.*?```", " ", source, flags=re.DOTALL)
    is_settings, is_held = False, not page.section
    position = 0
    for line in re.split(r"\n(?=#)", source):
        title = line.partition("\n")[0]
        if title.startswith("#"):
            is_settings = title.lstrip("# ").startswith(_SETTINGS)
            is_held = page.section in title
        flat = plain(line).strip()
        start = text.find(flat, position)
        if start < 0:
            start = position  # a block of code was cut out: offsets within are not needed
            continue
        position = start + len(flat)
        if not is_held:
            continue
        patterns = [_RESULT_OF_SETTINGS] if is_settings else [_RESULT, _RUNS]
        for pattern in patterns:
            for match in pattern.finditer(flat):
                begin, end = start + match.start(), start + match.end()
                if any(first < end and begin < last for first, last in covered) or _is_link(
                    flat, match.start()
                ):
                    continue
                yield f"“{flat[max(0, match.start() - 60) : match.end() + 30]}”"
        if is_settings:
            continue
        for sentence in re.finditer(r"[^.;:|]*(?:\.\d[^.;:|]*)*", flat):
            said = re.sub(r"\]\([^)]*\)?|`[^`]*`", "", sentence[0])
            if (
                _VERDICT.search(said)
                and "?" not in said
                and not any(
                    start + sentence.start() < last and first < start + sentence.end()
                    for first, last in covered
                )
            ):
                yield f"verdict in “{sentence[0].strip()}”"


def _is_link(text: str, position: int) -> bool:
    """Whether the place lies in the address of a link, or in code."""
    before = text[:position]
    return before.rfind("](") > before.rfind(")") or before.count("`") % 2 == 1
