"""Commands that measure: `python -m tests.benchmarks.NAME`, each with `--quick`. Modules that begin with an
underscore are no commands.
"""
