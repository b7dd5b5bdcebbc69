.PHONY: check test lint format

check: lint test

test:
	pytest

lint:
	ruff format --check .
	ruff check .
	mypy

format:
	ruff format .
	ruff check --fix .
