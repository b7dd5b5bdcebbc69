"""Multilinear relationship learning: alignments, priors, low-rank algebra, correlation.

`registry` and `relations` need no torch; the other modules do.
"""
