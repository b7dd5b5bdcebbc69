"""The priors and alignments by name, each with a line for the form. Needs no torch.

A new prior or alignment is one file beside this one and one line here.
"""

from __future__ import annotations

__all__ = ["ALIGNMENTS", "PRIORS"]

PRIORS: dict[str, str] = {
    "relational": "Learns how tasks, labels and features relate, at a fixed scale. Nothing can collapse.",
    "map": "The joint estimate of relations and scale. Keep λ small: near 1 all shrinks to nothing.",
    "paper": "The published procedure, kept for comparison. Its penalty can vanish.",
}

ALIGNMENTS: dict[str, str] = {
    "auto": "Chooses: exact where labels share names, else cooccurrence where tasks share sentences, "
    "else disjoint.",
    "disjoint": "Keeps every label of every task apart. Tasks then cannot be related.",
    "exact": "Labels with the same name share a row.",
    "cooccurrence": "Labels are related by how often they stand on the same token.",
}
