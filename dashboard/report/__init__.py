"""Reports as one HTML file, made of what the pages are made of; `python -m dashboard.report` makes one."""
