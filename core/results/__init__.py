"""Results: which runs count, their names, tables, series of scores, and figures of them. Needs no torch."""
