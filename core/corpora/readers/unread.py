"""Formats that are not read: each is known by names of files or by first lines, and a refusal says which."""

from __future__ import annotations

import re
from collections.abc import Callable, Collection, Mapping, Sequence

from core.corpora.layout.doubts import ONE_LABEL
from core.corpora.readers.lines import Source
from core.corpora.readers.text_rows import beginning
from core.errors import CorpusError

_LINES_SEEN = 200
# Of a line, so that no pattern takes long.
_LONGEST = 1000
_NEARLY_ALL = 0.8
_SOME = 0.1
_COLUMNS = "write a word and its labels in each line, and a blank line after each sentence."
_TEXTS = "write it as TSV or CSV, whose first line is text and label"
_XML = re.compile(r"<\?xml|<!DOCTYPE|<([A-Za-z][\w.-]*)(\s[^<>]*)?>.*</\1>|^</?[A-Za-z][\w.-]*(\s[^<>]*)?>$")
_TAGGED = re.compile(r"\S+([/_|][A-Z][A-Z$0-9-]*|[/_|][.,:;'`()$#-]+|/[\w.,:;'`()$*+-]{1,12})")
_IN_BRACKETS = re.compile(r"\[[A-Z]{2,}\w* [^\[\]]+\]|\[[^\[\]]+\]\([^()\s]+\)")
_TREE = re.compile(r"\(\S+ .*\)|\([A-Z0-9]*")
_STARTS_WITH_LABEL = re.compile(r"__label__\S+")
_SLOT_FILES = frozenset(["seq.in", "seq.out"])
_LABELS_ALONE = re.compile(r"(^|[^a-z])(labels?|tags?|intents?|targets?|out)([^a-z]|$)", re.IGNORECASE)
_LABEL_ENDING = re.compile(r"labels?|lbl|tags?", re.IGNORECASE)
_INTO_ONE_FILE = "write both into one file, words and labels as CoNLL columns, texts and labels as TSV"
_CLASS_BEHIND_TEXT = re.compile(r"(?=[^@]* )[^@]*@\w+")
_COMMAS = re.compile(r"[^,\s]+(,[^,\s]+)+")
_CLASS_BEFORE_TEXT = re.compile(r"[A-Z]+:\w+ \S+ .*")


def _share(lines: Sequence[str], test: Callable[[str], object]) -> float:
    return sum(map(bool, map(test, lines))) / len(lines)


def _is_tagged(line: str) -> bool:
    words = line.split()
    return len(words) > 1 and _share(words, _TAGGED.fullmatch) >= _NEARLY_ALL


def _has_tags_behind_a_tab(line: str) -> bool:
    halves = re.split(r"\t|\|\|\|", line)
    words, *tags = [half.split() for half in halves]
    return bool(tags) and len(words) > 1 and len(tags[0]) in (len(words), len(words) - 1, len(words) + 1)


_OF_LINES: tuple[tuple[float, Callable[[str], object], str], ...] = (
    (
        _NEARLY_ALL,
        _STARTS_WITH_LABEL.match,
        f"is of fastText (`__label__x` before each text); {_TEXTS}; {ONE_LABEL}.",
    ),
    (_NEARLY_ALL, re.compile(r"\{\s*\"|\[\s*[\[{\"]").match, "holds JSON; end its name in .json or .jsonl."),
    (_SOME, _XML.search, f"has tags of XML or SGML inside its text; {_COLUMNS}"),
    (_NEARLY_ALL, _is_tagged, f"has the tag of each word behind it, as in Ada/NNP; {_COLUMNS}"),
    (
        _NEARLY_ALL,
        _has_tags_behind_a_tab,
        f"has a sentence and the labels of all its words in one line; {_COLUMNS}",
    ),
    (_SOME, _IN_BRACKETS.search, f"has spans in brackets inside its text; {_COLUMNS}"),
    (_NEARLY_ALL, _TREE.match, f"holds trees in brackets; {_COLUMNS}"),
    (
        _NEARLY_ALL,
        _CLASS_BEFORE_TEXT.fullmatch,
        f"has a label before each text, as in DESC:manner; {_TEXTS}.",
    ),
    (
        _NEARLY_ALL,
        _CLASS_BEHIND_TEXT.fullmatch,
        f"has a label behind each text and the sign @; {_TEXTS}.",
    ),
    (_NEARLY_ALL, _COMMAS.fullmatch, "has commas between its columns; separate them by tabs or spaces."),
)
"""The share of lines that must be of a form, the form, and what a file of such lines is and what to do."""


def check_format(source: Source) -> None:
    """Raises CorpusError where the first lines of a file have the form of a format that is not read."""
    text = beginning(source)
    lines = [
        line.strip()[:_LONGEST] for line in re.split("\r\n|\n|\r", text)[: _LINES_SEEN + 1] if line.strip()
    ]
    for share, test, sentence in _OF_LINES if lines else ():
        if _share(lines, test) >= share:
            raise CorpusError(f"{source} {sentence}")


def check_files(names: Collection[str], location: str) -> None:
    """Raises CorpusError where files of these names, in the folder `location`, pair texts with labels."""
    stems = {name.removesuffix(".ann") for name in names if name.endswith(".ann")}
    if pairs := sorted(stems & {name.removesuffix(".txt") for name in names if name.endswith(".txt")}):
        raise CorpusError(
            f"{location} holds annotations of brat ({pairs[0]}.ann beside {pairs[0]}.txt), which are not "
            "read. Write a line of JSONL for each text: "
            '{"text": "…", "spans": [{"start": 0, "end": 3, "label": "PER"}]}.'
        )
    for name in sorted(names):
        stem, _, ending = name.rpartition(".")
        beside = sorted(each for each in names if each != name and each.rpartition(".")[0] == stem)
        if _LABEL_ENDING.fullmatch(ending) and beside:
            raise CorpusError(
                f"{location} has labels in {name} beside {beside[0]}, which are not read; {_INTO_ONE_FILE}."
            )


def check_folders(folders: Mapping[str, Collection[str]], location: str) -> None:
    """Raises CorpusError where the splits are folders, given with the names of their files."""
    for folder, names in folders.items():
        check_files(names, f"{location}/{folder}")
        if {*names} >= _SLOT_FILES:
            raise CorpusError(
                f"{location}/{folder} has words in seq.in and their labels in seq.out, which are not read. "
                "Write CoNLL columns in one file for each split, with the label of a sentence in a comment "
                "before it, such as '# intent: x'."
            )
    if folders:
        raise CorpusError(
            f"{location} has its splits in folders ({', '.join(folders)}); write one file for each split, "
            "such as train.conll or train.tsv."
        )


def parallel_files(names: Sequence[str]) -> str:
    """The remedy for two files of one split; they may hold texts and labels line by line."""
    if any(_LABELS_ALONE.search(name) for name in names):
        return f"where one holds the labels of the other line by line, {_INTO_ONE_FILE}"
    return "keep one of them"
