"""Length rules that stop at a threshold, whatever drafting and verifying cost.

All submit what they draft. A block ends with the first token that is weak, and that token is submitted too:
so do the programs that these were read from. Whether a token is submitted is then settled by those before it.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from simspec.errors import BadInput
from simspec.speculation.lengths import (
    Chance,
    Count,
    Decision,
    Factor,
    Floats,
    Ints,
    Positive,
    Stateless,
    View,
)


def _through_first(weak: NDArray[np.bool_]) -> Ints:
    """Tokens up to the first weak one, it included; one more than there are where none is."""
    found: Ints = np.where(weak.any(axis=1), weak.argmax(axis=1), weak.shape[1]) + 1
    return found


def _both(length: Ints) -> Decision:
    return Decision(length, length)


@dataclass(frozen=True)
class WeakToken(Stateless):
    """Stop after the first token of a confidence below ``least``.

    The defaults are Hugging Face's assistant_confidence_threshold and num_assistant_tokens (code of
    transformers 5), whose threshold is also moved while it runs where scikit-learn is there: not here.
    Kangaroo (arXiv 2404.18911) is the same rule with .6 and 6 (its code), its confidence that of a
    shallow exit of the target.
    """

    least: Chance = 0.4
    longest: Count = 20

    def decide(self, view: View, state: Floats) -> Decision:
        return _both(np.minimum(_through_first(view.confidence < self.least), self.longest))


@dataclass(frozen=True)
class FailFast(Stateless):
    """A chunk more for as long as no token of the last chunk has a confidence below ``least``.

    FailFast (arXiv 2512.20573); the chunk with the weak token is submitted whole (its code for autoregressive
    drafters). LibraSpec (arXiv 2608.08721) runs it with .5, .45 and .4 for targets of 7, 14 and 32 billion
    weights, and at most 60 to 80 tokens.
    """

    least: Chance = 0.45
    chunk: Positive = 10
    longest: Count = 60

    def decide(self, view: View, state: Floats) -> Decision:
        chunks = -(-_through_first(view.confidence < self.least) // self.chunk)
        return _both(np.minimum(chunks * self.chunk, self.longest))


@dataclass(frozen=True)
class Svip(Stateless):
    """Stop after the first token drawn from a distribution of entropy H with sqrt(``scale`` H) > ``most``.

    SVIP (arXiv 2411.18462), entropy in nats, at most 40 tokens (its code). Its threshold is known before the
    token is drawn, which is submitted nevertheless.

    Raises:
        BadInput: (when deciding) the view has no entropy.
    """

    scale: Factor = 0.15
    most: Factor = 0.3
    longest: Count = 40

    def decide(self, view: View, state: Floats) -> Decision:
        if view.entropy is None:
            raise BadInput("SVIP stops by the drafter's entropy, which was not recorded here")
        # What lies beyond the limit is not drafted: the caller cuts.
        return _both(np.minimum(_through_first(np.sqrt(self.scale * view.entropy) > self.most), self.longest))


@dataclass(frozen=True)
class SpecDecPlusPlus(Stateless):
    """Stop when the chance that a token of the block is refused, 1 - the product, exceeds ``most``.

    SpecDec++ (arXiv 2405.19715), with the drafter's own confidence in the place of its trained head's
    probability, and thresholds of .3 and .7. Its head judges a token once the drafter has read it, so its
    code submits one token beyond the one that stops it; a confidence is there with its token, and here that
    one is the last. 2 to 20 tokens as in its code.
    """

    most: Chance = 0.7
    shortest: Count = 2
    longest: Count = 20

    def decide(self, view: View, state: Floats) -> Decision:
        refused = 1.0 - np.cumprod(view.confidence, axis=1) > self.most
        return _both(np.minimum(np.maximum(_through_first(refused), self.shortest), self.longest))
