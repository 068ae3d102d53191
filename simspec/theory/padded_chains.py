"""Pairs and chains of three in a batch of alike rows, every forward padded to its widest row.

For one place law, as :mod:`simspec.theory.third_level`: places are independent and alike, rows are too. A
steady state: no row ends and no model has to catch up. What M_2 hands up differs from row to row, so the
target's forward is as wide as the longest of it; the law of that length hangs on alpha_12 alone. Seconds are
of the batch's cycle, tokens of a row.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from simspec.theory import third_level
from simspec.theory.acceptance import emitted_tokens
from simspec.theory.exact_chains import handed_up
from simspec.theory.numbers import Floats
from simspec.theory.padding import padded_seconds
from simspec.theory.third_level import Costs, Cycle, PlaceLaw

_NOTHING = np.zeros(())
_FREE = Costs(_NOTHING, _NOTHING, _NOTHING, _NOTHING, _NOTHING)


@dataclass(frozen=True)
class BatchPrices:
    """Seconds of forwards over all rows of a batch.

    Attributes:
        rows: of the batch.
        draft: of M_1 over one token a row.
        middle, target: of M_2 and the target by width, entry 0 unused.
    """

    rows: int
    draft: float
    middle: Floats
    target: Floats


def pair(alpha: Floats, drafts: int, draft_seconds: float, prices: BatchPrices) -> Cycle[Floats]:
    """A drafter and the target; 0 drafts is plain decoding."""
    seconds = np.asarray(drafts * draft_seconds + prices.target[drafts + 1])
    return Cycle(emitted_tokens(alpha, drafts), seconds)


def truncate(law: PlaceLaw[Floats], drafts: int, prices: BatchPrices) -> Cycle[Floats]:
    """funnel-truncate."""
    spent = drafts * prices.draft + prices.middle[drafts + 1]
    tokens = third_level.truncate(law, _FREE, drafts).tokens
    return Cycle(tokens, spent + _target(_handed(law.lower, drafts, 0), prices))


def replace(law: PlaceLaw[Floats], drafts: int, prices: BatchPrices) -> Cycle[Floats]:
    """funnel-replace."""
    spent = drafts * prices.draft + prices.middle[drafts + 1]
    tokens = third_level.replace(law, _FREE, drafts).tokens
    return Cycle(tokens, spent + _target(_handed(law.lower, drafts, 1), prices))


def nested(law: PlaceLaw[Floats], drafts: int, rounds: int, prices: BatchPrices) -> Cycle[Floats]:
    """nested, ``rounds`` rounds of ``drafts`` tokens; M_2 adds its own token to each.

    Round by round, what is right up to its end: at a drafted place M_2's token is right with P(all agree) +
    P(only M_2), and the round goes on where all agree; after the last draft M_2's own is right with alpha_23.
    """
    one = _handed(law.lower, drafts, 1)
    made = one
    for _ in range(rounds - 1):
        longer = np.zeros((len(made) + len(one) - 1, *made.shape[1:]))
        for n, chance in enumerate(one):
            longer[n : n + len(made)] += chance * made
        made = longer
    tokens, right = 1.0 + 0.0 * law.upper, 1.0 + 0.0 * law.upper
    for _ in range(rounds):
        going, ended = right, 0.0 * right
        for _ in range(drafts):
            tokens = tokens + going * law.upper
            ended = ended + going * law.only_upper
            going = going * law.all_agree
        own = going * law.upper
        tokens, right = tokens + own, ended + own
    spent = rounds * (drafts * prices.draft + prices.middle[drafts + 1])
    return Cycle(tokens, spent + _target(made, prices))


def _handed(lower: Floats, drafts: int, own: int) -> Floats:
    """Chances of handing up n tokens, n = 0 .., along the first axis; ``own`` of M_2's are added."""
    law = handed_up([lower, lower], drafts, replace=bool(own))[1]
    return np.stack([law.get(n, 0.0 * lower) for n in range(drafts + own + 1)])


def _target(chances: Floats, prices: BatchPrices) -> Floats:
    """Seconds of the target over blocks of n tokens and one more, n = 0 .., padded to the widest."""
    seconds = np.tile(prices.target[1 : len(chances) + 1], (prices.rows + 1, 1))
    return np.asarray(padded_seconds(chances, prices.rows, seconds))
