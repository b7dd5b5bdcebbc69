"""The contract of encoders (`core.models.encoders.Encoder`)."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from typing import cast

import numpy as np
import pytest
import torch
from torch import Tensor, nn

from core.encoding.batches import Batch, Batches
from core.encoding.encoded import EncodedText
from core.models.encoders import Encoder, at_words


class EncoderContract:
    """What training and tagging ask of an encoder. A subclass overrides the fixtures `encoder` and `text`.

    States of one window in different batches agree within `atol`.
    """

    atol: float = 1e-5

    @pytest.fixture
    def encoder(self) -> Encoder:
        """The encoder, a torch module, as a run begins with it."""
        raise NotImplementedError("override the fixture encoder")

    @pytest.fixture
    def text(self) -> EncodedText:
        """Windows of different lengths, encoded for it (`core.encoding.encoded.encode`)."""
        raise NotImplementedError("override the fixture text")

    @pytest.fixture
    def pad(self) -> int:
        """The number of padding among the subwords."""
        return 0

    @pytest.fixture
    def together(self, text: EncodedText, pad: int) -> Batch:
        """All windows, padded to the longest."""
        assert len(set(text.lengths.tolist())) > 1, "the text needs windows of different lengths"
        (batch,) = _batches(text, text.windows, pad)
        return batch

    def test_states_have_the_shapes_of_the_batch(self, encoder: Encoder, together: Batch) -> None:
        """(B, L, D) and (n, D), or one of each task in front; float32."""
        with _evaluated(encoder), torch.no_grad():
            states, words = encoder(together), encoder.words(together)
        assert states.dtype == words.dtype == torch.float32
        assert states.shape[-3:] == (*together.ids.shape, encoder.features)
        assert words.shape[-2:] == (len(together.rows), encoder.features)
        assert states.shape[:-3] == words.shape[:-2]
        assert states.ndim in (3, 4)

    def test_states_of_words_are_those_of_their_first_subwords(
        self, encoder: Encoder, together: Batch
    ) -> None:
        with _evaluated(encoder), torch.no_grad():
            expected = at_words(encoder(together), together)
            torch.testing.assert_close(encoder.words(together), expected, rtol=0, atol=self.atol)

    def test_states_do_not_depend_on_padding(
        self, encoder: Encoder, text: EncodedText, together: Batch, pad: int
    ) -> None:
        """Each window alone has the states that it has beside longer ones."""
        with _evaluated(encoder), torch.no_grad():
            padded = _in_order(encoder.words(together), together.words)
            alone = [(encoder.words(batch), batch.words) for batch in _batches(text, 1, pad)]
        states = torch.cat([part for part, _ in alone], dim=-2)
        words = torch.cat([numbers for _, numbers in alone])
        torch.testing.assert_close(_in_order(states, words), padded, rtol=0, atol=self.atol)

    def test_what_padding_holds_changes_nothing(self, encoder: Encoder, together: Batch) -> None:
        with _evaluated(encoder), torch.no_grad():
            before = encoder.words(together)
            together.ids[together.mask == 0] = together.ids.max()
            torch.testing.assert_close(encoder.words(together), before, rtol=0, atol=self.atol)

    def test_prediction_is_deterministic(self, encoder: Encoder, together: Batch) -> None:
        with _evaluated(encoder), torch.no_grad():
            assert torch.equal(encoder.words(together), encoder.words(together))

    def test_training_is_deterministic_with_a_seed(self, encoder: Encoder, together: Batch) -> None:
        """Dropout draws from torch's generator alone."""
        module = cast(nn.Module, encoder).train()
        drawn = []
        for _ in range(2):
            torch.manual_seed(7)
            drawn.append(encoder.words(together).detach())
        assert module.training
        assert torch.equal(*drawn)

    def test_gradients_reach_all_that_is_trained(self, encoder: Encoder, together: Batch) -> None:
        trained = {
            name: weight
            for name, weight in cast(nn.Module, encoder).named_parameters()
            if weight.requires_grad
        }
        with _evaluated(encoder):
            encoder.words(together).square().sum().backward()
        assert [name for name, weight in trained.items() if weight.grad is None] == []


@contextlib.contextmanager
def _evaluated(encoder: Encoder) -> Iterator[None]:
    """The encoder without dropout, for a while."""
    module = cast(nn.Module, encoder)
    was_training = module.training
    module.eval()
    yield
    module.train(was_training)


def _batches(text: EncodedText, size: int, pad: int) -> list[Batch]:
    """The batches of so many windows of a text without labels."""
    return list(Batches(text, np.zeros((len(text.firsts), 0), np.int64), size, pad).by_length())


def _in_order(states: Tensor, words: Tensor) -> Tensor:
    """States (…, n, D) in the order of the numbers (n,) of their words."""
    return states[..., words.argsort(), :]
