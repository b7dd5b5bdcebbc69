"""Reports: results, studies and transfer as tables, and the names of runs in them."""
