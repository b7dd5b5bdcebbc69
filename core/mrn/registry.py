"""The priors and alignments by name, each with a line for the form. Needs no torch.

A new prior or alignment is one file beside this one and one line here.
"""

from __future__ import annotations

from core.errors import ConfigError

__all__ = ["ALIGNMENTS", "PRIORS", "parse_alignment"]

PRIORS: dict[str, str] = {
    "relational": "Learns how tasks, labels and features relate, at a fixed scale. Nothing can collapse.",
    "map": "The joint estimate of relations and scale. Keep λ small: near 1 all shrinks to nothing.",
    "paper": "The published procedure, kept for comparison. Its penalty can vanish.",
}

ALIGNMENTS: dict[str, str] = {
    "auto": "Chooses for the whole corpus: exact where tasks share label names on most words, else "
    "cooccurrence where tasks share sentences, else disjoint.",
    "disjoint": "Keeps every label of every task apart. Tasks then cannot be related.",
    "exact": "Labels with the same name share a row.",
    "cooccurrence": "Labels are related by how often they stand on the same token.",
    "mapping": "Labels correspond as a CSV file of yours says: mapping:FILE.",
}


def parse_alignment(text: str) -> tuple[str, str]:
    """The name and the file of an alignment as a run has it: `mapping:FILE`; the others have no file, "".

    The file is not looked at. Raises ConfigError for another name, and where a file is missing or too much.
    """
    name, colon, file = text.partition(":")
    if name not in ALIGNMENTS:
        raise ConfigError("alignment", f"alignment: '{text}' is not one of {', '.join(ALIGNMENTS)}.")
    if name == "mapping" and not file:
        raise ConfigError(
            "alignment", "alignment: a mapping needs its CSV file; name it, as in mapping:labels.csv."
        )
    if name != "mapping" and colon:
        raise ConfigError("alignment", f"alignment: only mapping takes a file; write {name} alone.")
    return name, file
