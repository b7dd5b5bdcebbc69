"""Reports: results, studies and transfer rendered as text, Markdown, LaTeX, CSV and JSON."""
