.PHONY: pictures charts check ci coverage test slow other-precision lint format

check: lint test

# A fresh environment: the README's test command, the slow tests, bfloat16, then ruff and mypy.
ci:
	pip install -q -e '.[test]' && pytest
	$(MAKE) slow
	$(MAKE) other-precision
	pip install -q -e '.[dev]'
	$(MAKE) lint

test:
	pytest

slow:
	pytest -m slow

# The tests that train or compare states, where `precision=auto` is bfloat16. tests/conftest.py chooses float32.
other-precision:
	MRNLAB_BF16=yes pytest tests/unit/training/test_examples.py tests/unit/models/test_frozen_encoders.py \
		tests/unit/models/test_partial_training.py tests/unit/training/test_training.py tests/unit/models/test_model_io.py \
		tests/unit/tasks/test_scored_as_tagged.py tests/pins/test_training.py

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
