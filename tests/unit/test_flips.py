"""Counting how often the shape of a forward changes the most probable token."""

from __future__ import annotations

import numpy as np
import pytest

pytestmark = pytest.mark.real_model  # torch and transformers; the network is made up


def moody(odd: int, change: float):
    """A network that says (token + 1), but at every ``odd``-th place another where tokens share a forward."""
    import torch
    from transformers.modeling_outputs import CausalLMOutput

    class Moody(torch.nn.Module):
        device = torch.device("cpu")

        def forward(self, input_ids, attention_mask, position_ids, use_cache, cache, logits_to_keep):
            rows, new = input_ids.shape
            cache.update(input_ids[:, None, :, None].float(), input_ids[:, None, :, None].float(), 0)
            logits = torch.nn.functional.one_hot((input_ids + 1) % 11, 11).float()
            if rows * new > 1:
                swayed = (position_ids % odd == 0)[..., None]
                logits += change * swayed * torch.nn.functional.one_hot((input_ids + 2) % 11, 11)
            return CausalLMOutput(logits=logits[:, -logits_to_keep:])

    return Moody()


def test_flips_are_counted_by_shape():
    from simspec.calibration.flips import measure_flips

    texts = [np.arange(20) % 11, np.arange(5, 25) % 11, np.arange(2, 22) % 11]
    shapes = [(1, 1), (1, 4), (1, 5), (2, 1), (3, 2)]
    found = measure_flips(moody(4, 1.5), texts, 12, shapes)
    # Places 8 to 19; of these 8, 12, 16 are swayed, in every text. Two texts fill a batch of two.
    assert [(f.rows, f.width) for f in found] == shapes
    assert [f.positions for f in found] == [36, 36, 36, 24, 36]
    assert [f.flipped for f in found] == [0, 9, 9, 6, 9]
    assert [f.worst_margin for f in found] == [0, 1, 1, 1, 1]
    assert [f.largest_change for f in found] == [0, 1.5, 1.5, 1.5, 1.5]


def test_a_change_that_changes_no_word_is_no_flip():
    from simspec.calibration.flips import measure_flips

    (found,) = measure_flips(moody(4, 0.5), [np.arange(20) % 11], 12, [(1, 4)])
    assert (found.flipped, found.worst_margin, found.largest_change) == (0, 0.0, 0.5)


def test_words_one_token_a_forward():
    from simspec.calibration.flips import greedy_tokens

    words = greedy_tokens(moody(4, 1.5), [np.arange(20) % 11], 12)
    assert words.tolist() == [((np.arange(8, 20) % 11 + 1) % 11).tolist()]
