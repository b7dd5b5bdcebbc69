"""Contracts as tests: a prior, an encoder or a store of one's own inherits them.

A contract is a class of pytest tests with a fixture to override. It needs pytest, which the extra `test` has:

    from core.testing.priors import PriorContract

    class TestCommonMean(PriorContract):
        @pytest.fixture
        def prior_class(self):
            return CommonMean
"""

import pytest

# Where one fails, pytest says what was compared, as in a test file.
pytest.register_assert_rewrite(*(f"core.testing.{contract}" for contract in ("encoders", "priors", "stores")))
