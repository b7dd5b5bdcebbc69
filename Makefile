.PHONY: pictures charts check ci coverage test slow lint format

check: lint test

# A fresh environment: the README's test command, the slow tests, then ruff and mypy.
ci:
	pip install -q -e '.[test]' && pytest
	$(MAKE) slow
	pip install -q -e '.[dev]'
	$(MAKE) lint

test:
	pytest

slow:
	pytest -m slow

# Slower than the tests alone by two thirds.
coverage:
	pytest --cov=core --cov-fail-under=90 -m ''

lint:
	ruff format --check .
	ruff check .
	mypy

format:
	ruff format .
	ruff check --fix .

# The pages' pictures in docs/images, anew.
pictures:
	python -m tests.journeys.pictures docs/images --only launch,runs,curves,compare,relations,tag

# A chart of each study in docs/images/studies, from its tables in docs/studies/tables.
charts:
	python -m tests.journeys.study_charts docs/images/studies
