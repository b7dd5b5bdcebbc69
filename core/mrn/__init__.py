"""Multilinear relationship learning: alignments, priors, low-rank algebra, correlation.

`relations` needs no torch; the other modules do. The names of priors are in `core.registry`.
"""
