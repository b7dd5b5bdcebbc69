"""The figures that README and docs/studies print, each with a recipe that computes it from a record.

`python -m tests.claims` computes the results anew from the runs in core/studies/data and compares them all.
"""
