"""Reports: results, studies and transfer as tables, and what runs are called in them."""
