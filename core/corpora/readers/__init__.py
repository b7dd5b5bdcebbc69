"""The readers of formats: from a file, or the tables of a dataset, to columns whose values have places."""
