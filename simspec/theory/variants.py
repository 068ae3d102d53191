"""The family of SpecRouter's (arXiv 2505.07680) Eq. 7 under one signature: what ranks chains, by name.

Every variant is a pure function of :class:`Given`; none is "the" Eq. 7, whose expansion is in no text that
could be reached. All take acceptance as independent from place to place, level to level and row to row, and
as one rate for each pair of models. Apart from that each assumes:

========== ==================================================================================================
reach      every level runs once a cycle at its single-token time; a token is emitted if all levels pass it;
           an inner level is paid for if at least one token reaches it (-all: if all do; -always: always).
           These three are one and the same up to three levels.
-direct    as reach, but M_1's tokens are accepted at alpha_1N, not at the product of adjacent rates.
-wide      as reach, but every forward is as wide as the whole block.
funnel     mean block lengths carried from level to level, a forward as wide as the mean block.
nested     CS-Drafting's Theorem 4.3 with one round at each level (arXiv 2312.11462): every verifier adds its
           own token, exact block lengths, forwards at their mean width.
polybasic  Polybasic's Eq. 3 (arXiv 2510.26527): levels run independently, each often enough for its own mean
           run of tokens; single-token times.
product    seconds add up, rates multiply, the draft length does not enter: a straw man.
exact      the block's length followed as a Markov chain, each length priced at its own width.
========== ==================================================================================================

What each gets right under which cycle is decided by claims S7; what a batch of unlike rows adds is in
:mod:`simspec.theory.padding`.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, Generic

import numpy as np

from simspec.theory.acceptance import emitted_tokens
from simspec.theory.chains import funnel, nested, polybasic, product, reach
from simspec.theory.exact_chains import exact
from simspec.theory.numbers import Number, like, number, width_of


@dataclass(frozen=True)
class Given(Generic[Number]):
    """What a variant is told of a chain M_1 .. M_N with at least two levels.

    Attributes:
        alphas: alpha_1 .. alpha_{N-1}, adjacent acceptance.
        gamma: tokens drafted by M_1.
        draft_seconds: T_1, seconds a drafted token.
        verify: V_i(n), seconds of a forward of M_i over n tokens, i = 2 .. N.
        end_to_end: alpha_{1N}.
        replace: whether an intermediate appends its own token.
    """

    alphas: Sequence[Number]
    gamma: int
    draft_seconds: Number
    verify: Callable[[int, Number], Number]
    end_to_end: Number
    replace: bool = False

    @property
    def told(self) -> tuple[Sequence[Number], int, Number, Callable[[int, Number], Number]]:
        """The arguments that most formulas of :mod:`simspec.theory.chains` begin with."""
        return self.alphas, self.gamma, self.draft_seconds, self.verify

    def single_seconds(self) -> list[Number]:
        """T_1 .. T_N."""
        one = width_of(number(self.alphas[0]), 1)
        return [number(self.draft_seconds)] + [self.verify(i, one) for i in range(2, len(self.alphas) + 2)]


def polybasic_by_rates(given: Given[Number]) -> Number:
    """Polybasic's Eq. 3 where only rates are known: L_i = E(alpha_i, n_i), n_1 = gamma, n_{i+1} = L_i.

    beta = gamma: a verifier's forward uses up that many of M_1's.
    """
    lengths: list[Number] = []
    block = like(number(given.alphas[0]), given.gamma)
    for alpha in given.alphas:
        block = emitted_tokens(number(alpha), block)
        lengths.append(block)
    beta = like(number(given.alphas[0]), given.gamma)
    return polybasic(lengths[::-1], given.single_seconds()[::-1], beta)


def product_of_rates(given: Given[Number]) -> Number:
    """sum T_i / prod alpha_i; infinite where a float rate is 0."""
    with np.errstate(divide="ignore"):
        return product(given.alphas, given.single_seconds())


Variant = Callable[[Given[Any]], Any]

VARIANTS: dict[str, Variant] = {
    "reach": lambda g: reach(*g.told),
    "reach-all": lambda g: reach(*g.told, "all"),
    "reach-always": lambda g: reach(*g.told, "always"),
    "reach-direct": lambda g: reach(*g.told, end_to_end=g.end_to_end),
    "reach-wide": lambda g: reach(*g.told, wide=True),
    "funnel": lambda g: funnel(*g.told, replace=g.replace),
    "nested": lambda g: nested(g.alphas, g.gamma, (1,) * (len(g.alphas) - 1), g.draft_seconds, g.verify),
    "polybasic": polybasic_by_rates,
    "product": product_of_rates,
    "exact": lambda g: exact(*g.told, replace=g.replace),
}
