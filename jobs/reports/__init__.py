"""Reports: results, studies, transfer and advice as tables, and what runs are called in them."""
