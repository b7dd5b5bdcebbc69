"""Benchmarks: `python -m tests.benchmarks.NAME`, each with `--quick`; `_` begins the name of a part."""
