"""Batches of alike rows in closed form: one row is the exact chain, several are enumerated."""

from __future__ import annotations

from fractions import Fraction
from itertools import product

import numpy as np
import pytest

from simspec.claims.chains.walked import right_by_round
from simspec.theory.exact_chains import exact, exact_rounds, handed_up
from simspec.theory.padded_chains import BatchPrices, nested, pair, replace, truncate
from simspec.theory.third_level import PlaceLaw, independent

WIDTHS = np.arange(40.0)
ALPHAS = [(0.0, 0.5), (0.3, 0.8), (0.9, 0.6), (1.0, 0.9)]


def prices(rows: int) -> BatchPrices:
    return BatchPrices(rows, 0.1, 0.5 + 0.03 * WIDTHS**1.5, 2.0 + 0.2 * WIDTHS**1.3)


@pytest.mark.parametrize(("lower", "upper"), ALPHAS)
def test_one_row_is_the_exact_chain(lower: float, upper: float) -> None:
    p, law = prices(1), independent(np.array(lower), np.array(upper))

    def verify(level: int, width: np.ndarray) -> np.ndarray:
        return (p.middle if level == 2 else p.target)[width.astype(int)]

    rates = (np.array(lower), np.array(upper))
    draft = np.array(p.draft)
    for drafts in (1, 3):
        for found, kind in ((truncate, False), (replace, True)):
            cycle = found(law, drafts, p)
            # An exact chain's middle runs always here: it is handed at least one token.
            assert cycle.seconds / cycle.tokens == pytest.approx(
                exact(rates, drafts, draft, verify, replace=kind)
            )
        for rounds in (1, 3):
            cycle = nested(law, drafts, rounds, p)
            wanted = exact_rounds(rates, drafts, rounds, draft, verify)
            assert cycle.seconds / cycle.tokens == pytest.approx(wanted)


@pytest.mark.parametrize("rows", [2, 3])
def test_the_target_is_as_wide_as_the_longest_row(rows: int) -> None:
    p, drafts = prices(rows), 3
    law = independent(np.array(0.7), np.array(0.6))
    for found, kind in ((truncate, False), (replace, True)):
        lengths = handed_up([np.array(0.7), np.array(0.6)], drafts, replace=kind)[1]
        wanted = drafts * p.draft + p.middle[drafts + 1]
        for some in product(lengths.items(), repeat=rows):
            wanted += np.prod([chance for _, chance in some]) * p.target[max(n for n, _ in some) + 1]
        assert found(law, drafts, p).seconds == pytest.approx(wanted)


def test_tokens_of_rounds_hold_for_any_law_of_agreement() -> None:
    parts = [Fraction(n, 16) for n in (6, 2, 3, 1)]
    law = PlaceLaw(*(np.array(float(x)) for x in parts))
    for rounds, drafts in product((1, 2, 4), (1, 3)):
        walked = 1 + sum(right_by_round(PlaceLaw(*parts), rounds, drafts))
        assert nested(law, drafts, rounds, prices(4)).tokens == pytest.approx(float(walked))


def test_no_drafts_are_plain_decoding() -> None:
    p = prices(4)
    cycle = pair(np.array(0.5), 0, p.draft, p)
    assert (cycle.tokens, cycle.seconds) == (1.0, p.target[1])
