"""Engines on real clusters of other schedulers, started on this machine."""
